//! What an instance is made of, and what it remembers.

use std::sync::Arc;
use std::time::Duration;

use super::messages::InstanceReport;
use super::reading::Reading;
use crate::csi::{Answer, Limits, Rpc};
use crate::shell::AskId;
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, BackoffState, CsiFingerprint, Generation, PluginKey, PluginType,
    SocketPath,
};

/// How many questions for a look may wait; one more is answered with what is known.
pub(super) const LOOKS_WAITING_MAX: usize = 256;

/// Which half of a CSI plugin an instance talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// The controller.
    Controller,
    /// The node.
    Node,
}

impl Half {
    /// The half that a plugin of this type is; `None` for what is no CSI plugin.
    #[must_use]
    pub const fn of(plugin_type: PluginType) -> Option<Self> {
        match plugin_type {
            PluginType::CsiController => Some(Self::Controller),
            PluginType::CsiNode => Some(Self::Node),
            PluginType::Driver | PluginType::Device => None,
        }
    }
}

/// Limits of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceLimits {
    /// How often a healthy plugin is probed. 30 s by default.
    pub round: Duration,
    /// How far a round is spread, in percent of itself to either side. 10 by default.
    pub round_jitter_percent: u32,
    /// How long each call may take. 10 s by default.
    pub call_deadline: Duration,
    /// Limits of the connection.
    pub connection: Limits,
    /// How many rounds in a row must fail before a healthy plugin counts as unhealthy (I5). 1 by default. A lost connection
    /// counts at once, since what was read over it says nothing of who listens there next.
    pub failures_until_unhealthy: u32,
    /// How soon to look again after a failure, and while the plugin is not ready. 500 ms to 30 s by default.
    pub backoff: Backoff,
    /// How long a call that is in flight may still take when the instance retires. 4 s by default.
    pub retire_deadline: Duration,
}

impl Default for InstanceLimits {
    fn default() -> Self {
        Self {
            round: Duration::from_secs(30),
            round_jitter_percent: 10,
            call_deadline: Duration::from_secs(10),
            connection: Limits::default(),
            failures_until_unhealthy: 1,
            backoff: Backoff { first: Duration::from_millis(500), ..Backoff::default() },
            retire_deadline: Duration::from_secs(4),
        }
    }
}

/// What an instance is born with.
#[derive(Debug, Clone)]
pub struct InstanceConfig {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Which half of it; that of the plugin's type.
    pub half: Half,
    /// Who serves it.
    pub allocation: AllocationId,
    /// Where it listens.
    pub socket: SocketPath,
    /// Which generation this is.
    pub generation: Generation,
    /// The name by which the plugin was registered, if that is known (C031).
    pub expected_provider: Option<Arc<str>>,
    /// What the generation before this one reported (C031, C032).
    pub predecessor: Option<Arc<CsiFingerprint>>,
    /// Its limits.
    pub limits: InstanceLimits,
}

/// What an instance has done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceCall {
    /// Drop the connection there was and make a new one.
    Dial,
    /// Ask over the connection there is.
    Ask(Rpc),
}

/// What came of an [`InstanceCall`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// The connection is open.
    Connected,
    /// The plugin answered.
    Answered(Answer),
}

/// What an instance waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceTimer {
    /// The next look.
    Look,
    /// The end of its patience with the call in flight, when it retires.
    Retire,
}

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The plugin is being asked.
    Asked(InstanceCall),
    /// The plugin is left in peace until the next look.
    Resting,
    /// No more calls are made; the last one is on its way.
    Retiring,
    /// It is over.
    Gone,
}

/// What is known of the connection.
#[derive(Debug, Clone)]
pub(super) enum Link {
    /// There is none, or it is lost.
    Down,
    /// It is open, and this was read over it.
    Up(Box<Reading>),
}

/// The machine: see the [module](super).
#[derive(Debug, Clone)]
pub struct Instance {
    pub(super) config: InstanceConfig,
    pub(super) phase: Phase,
    pub(super) link: Link,
    pub(super) report: InstanceReport,
    pub(super) told: Option<InstanceReport>,
    pub(super) attempt: Attempt,
    pub(super) failures: u32,
    pub(super) backoff: BackoffState,
    pub(super) waiting: Vec<AskId>,
    pub(super) retiring: Vec<AskId>,
}
