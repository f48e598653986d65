//! The one place of the shell that looks at a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::vocabulary::Timestamp;

/// Tells the time: the wall clock as it was when the host started, plus what the runtime's clock counted since. So time
/// never goes back while a host runs, and it stands still where the runtime's clock is paused.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    origin_since_epoch: Duration,
}

impl Clock {
    /// A clock that starts from the system's wall clock.
    #[must_use]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Timestamp::from_epoch(since_epoch))
    }

    /// A clock that shows a given time now, for scripts and tests.
    #[must_use]
    pub fn starting_at(now: Timestamp) -> Self {
        Self { origin: Instant::now(), origin_since_epoch: now.since_epoch() }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_epoch(self.origin_since_epoch + self.origin.elapsed())
    }
}
