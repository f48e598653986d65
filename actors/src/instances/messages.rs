//! What can be said to the supervisor of the instances, and what it says.

use std::sync::Arc;
use std::time::Duration;

use crate::vocabulary::{AllocationId, CsiFingerprint, Generation, Health, PluginKey, SocketPath, Timestamp};

/// What is known of one plugin's instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceReport {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Who serves it.
    pub allocation: AllocationId,
    /// Where.
    pub socket: SocketPath,
    /// Which generation this is.
    pub generation: Generation,
    /// Its health: what is shown here is what routes (I2, HLT-03).
    pub health: Health,
    /// Since when it has had this health.
    pub since: Timestamp,
    /// What it last reported of itself; kept while it is unhealthy.
    pub fingerprint: Option<Arc<CsiFingerprint>>,
    /// Oddities that do not keep it from serving, such as capabilities that differ between instances of one version (C032).
    pub remarks: Vec<String>,
}

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

/// Asks for a look at a plugin now instead of at its next round, and for what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckNow {
    /// Which plugin.
    pub plugin: PluginKey,
}

/// Asks for the health of an allocation's instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthOf {
    /// Whose instances.
    pub allocation: AllocationId,
}

/// Waits until no instance talks to an allocation any more: calls in flight have ended and the connection is closed (A4).
/// Send it after the allocation was deregistered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitRetired {
    /// Whose instances.
    pub allocation: AllocationId,
}

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstancesNews {
    /// An instance came, or its health or fingerprint changed.
    Reported(InstanceReport),
    /// A plugin has no instance any more; this is its last report, with health `Gone` (HLT-08).
    Left(InstanceReport),
    /// Every plugin that was registered when the host started is known by now, one way or the other, and so is the end of
    /// the registry's restored registrations: what is missing is not expected.
    Settled,
}

/// Everything subscribers may know of the instances.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstancesView {
    /// One report for each plugin that has an instance, by plugin.
    pub reports: Vec<InstanceReport>,
    /// Whether [`InstancesNews::Settled`] has been said.
    pub settled: bool,
}
