//! The only place of the shell that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::pauses::{self, NOTED_EVERY, Pause};
use crate::vocabulary::Timestamp;

/// The wall clock at the start of the host, plus the time that the runtime's clock has counted since, plus the time for which the
/// machine was suspended. So time is monotonic while a host runs, and it stands still while the runtime's clock is paused.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    origin_since_epoch: Duration,
    /// The total time for which the machine had been suspended at the origin; `None` for a clock that ignores suspension.
    suspended_before: Option<Duration>,
}

impl Clock {
    /// A clock that starts at the system's wall-clock time.
    #[must_use]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = Self::starting_at(Timestamp::from_epoch(since_epoch));
        Self { suspended_before: Some(pauses::suspended()), ..start }
    }

    /// A clock that starts at a given time, for scripts and tests.
    #[must_use]
    pub fn starting_at(now: Timestamp) -> Self {
        Self { origin: Instant::now(), origin_since_epoch: now.since_epoch(), suspended_before: None }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let suspended = self.suspended_before.map(|before| pauses::suspended().saturating_sub(before));
        Timestamp::from_epoch(self.origin_since_epoch + self.origin.elapsed() + suspended.unwrap_or_default())
    }

    /// The latest time that this clock can have shown before a pause: whatever was set by then was set before the pause.
    pub(super) fn last_before(&self, pause: &Pause) -> Timestamp {
        let ago = pause.until.elapsed() + pause.length();
        Timestamp::from_epoch(self.now().since_epoch().saturating_sub(ago)) + NOTED_EVERY
    }
}
