//! The messages and notifications of the supervisor of instances.

use std::sync::Arc;
use std::time::Duration;

use crate::conversation;
pub use crate::instance::InstanceReport;
use crate::kernel::Vitals;
use crate::lease::LeasedCalls;
use crate::supervisor::ChildState;
use crate::vocabulary::{
    AllocationId, Attempt, CsiFingerprint, Generation, PluginKey, SocketPath, told_wait,
};

/// Dispenses a plugin to send work to, as in Nomad. There are three answers (RES-01): the plugin, not yet, no.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dispense {
    /// The plugin.
    pub plugin: PluginKey,
    /// The timeout for it to become healthy; zero returns the present state.
    pub within: Duration,
}

/// A healthy plugin. It is valid for its generation: a later one replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dispensed {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// Its socket.
    pub socket: SocketPath,
    /// Its generation.
    pub generation: Generation,
    /// Its fingerprint.
    pub fingerprint: Arc<CsiFingerprint>,
}

/// Why a plugin is not available now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DispenseError {
    /// No allocation serves it now. One may come later.
    #[error("no allocation serves {plugin}{}; start one", told_wait(*waited))]
    NotServed {
        /// The plugin.
        plugin: PluginKey,
        /// How long the caller waited.
        waited: Duration,
    },
    /// It is registered, and its fingerprint is not complete yet.
    #[error("{plugin} of allocation {allocation} is not ready yet{}; wait longer", told_wait(*waited))]
    NotReady {
        /// The plugin.
        plugin: PluginKey,
        /// The allocation that serves it.
        allocation: AllocationId,
        /// How long the caller waited.
        waited: Duration,
    },
    /// It is registered and unhealthy.
    #[error("{plugin} of allocation {allocation} is unhealthy{}: {reason}", told_wait(*waited))]
    Unhealthy {
        /// The plugin.
        plugin: PluginKey,
        /// The allocation that serves it.
        allocation: AllocationId,
        /// The failed operation and its error.
        reason: String,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot provide {plugin}: the host is stopping")]
    Stopping {
        /// The plugin.
        plugin: PluginKey,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for plugins; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Checks a plugin now instead of in its next round, and returns the result. It restarts an instance that was given up, and
/// returns its report after the start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckNow {
    /// The plugin.
    pub plugin: PluginKey,
}

/// Why a plugin cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CheckError {
    /// No allocation serves it.
    #[error("no allocation serves {plugin}; start one")]
    NotServed {
        /// The plugin.
        plugin: PluginKey,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot describe {plugin}: the host is stopping")]
    Stopping {
        /// The plugin.
        plugin: PluginKey,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for plugins; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Queries the health of an allocation's instances. The answer is empty if it has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HealthOf {
    /// The allocation.
    pub allocation: AllocationId,
}

/// Waits until no instance is connected to an allocation: calls in flight have ended and the connection is closed (A4,
/// SHD-04). Send it after the allocation was deregistered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AwaitRetired {
    /// The allocation.
    pub allocation: AllocationId,
}

/// Why the retirement of an allocation's instances cannot be confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AwaitRetiredError {
    /// An instance is still connected to it; most likely it was not deregistered.
    #[error("an instance still talks to allocation {allocation}{}; deregister it first", told_wait(*waited))]
    StillServing {
        /// The allocation.
        allocation: AllocationId,
        /// How long the caller waited.
        waited: Duration,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for plugins; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Waits until all these plugins of an allocation have been healthy for a while, without a break: the gate of a rolling replacement
/// (F16). Active or standby makes no difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AwaitHealthy {
    /// The allocation.
    pub allocation: AllocationId,
    /// The plugins that it serves; a monolith serves two.
    pub plugins: Vec<PluginKey>,
    /// How long they must have been healthy.
    pub healthy_for: Duration,
    /// The timeout.
    pub within: Duration,
}

/// Why an allocation has not been healthy for long enough.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AwaitHealthyError {
    /// The timeout is over.
    #[error("allocation {allocation} was not healthy in time{}: {reason}", told_wait(*waited))]
    NotHealthy {
        /// The allocation.
        allocation: AllocationId,
        /// The condition that was not met at the end.
        reason: String,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot wait for the health of allocation {allocation}: the host is stopping")]
    Stopping {
        /// The allocation.
        allocation: AllocationId,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for plugins; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

/// Queries every instance as its supervisor sees it, for the tree of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribeInstances;

/// One instance as its supervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceStatus {
    /// The last report of its plugin.
    pub report: InstanceReport,
    /// Whether work is routed to its registration; the others stand by.
    pub is_active: bool,
    /// The state of its actor.
    pub state: InstanceState,
    /// How often its actor was restarted after a crash, in this generation.
    pub restarts: u64,
    /// The counters of its actor; `None` while there is none.
    pub vitals: Option<Vitals>,
    /// The leases of its plugin, and the calls in flight.
    pub calls: LeasedCalls,
}

/// The state of an instance's actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceState {
    /// It runs.
    Running,
    /// It was asked to retire, and has not ended yet.
    Retiring,
    /// Its connection has ended, and its successor waits for a new generation.
    Renewing,
    /// It crashed or lost its connection repeatedly, and is restarted after a pause.
    Pausing,
    /// It crashed too often, and is not restarted until its plugin is registered again or checked.
    GivenUp,
}

impl InstanceState {
    /// The state as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Retiring => "retiring",
            Self::Renewing => "renewing",
            Self::Pausing => "pausing",
            Self::GivenUp => "given-up",
        }
    }
}

