//! The only place of the shell that reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::vocabulary::Timestamp;

/// The wall clock at the start of the host, plus the time that the runtime's clock has counted since. So time is monotonic
/// while a host runs, and it stands still while the runtime's clock is paused.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    origin_since_epoch: Duration,
}

impl Clock {
    /// A clock that starts at the system's wall-clock time.
    #[must_use]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Timestamp::from_epoch(since_epoch))
    }

    /// A clock that starts at a given time, for scripts and tests.
    #[must_use]
    pub fn starting_at(now: Timestamp) -> Self {
        Self { origin: Instant::now(), origin_since_epoch: now.since_epoch() }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_epoch(self.origin_since_epoch + self.origin.elapsed())
    }
}
