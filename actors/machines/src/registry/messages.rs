//! The messages and notifications of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::reasons::{ActiveBecause, ActiveReason, Departure, InactiveBecause};
use crate::conversation;
use crate::vocabulary::{
    AllocationId, FailoverPolicy, Fitness, Generation, PluginKey, Registration, RegistrationNumber,
    SocketPath, Timestamp,
};

/// Registers one or more plugins of an allocation at a socket (R1). It is atomic: with several plugins (a monolith is
/// controller and node) all are registered or none (R5). Idempotent: repeated with the same contents it changes nothing,
/// except that it confirms a restored registration (R8). With other contents it is an update (R3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Register {
    /// The plugins; at least one, none twice.
    pub plugins: Vec<PluginKey>,
    /// The allocation that serves them.
    pub allocation: AllocationId,
    /// The socket where it listens.
    pub socket: SocketPath,
    /// The name that the plugin reports, if known (C030).
    pub provider: Option<Arc<str>>,
    /// The version that the plugin reports, if known.
    pub version: Option<Arc<str>>,
    /// Data of the host. At most 64 entries and 4 KiB in total. Stored in the clear: no secrets (P6).
    pub options: Arc<BTreeMap<String, String>>,
    /// How the active registration of these plugins is chosen, unless the [options](super::RegistryOptions::policies) of the registry
    /// name them. Of several registrations of a plugin, the policy of the newest with a policy applies. `None` for the options' policy.
    pub policy: Option<FailoverPolicy>,
}

/// The result of a [`Register`]. Its effects are on disk when the result arrives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Registered {
    /// It was created.
    New,
    /// It existed with other contents.
    Updated,
    /// It existed with these contents. Nothing was published, unless this confirmed a restored registration (R8).
    Unchanged,
}

/// Why a [`Register`] was refused. Nothing has changed (R9).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RegisterError {
    /// It named no plugin.
    #[error("allocation {allocation} registers no plugin; name at least one")]
    NoPlugin {
        /// The allocation of the request.
        allocation: AllocationId,
    },
    /// It named one plugin twice.
    #[error("allocation {allocation} registers {plugin} twice in one message")]
    PluginTwice {
        /// The allocation of the request.
        allocation: AllocationId,
        /// The repeated plugin.
        plugin: PluginKey,
    },
    /// Its options exceed the limits.
    #[error(
        "allocation {allocation} registers with {entries} options of {bytes} bytes; at most 64 options and 4096 bytes are kept"
    )]
    OptionsTooLarge {
        /// The allocation of the request.
        allocation: AllocationId,
        /// The number of entries.
        entries: usize,
        /// Their total size.
        bytes: usize,
    },
    /// The limit of registrations is reached.
    #[error("limit of {held} registrations reached; deregister those that are gone")]
    Full {
        /// The number of registrations.
        held: usize,
    },
}

/// Removes the registrations of an allocation for these plugins. Atomic: all or none (R5). Idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Deregister {
    /// The plugins. Plugins that the allocation does not serve are ignored and missing in the answer (R4).
    pub plugins: Vec<PluginKey>,
    /// The allocation that served them.
    pub allocation: AllocationId,
    /// Why it leaves. If it failed while work was routed to it, it becomes active again only after a calm time (R1c).
    pub cause: LeaveCause,
}

/// Why an allocation leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaveCause {
    /// It was stopped in order.
    Stopped,
    /// Its process ended without a request, or hung.
    Failed,
}

/// The result of a [`Deregister`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Deregistered {
    /// These registrations were removed.
    Removed(Vec<PluginKey>),
    /// None was registered; nothing was published (R4).
    NotRegistered,
}

/// Reports the fitness of a registration. The registry routes accordingly, in this step (R1b). It is not stored: after a rebuild of
/// the registry its subscribers receive a snapshot, and the actors that watch the plugins report again.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReportFitness {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// The generation that was watched; a report about an earlier generation changes nothing (REG-08).
    pub generation: Generation,
    /// The fitness.
    pub fitness: Fitness,
}

/// Gives a registration a new generation, because another connection or process serves it from now on. If it is active, the change is
/// published as [`RegistryNews::ActiveChanged`]. Idempotent: only the present generation is replaced, and a provisional one is not, since
/// nothing serves it. Not gated: a generation that a crash takes back is never issued again.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Renew {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// The generation that has ended.
    pub generation: Generation,
}

/// Lists all registrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct List;

/// Describes one plugin: its active and standby registrations, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Describe {
    /// The plugin.
    pub plugin: PluginKey,
}

