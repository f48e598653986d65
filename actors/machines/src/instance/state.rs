//! The configuration and the state of an instance.

use std::sync::Arc;
use std::time::Duration;

use super::messages::InstanceReport;
use super::reading::Reading;
use crate::csi::{Answer, Limits, Rpc};
use crate::kernel::{AskId, LastNews, OneCall};
use crate::lease::RetireCause;
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, BackoffState, CsiFingerprint, Generation, PluginKey, PluginType,
    SocketPath,
};

/// The limit of callers that wait for a check. One more caller is answered with the present state.
pub(super) const LOOKS_WAITING_MAX: usize = 256;

/// The half of a CSI plugin that an instance talks to.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// The controller.
    Controller,
    /// The node.
    Node,
}

impl Half {
    /// The half of a plugin of this type; `None` if it is not a CSI plugin.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstanceLimits {
    /// How often a healthy plugin is probed. 30 s by default.
    pub round: Duration,
    /// The jitter of a round, in percent of itself to either side. 10 by default.
    pub round_jitter_percent: u32,
    /// The timeout of each call. 10 s by default.
    pub call_deadline: Duration,
    /// The limits of the connection.
    pub connection: Limits,
    /// How many consecutive rounds must fail before a healthy plugin is unhealthy (I5). 1 by default. A lost connection
    /// counts at once, since another process may listen there next.
    pub failures_until_unhealthy: u32,
    /// How many consecutive rounds must fail before a standby takes over (R1b). 3 by default; at least `failures_until_unhealthy`.
    /// A failed first check over a new connection, and a plugin that cannot be connected to, are not tolerated.
    pub failures_until_unfit: u32,
    /// The backoff after a failure, and while the plugin is not ready. 500 ms to 30 s by default.
    pub backoff: Backoff,
    /// The timeout of the calls in flight when the instance retires, those of leases included; then they are cut. 4 s by default.
    pub retire_deadline: Duration,
    /// The limit of calls in flight over leases (F17). One more call is refused at once. 256 by default.
    pub calls_max: usize,
}

impl InstanceLimits {
    /// The number of failures until it is unfit, at least those until it is unhealthy: a plugin that is shown as healthy is not left.
    #[must_use]
    pub fn failures_until_unfit(&self) -> u32 {
        self.failures_until_unfit.max(self.failures_until_unhealthy)
    }
}

impl Default for InstanceLimits {
    fn default() -> Self {
        Self {
            round: Duration::from_secs(30),
            round_jitter_percent: 10,
            call_deadline: Duration::from_secs(10),
            connection: Limits::default(),
            failures_until_unhealthy: 1,
            failures_until_unfit: 3,
            backoff: Backoff { first: Duration::from_millis(500), ..Backoff::default() },
            retire_deadline: Duration::from_secs(4),
            calls_max: 256,
        }
    }
}

/// The configuration of an instance.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct InstanceConfig {
    /// The plugin.
    pub plugin: PluginKey,
    /// Its half, given by the plugin's type.
    pub half: Half,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// Its socket.
    pub socket: SocketPath,
    /// The generation of the registration, which is also the generation of this instance's connection.
    pub generation: Generation,
    /// The name under which the plugin was registered, if known (C031).
    pub expected_provider: Option<Arc<str>>,
    /// The fingerprint of the generation that served last (C031, C032).
    pub predecessor: Option<Arc<CsiFingerprint>>,
    /// The last report of the former instance of the same registration, used until the first check is over.
    pub former: Option<Box<InstanceReport>>,
    /// Its limits.
    pub limits: InstanceLimits,
}

/// The calls of an instance.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstanceCall {
    /// Open the connection.
    Dial,
    /// Make this RPC over the present connection.
    Ask(Rpc),
    /// Admit no more calls over the present connection for this reason, and wait until none is in flight.
    Drain(RetireCause),
}

/// The outcome of an [`InstanceCall`].
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// The connection is open.
    Connected {
        /// Its number, counted from the first dial of the instance.
        connection: Attempt,
    },
    /// The plugin answered; with remarks about the answer.
    Answered(Answer, Vec<String>),
    /// No call is in flight.
    Drained,
}

/// The timers of an instance.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstanceTimer {
    /// The next check.
    Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Asked(InstanceCall),
    Resting,
    /// No more calls are made; those in flight may end.
    Retiring,
    Gone,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum Link {
    /// There is none yet.
    Down,
    /// It is open; the reading was made over it.
    Up { connection: Attempt, reading: Box<Reading> },
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Instance {
    pub(super) config: InstanceConfig,
    pub(super) phase: Phase,
    pub(super) link: Link,
    pub(super) report: InstanceReport,
    pub(super) told: LastNews<InstanceReport>,
    /// The call of the check, or of the end.
    pub(super) pending: OneCall,
    /// Whether it was healthy at any time.
    pub(super) was_healthy: bool,
    pub(super) failures: u32,
    pub(super) backoff: BackoffState,
    pub(super) waiting: Vec<AskId>,
    pub(super) retiring: Vec<AskId>,
}
