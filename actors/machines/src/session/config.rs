//! What a session is born with.

use std::sync::Arc;
use std::time::Duration;

use super::ending::STOP_MARGIN;
use crate::kernel::CALL_GRACE;
use crate::process::ProcessSpec;
use crate::vocabulary::Backoff;

/// What a session is there for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionMode {
    /// To serve.
    Serve,
    /// To end what an earlier run of the host left of the plugin, once that has been proven to be it. Nothing is launched.
    Retire,
}

/// What a session is born with.
#[derive(Debug, Clone, Hash)]
pub struct SessionConfig {
    /// The process that serves the plugin, as it is launched.
    pub process: Arc<ProcessSpec>,
    /// Why no process of it is launched. One that an earlier run of the host left is found again all the same, and keeps the
    /// configuration that it was given then.
    pub not_launched: Option<String>,
    /// Whether a process of it that an earlier run of the host left is kept, whatever it was launched from.
    pub adopts_any: bool,
    /// How long its process may take to end when it is stopped, counted from the polite request (SHD-07).
    pub stop_grace: Duration,
    /// How long the polite request itself may take (D65).
    pub polite_deadline: Duration,
    /// What it is there for.
    pub mode: SessionMode,
    /// Its limits.
    pub limits: SessionLimits,
}

/// Limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionLimits {
    /// How soon to try again after a failure, the first or any later one (HLT-04, HLT-05).
    pub backoff: Backoff,
    /// How long each step to a plugin that is watched may take.
    pub step_deadline: Duration,
    /// How long the first fingerprint may take.
    pub fingerprint_deadline: Duration,
    /// How long to wait before the next fingerprint is read.
    pub fingerprint_pause: Duration,
    /// How often a plugin that is watched is pinged; `None`: never.
    pub ping_every: Option<Duration>,
    /// After how many failures in a row without an answer the process is ended and another one launched.
    pub silent_until_replaced: u32,
    /// How long calls in flight may take to end when the plugin is stopped or restarted; then they are cut.
    pub drain_deadline: Duration,
}

impl SessionConfig {
    /// The longest that the steps of an end may take together, for callers that wait for one.
    #[must_use]
    pub const fn ending_deadline(&self) -> Duration {
        let drain = self.limits.drain_deadline.saturating_add(CALL_GRACE);
        let polite = drain.saturating_add(self.polite_deadline).saturating_add(CALL_GRACE);
        polite.saturating_add(self.stop_grace).saturating_add(STOP_MARGIN.saturating_mul(2))
    }
}
