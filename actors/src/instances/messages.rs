//! What can be said to the supervisor of the instances, and what it says.

use std::sync::Arc;
use std::time::Duration;

use super::state::Instances;
use crate::conversation;
pub use crate::instance::InstanceReport;
use crate::shell::Vitals;
use crate::vocabulary::{AllocationId, Attempt, CsiFingerprint, Generation, PluginKey, SocketPath};

/// Asks for a plugin to send work to (Nomad calls this dispensing). Three answers (RES-01): it, not yet, no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispense {
    /// Which plugin.
    pub plugin: PluginKey,
    /// How long to wait for it to become healthy; zero asks for the present.
    pub within: Duration,
}

/// A healthy plugin. The generation says for how long this holds: a later one replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispensed {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Who serves it.
    pub allocation: AllocationId,
    /// Where.
    pub socket: SocketPath,
    /// Which generation.
    pub generation: Generation,
    /// What it reported of itself.
    pub fingerprint: Arc<CsiFingerprint>,
}

/// Why a plugin cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispenseError {
    /// No allocation serves it now. It may come.
    #[error("no allocation serves {plugin} (waited {waited:?}); start one")]
    NotServed {
        /// Which plugin.
        plugin: PluginKey,
        /// How long was waited.
        waited: Duration,
    },
    /// It is there and has not answered in full yet.
    #[error("{plugin} of allocation {allocation} is not ready yet (waited {waited:?}); wait longer")]
    NotReady {
        /// Which plugin.
        plugin: PluginKey,
        /// Who serves it.
        allocation: AllocationId,
        /// How long was waited.
        waited: Duration,
    },
    /// It is there and does not serve.
    #[error("{plugin} of allocation {allocation} is unhealthy (waited {waited:?}): {reason}")]
    Unhealthy {
        /// Which plugin.
        plugin: PluginKey,
        /// Who serves it.
        allocation: AllocationId,
        /// What was tried and what came back.
        reason: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("{plugin} is not given out any more: the host is stopping")]
    Stopping {
        /// Which plugin.
        plugin: PluginKey,
    },
    /// Too many wait already.
    #[error("{waiting} others wait for plugins already; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// Asks for a look at a plugin now instead of at its next round, and for what was seen. An instance that was given up is
/// started again by this, and is answered for as it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckNow {
    /// Which plugin.
    pub plugin: PluginKey,
}

/// Why a plugin cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// No allocation serves it.
    #[error("no allocation serves {plugin}; start one")]
    NotServed {
        /// Which plugin.
        plugin: PluginKey,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("{plugin} is not looked at any more: the host is stopping")]
    Stopping {
        /// Which plugin.
        plugin: PluginKey,
    },
    /// Too many wait already.
    #[error("{waiting} others wait for plugins already; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// Asks for the health of an allocation's instances. The answer is empty if it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthOf {
    /// Whose instances.
    pub allocation: AllocationId,
}

/// Waits until no instance talks to an allocation any more: calls in flight have ended and the connection is closed (A4,
/// SHD-04). Send it after the allocation was deregistered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitRetired {
    /// Whose instances.
    pub allocation: AllocationId,
}

/// Why it cannot be said that an allocation's instances have retired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AwaitRetiredError {
    /// An instance still talks to it; most likely it was not deregistered.
    #[error("an instance still talks to allocation {allocation} (waited {waited:?}); deregister it first")]
    StillServing {
        /// Whose instance.
        allocation: AllocationId,
        /// How long was waited.
        waited: Duration,
    },
    /// Too many wait already.
    #[error("{waiting} others wait for plugins already; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
}

/// Asks for every instance as its supervisor sees it, for the tree of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribeInstances;

/// One instance as its supervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceStatus {
    /// What is known of its plugin.
    pub report: InstanceReport,
    /// What its actor is at.
    pub state: InstanceState,
    /// How often its actor was started again after it ended unexpectedly, in this generation.
    pub restarts: u64,
    /// What can be seen of its actor; `None` while there is none.
    pub vitals: Option<Vitals>,
}

/// What the actor of an instance is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceState {
    /// It runs.
    Running,
    /// It has been told to end, and has not ended yet.
    Retiring,
    /// It ended unexpectedly and is started again after a pause.
    Pausing,
    /// It ended unexpectedly too often, and is not started again until its plugin is registered anew or checked.
    GivenUp,
}

impl InstanceState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Retiring => "retiring",
            Self::Pausing => "pausing",
            Self::GivenUp => "given-up",
        }
    }
}

/// Says what an instance reports. Said by the instances themselves; from anyone else it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceReported {
    /// Which life of which instance says so: what an earlier one says late changes nothing (REG-08).
    pub life: Attempt,
    /// What it says.
    pub report: InstanceReport,
}

conversation! {
    /// What is said to the supervisor of the instances.
    #[derive(Clone)]
    pub enum InstancesAsk -> InstancesAnswer for Instances {
        Dispense => Result<Dispensed, DispenseError>,
        CheckNow => Result<InstanceReport, CheckError>,
        HealthOf => Vec<InstanceReport>,
        AwaitRetired => Result<(), AwaitRetiredError>,
        DescribeInstances => Vec<InstanceStatus>,
        InstanceReported => (),
    }
}

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstancesNews {
    /// These plugins were registered when the host started. Once it is known of each what became of it,
    /// [`InstancesNews::Settled`] follows.
    Expected(Vec<PluginKey>),
    /// An instance came, or its health or fingerprint changed. With health `Gone` nothing is routed to it any more, while
    /// it still ends what is in flight; a successor or [`InstancesNews::Left`] follows.
    Reported(InstanceReport),
    /// A plugin has no instance any more; this is its last report, with health `Gone` (HLT-08).
    Left(InstanceReport),
    /// Every plugin that was registered when the host started is known by now, one way or the other: healthy, unhealthy,
    /// or gone, also since nobody confirmed it (R8). What is missing is not expected.
    Settled,
}

/// Everything subscribers may know of the instances.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstancesView {
    /// One report for each plugin that has an instance, by plugin.
    pub reports: Vec<InstanceReport>,
    /// Which plugins of [`InstancesNews::Expected`] have not been heard of.
    pub expected: Vec<PluginKey>,
    /// Whether [`InstancesNews::Settled`] has been said.
    pub settled: bool,
}
