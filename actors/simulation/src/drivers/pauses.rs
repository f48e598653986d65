//! The permitted pause between two tries: a plain count beside the machine's own.

use std::time::Duration;

use callboard_actors::driver::{DriverCall, StartStep, Trouble, TroubleKind};
use callboard_actors::vocabulary::{Backoff, Timestamp};

use super::known::Outcome;

/// The pause before a launch is retried if the last one began nothing.
const RELAUNCH_PAUSE: Duration = Duration::from_secs(1);

/// The number of failures since the last calm, and of launches.
#[derive(Debug, Clone, Copy, Hash, Default)]
pub(super) struct Pauses {
    failures: u32,
    last: Option<Timestamp>,
    /// How many launches began anything, or are in flight.
    launches: u64,
    /// Whether the last launch began nothing.
    was_not_begun: bool,
}

impl Pauses {
    /// Records a failure. Returns the shortest and the longest pause that may follow.
    pub(super) fn failed(&mut self, backoff: &Backoff, now: Timestamp) -> (Duration, Duration) {
        if self.was_not_begun {
            return (RELAUNCH_PAUSE, RELAUNCH_PAUSE);
        }
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

    /// The next failure counts as the first.
    pub(super) fn reset(&mut self) {
        (self.failures, self.last) = (0, None);
    }

    /// This step begins.
    pub(super) fn begun(&mut self, start_step: StartStep) {
        self.launches += u64::from(start_step == StartStep::Launch);
        self.was_not_begun = false;
    }

    /// A call returned this outcome.
    pub(super) fn returned(&mut self, call: &DriverCall, outcome: &Outcome) {
        if let (DriverCall::Advance(StartStep::Launch, _), Ok(Err(Trouble { kind, .. }))) = (call, outcome) {
            let did_not_begin = matches!(kind, TroubleKind::Refused | TroubleKind::NotBegun);
            self.launches = self.launches.saturating_sub(did_not_begin.into());
            self.was_not_begun = *kind == TroubleKind::NotBegun;
        }
    }

    pub(super) const fn launches(&self) -> u64 {
        self.launches
    }
}