/// Describes every plugin that is registered, in order of type and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribePlugins;

/// Queries the registration of one allocation for one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RegistrationOf {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation.
    pub allocation: AllocationId,
}

/// Waits until a plugin has an active registration (R7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WaitForPlugin {
    /// The plugin.
    pub plugin: PluginKey,
    /// The timeout.
    pub within: Duration,
}

/// Why a plugin did not become active before the timeout.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WaitError {
    /// It is not registered (RES-01). It may still come.
    #[error(
        "{plugin} was not registered within {waited:?}; start an allocation that serves it, or wait longer"
    )]
    NotRegistered {
        /// The plugin.
        plugin: PluginKey,
        /// The timeout.
        waited: Duration,
    },
    /// It was restored after a restart, and neither its owner nor an identity check has confirmed it (R8).
    #[error(
        "{plugin} was restored but not confirmed within {waited:?}; it waits for {allocations:?} to register again"
    )]
    NotConfirmed {
        /// The plugin.
        plugin: PluginKey,
        /// The timeout.
        waited: Duration,
        /// The allocations that served it before the restart.
        allocations: Vec<AllocationId>,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for plugins; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Whether a registration is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// Its owner registered it in this run of the host, or an identity check confirmed it.
    Confirmed,
    /// It was restored from disk and is not confirmed yet; no work is routed to it (R8).
    Provisional,
}

/// A registration in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its position in the order of registrations (R2).
    pub number: RegistrationNumber,
    /// The contents from its owner.
    pub registration: Arc<Registration>,
    /// Its generation, which is that of its instance. Another socket, connection or process is another generation, and none is ever issued
    /// twice.
    pub generation: Generation,
    /// Whether it is confirmed.
    pub standing: Standing,
    /// When it was first registered.
    pub since: Timestamp,
}

/// The registration that work for a plugin is routed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Active {
    /// The generation of the registration. A generation that was fit while it was active does not become active again. A later one need
    /// not be greater, since a standby has its own generation before it takes over.
    pub generation: Generation,
    /// The contents from its owner.
    pub registration: Arc<Registration>,
    /// When it became active.
    pub since: Timestamp,
}

/// The state of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Description {
    /// The plugin.
    pub plugin: PluginKey,
    /// The registration that work is routed to, if any.
    pub active: Option<Active>,
    /// Why it is the active one at present; the reason for the change is in [`RegistryNews::ActiveChanged`].
    pub active_because: Option<ActiveBecause>,
    /// The policy by which it is chosen.
    pub policy: FailoverPolicy,
    /// Standby registrations, newest first.
    pub standby: Vec<Standby>,
    /// Restored registrations that are not confirmed, newest first.
    pub provisional: Vec<Entry>,
}

/// A confirmed registration that is not active.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Standby {
    /// The registration.
    pub entry: Entry,
    /// Why it is not active.
    pub inactive_because: InactiveBecause,
}

conversation! {
    /// The messages of the registry.
    #[derive(Clone, Hash)]
    pub enum RegistryAsk -> #[derive(Hash)] RegistryAnswer {
        Register => Result<Registered, RegisterError>,
        Deregister => Deregistered,
        ReportFitness => (),
        Renew => (),
        List => Vec<Entry>,
        // The largest answer by far. Each answer is moved several times on its way, so all are small.
        Describe => Box<Description>,
        DescribePlugins => Vec<Description>,
        RegistrationOf => Option<Entry>,
        WaitForPlugin => Result<Active, WaitError>,
    }
}

/// The notifications for subscribers. Each message publishes first the registrations, then changes of the active one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RegistryNews {
    /// A registration was created.
    Registered(Entry),
    /// The contents of a registration changed (R3), or it was confirmed (R8). It has another generation, unless only its policy
    /// changed: then an active registration stays active, and no [`Self::ActiveChanged`] follows.
    Updated(Entry),
    /// Another connection or process serves a registration: it has another generation.
    Renewed(Entry),
    /// A registration was removed.
    Deregistered(Entry, Departure),
    /// Work is routed elsewhere from now on (R1).
    ActiveChanged {
        /// The plugin.
        plugin: PluginKey,
        /// The registration before.
        from: Option<Active>,
        /// The registration from now on.
        to: Option<Active>,
        /// The reason.
        reason: ActiveReason,
    },
}

/// The view that subscribers receive as a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RegistryView {
    /// All registrations, oldest first.
    pub entries: Vec<Entry>,
    /// The active ones, by plugin.
    pub active: Vec<Active>,
}
