//! How long the pause between two tries may be: a plain count beside the machine's own.

use std::time::Duration;

use callboard_actors::vocabulary::{Backoff, Timestamp};

/// How many failures there were since the last calm.
#[derive(Debug, Clone, Copy, Hash, Default)]
pub(super) struct Pauses {
    failures: u32,
    last: Option<Timestamp>,
}

impl Pauses {
    /// Notes a failure. Gives the shortest and the longest pause that may follow.
    pub(super) fn failed(&mut self, backoff: &Backoff, now: Timestamp) -> (Duration, Duration) {
        let calm = backoff.reset_after + backoff.longest;
        if self.last.is_some_and(|last| now.since(last) >= calm) {
            self.failures = 0;
        }
        let mut pause = backoff.first;
        for _ in 0..self.failures {
            pause = (pause * 2).min(backoff.longest);
        }
        self.failures = (self.failures + 1).min(64);
        self.last = Some(now);
        let jitter = pause * backoff.jitter_percent / 100;
        (pause.saturating_sub(jitter), pause + jitter)
    }

    /// The next failure is the first.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}
