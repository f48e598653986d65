//! The configuration of a session.

use std::sync::Arc;
use std::time::Duration;

use super::ending::STOP_MARGIN;
use crate::kernel::CALL_GRACE;
use crate::process::ProcessSpec;
use crate::vocabulary::Backoff;

/// The purpose of a session.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionMode {
    /// To serve.
    Serve,
    /// To end the leftover process of an earlier run of the host, once it is proven to be the plugin's. Nothing is launched.
    Retire,
}

/// The configuration of a session.
#[derive(Debug, Clone, Hash)]
pub struct SessionConfig {
    /// The spec of the process that serves the plugin.
    pub process: Arc<ProcessSpec>,
    /// Why no process is launched. A process that an earlier run of the host left is still found again, and keeps the
    /// configuration that it received then.
    pub not_launched: Option<String>,
    /// Whether a process that an earlier run of the host left is kept, regardless of its spec.
    pub adopts_any: bool,
    /// The grace for its process to end when it is stopped, counted from the shutdown request (SHD-07).
    pub stop_grace: Duration,
    /// The deadline of the shutdown request itself (D65).
    pub polite_deadline: Duration,
    /// Its purpose.
    pub mode: SessionMode,
    /// Its limits.
    pub limits: SessionLimits,
}

/// Limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionLimits {
    /// The backoff after a failure, the first or any later one (HLT-04, HLT-05).
    pub backoff: Backoff,
    /// The deadline of each step towards a watched plugin.
    pub step_deadline: Duration,
    /// The deadline of the first fingerprint.
    pub fingerprint_deadline: Duration,
    /// The pause before the next fingerprint is read.
    pub fingerprint_pause: Duration,
    /// How often a watched plugin is pinged; `None`: never.
    pub ping_every: Option<Duration>,
    /// The number of consecutive failures without an answer after which the process is ended and another one launched.
    pub silent_until_replaced: u32,
    /// The deadline for calls in flight to end when the plugin is stopped or restarted; then they are cut.
    pub drain_deadline: Duration,
}

impl SessionConfig {
    /// The longest total time of the steps of an end, for callers that wait for one.
    #[must_use]
    pub const fn ending_deadline(&self) -> Duration {
        let drain = self.limits.drain_deadline.saturating_add(CALL_GRACE);
        let polite = drain.saturating_add(self.polite_deadline).saturating_add(CALL_GRACE);
        polite.saturating_add(self.stop_grace).saturating_add(STOP_MARGIN.saturating_mul(2))
    }
}
