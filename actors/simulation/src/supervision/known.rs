//! What the laws know of each child of a supervisor, and of the supervisor's own end.

use std::time::Duration;

use callboard_actors::shell::{CallKey, StopMode};
use callboard_actors::supervisor::StopOutcome;
use callboard_actors::vocabulary::{Backoff, Timestamp};

/// One child, as its supervisor has been told of it.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Known {
    pub(super) state: State,
    /// Whether it was ever up.
    pub(super) has_run: bool,
    /// Whether the stop under way, or the last one, ends also what it left.
    pub(super) is_last_stop: bool,
    /// Whether what it left was ended.
    pub(super) is_rest_ended: bool,
    /// Whether its start has failed or was undone, since the supervisor was built.
    pub(super) has_failed: bool,
    pub(super) pauses: Pauses,
}

/// Where a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum State {
    /// It was not looked at yet, or it lives and what was being done with it was cut off.
    #[default]
    Unseen,
    Down,
    Starting(CallKey),
    Up {
        watch: CallKey,
        is_watched: bool,
    },
    Stopping {
        key: CallKey,
        mode: StopMode,
        begun: Timestamp,
    },
    /// It could not be ended.
    Stuck,
}

impl State {
    /// Whether nothing is to be done to have it down.
    pub(super) const fn is_at_rest(self) -> bool {
        matches!(self, Self::Down | Self::Stuck)
    }
}

/// How long to wait before a child is started again: twice as long as before each time, until it was quiet for long.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Pauses {
    falls: u32,
    last: Option<Timestamp>,
}

impl Pauses {
    /// The child fell; between these bounds must the pause be.
    pub(super) fn fell(&mut self, backoff: &Backoff, now: Timestamp) -> (Duration, Duration) {
        if self.last.is_some_and(|last| now.since(last) >= backoff.reset_after + backoff.longest) {
            self.falls = 0;
        }
        let mut pause = backoff.first.min(backoff.longest);
        for _ in 0..self.falls {
            pause = (pause * 2).min(backoff.longest);
        }
        (self.falls, self.last) = ((self.falls + 1).min(20), Some(now));
        let spread = pause * backoff.jitter_percent / 100;
        (pause.saturating_sub(spread), pause + spread)
    }
}

/// The end of everything, once it has begun.
#[derive(Debug, Clone, Hash)]
pub(super) struct End {
    pub(super) cause: Cause,
    pub(super) mode: StopMode,
    pub(super) begun: Timestamp,
    /// Who was stopped since, with what came of it and how long it took, in the order in which they ended.
    pub(super) stopped: Vec<(usize, StopOutcome, Duration)>,
}

/// Why everything ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// It was requested.
    Asked,
    /// A child could not be started in the first place.
    Undone,
    /// The falls were too many, or a child could not be ended.
    GaveUp,
}
