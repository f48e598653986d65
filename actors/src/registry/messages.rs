//! What can be said to the registry, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::vocabulary::{
    AllocationId, Generation, PluginKey, Registration, RegistrationNumber, SocketPath, Timestamp,
};

/// Says that an allocation serves one or more plugins at a socket (R1). With several plugins (a monolith is controller and
/// node) all are registered or none (R5). Sent again with other contents it is an update (R3); sent again with the same
/// contents it changes nothing, except that a restored registration is thereby confirmed (R8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Which plugins; at least one, none twice.
    pub plugins: Vec<PluginKey>,
    /// Who serves them.
    pub allocation: AllocationId,
    /// Where it listens.
    pub socket: SocketPath,
    /// The name the plugin gives itself, if known (C030).
    pub provider: Option<Arc<str>>,
    /// The version the plugin gives itself, if known.
    pub version: Option<Arc<str>>,
    /// What the host wants to find again beside it. At most 64 entries and 4 KiB in all. They are stored in the clear: no
    /// secret belongs here (P6).
    pub options: Arc<BTreeMap<String, String>>,
}

/// What became of a [`Register`]. Its consequences are on disk when this arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// It was not there before and is now.
    New,
    /// It was there with other contents.
    Updated,
    /// It was there with these contents. Nothing was published, unless it was restored and is hereby confirmed (R8).
    Unchanged,
}

/// Why a [`Register`] was refused. Nothing has changed (R9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// It named no plugin.
    #[error("allocation {allocation} registers no plugin; name at least one")]
    NoPlugin {
        /// Who registered.
        allocation: AllocationId,
    },
    /// It named one plugin twice.
    #[error("allocation {allocation} registers {plugin} twice in one message")]
    PluginTwice {
        /// Who registered.
        allocation: AllocationId,
        /// What was named twice.
        plugin: PluginKey,
    },
    /// Its options are too many or too long.
    #[error(
        "allocation {allocation} registers with {entries} options of {bytes} bytes; at most 64 options and 4096 bytes are kept"
    )]
    OptionsTooLarge {
        /// Who registered.
        allocation: AllocationId,
        /// How many entries there are.
        entries: usize,
        /// How long they are together.
        bytes: usize,
    },
    /// There is no room for more.
    #[error("{held} registrations are held and no more are taken; deregister what is gone")]
    Full {
        /// How many there are.
        held: usize,
    },
}

/// Says that an allocation serves these plugins no more. All go or none (R5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deregister {
    /// Which plugins. Those that the allocation does not serve are left out of the answer and harm nothing (R4).
    pub plugins: Vec<PluginKey>,
    /// Who served them.
    pub allocation: AllocationId,
}

/// What became of a [`Deregister`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deregistered {
    /// These were registered and are not any more.
    Removed(Vec<PluginKey>),
    /// None was registered; nothing was published (R4).
    NotRegistered,
}

/// Asks for all registrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List;

/// Asks for one plugin: who is active, who stands by, since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Describe {
    /// Which plugin.
    pub plugin: PluginKey,
}

/// Asks for the registration of one allocation with one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationOf {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Who serves it.
    pub allocation: AllocationId,
}

/// Waits until a plugin has an active registration (R7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitForPlugin {
    /// Which plugin.
    pub plugin: PluginKey,
    /// How long to wait at most.
    pub within: Duration,
}

/// Why a plugin did not come in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// Not yet: nobody has registered it (RES-01). It may still come.
    #[error(
        "{plugin} was not registered within {waited:?}; start an allocation that serves it, or wait longer"
    )]
    NotRegistered {
        /// What was waited for.
        plugin: PluginKey,
        /// How long.
        waited: Duration,
    },
    /// Not yet: it is known from before the restart, and neither its owner nor an identity check has confirmed it (R8).
    #[error(
        "{plugin} was restored but not confirmed within {waited:?}; it waits for {allocations:?} to register again"
    )]
    NotConfirmed {
        /// What was waited for.
        plugin: PluginKey,
        /// How long.
        waited: Duration,
        /// Who served it before.
        allocations: Vec<AllocationId>,
    },
    /// Too many wait already.
    #[error("{waiting} others wait for plugins already; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// How sure the registry is of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// Its owner registered it in this run of the host, or an identity check proved it.
    Confirmed,
    /// It was restored from disk and waits to be confirmed; it is never routed to (R8).
    Provisional,
}

/// A registration as the registry holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the order of registrations (R2).
    pub number: RegistrationNumber,
    /// What its owner said.
    pub registration: Arc<Registration>,
    /// How sure it is.
    pub standing: Standing,
    /// When it was first registered.
    pub since: Timestamp,
}

/// The registration that work for a plugin is routed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    /// Grows with each change of the active registration, also when its contents change.
    pub generation: Generation,
    /// What its owner said.
    pub registration: Arc<Registration>,
    /// When it became active.
    pub since: Timestamp,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Whom work is routed to, if anyone.
    pub active: Option<Active>,
    /// Who would take over, the next one first.
    pub standby: Vec<Entry>,
    /// Who is known from before the restart and has not been confirmed, the newest first.
    pub provisional: Vec<Entry>,
}

/// Why a registration left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// Its owner deregistered it.
    Deregistered,
    /// It was restored and nobody confirmed it in time (R8).
    NotConfirmed,
}

/// What subscribers are told. Each message to the registry gives its news in this order: registrations first, then who is
/// active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryNews {
    /// A registration came.
    Registered(Entry),
    /// The contents of a registration changed (R3), or it was confirmed (R8).
    Updated(Entry),
    /// A registration left.
    Deregistered(Entry, Departure),
    /// Work is routed elsewhere from now on (R1).
    ActiveChanged {
        /// Which plugin.
        plugin: PluginKey,
        /// Whom it was routed to.
        from: Option<Active>,
        /// Whom it is routed to.
        to: Option<Active>,
    },
}

/// Everything subscribers may know of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegistryView {
    /// All registrations, oldest first.
    pub entries: Vec<Entry>,
    /// The active ones, by plugin.
    pub active: Vec<Active>,
}