impl From<ChildState<Generation>> for InstanceState {
    fn from(state: ChildState<Generation>) -> Self {
        match state {
            ChildState::Running(_) => Self::Running,
            ChildState::Stopping(_) => Self::Retiring,
            ChildState::Waiting(_) => Self::Renewing,
            ChildState::Pausing => Self::Pausing,
            ChildState::GivenUp => Self::GivenUp,
        }
    }
}

/// The report of an instance to its supervisor. From any other sender it has no effect.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceReported {
    /// The life of the instance; a late report of an earlier life is ignored (REG-08).
    pub life: Attempt,
    /// The report.
    pub report: InstanceReport,
}

conversation! {
    /// The messages of the supervisor of instances.
    #[derive(Clone, Hash)]
    pub enum InstancesAsk -> #[derive(Hash)] InstancesAnswer {
        Dispense => Result<Dispensed, DispenseError>,
        CheckNow => Result<InstanceReport, CheckError>,
        HealthOf => Vec<InstanceReport>,
        AwaitRetired => Result<(), AwaitRetiredError>,
        AwaitHealthy => Result<(), AwaitHealthyError>,
        DescribeInstances => Vec<InstanceStatus>,
        InstanceReported => (),
    }
}

/// The notifications of the supervisor of instances.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InstancesNews {
    /// These plugins were registered when the host started. [`InstancesNews::Settled`] follows once all states are known.
    Expected(Vec<PluginKey>),
    /// The instance of the active registration of a plugin was started, its health or fingerprint changed, or another registration took
    /// over. With health `Gone` nothing is routed to it, while calls in flight still end; a successor or
    /// [`InstancesNews::Left`] follows.
    Reported(InstanceReport),
    /// The same for the instance of a registration that stands by (R1d). With health `Gone` it has left.
    Standby(InstanceReport),
    /// A plugin no longer has an active registration; this is its last report, with health `Gone` (HLT-08).
    Left(InstanceReport),
    /// The state of every plugin that was registered when the host started is known: healthy, unhealthy, or gone, also
    /// because it was not confirmed (R8). No other plugin is expected.
    Settled,
}

/// The view that subscribers receive as a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct InstancesView {
    /// The report of each plugin's active registration, ordered by plugin.
    pub reports: Vec<InstanceReport>,
    /// The reports of those that stand by, ordered by plugin and allocation.
    pub standby: Vec<InstanceReport>,
    /// The plugins of [`InstancesNews::Expected`] that are not settled yet.
    pub expected: Vec<PluginKey>,
    /// Whether [`InstancesNews::Settled`] was published.
    pub settled: bool,
}
