//! The state that the laws know of each child of a supervisor, and of the supervisor's own end.

use std::time::Duration;

use callboard_actors::shell::{CallKey, StopMode};
use callboard_actors::supervisor::StopOutcome;
use callboard_actors::vocabulary::{Backoff, Timestamp};

/// One child, as reported to its supervisor.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Known {
    pub(super) state: State,
    /// Whether it was ever up.
    pub(super) has_run: bool,
    /// Whether the stop in flight, or the last one, also ends what the child left.
    pub(super) is_last_stop: bool,
    /// Whether what the child left was ended.
    pub(super) is_rest_ended: bool,
    /// Whether its start has failed or was undone, since the supervisor was built.
    pub(super) has_failed: bool,
    pub(super) pauses: Pauses,
}

/// The state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum State {
    /// It was not looked at yet, or it lives and the call for it was cut off.
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
    /// Whether no action is needed to have it down.
    pub(super) const fn is_at_rest(self) -> bool {
        matches!(self, Self::Down | Self::Stuck)
    }
}

/// The pause before a child is started again: doubles each time, until the child has been quiet for long.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Pauses {
    falls: u32,
    last: Option<Timestamp>,
}

impl Pauses {
    /// The child ended and must be restarted; the pause must be between these bounds.
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

/// The end of the supervisor, once it has begun.
#[derive(Debug, Clone, Hash)]
pub(super) struct End {
    pub(super) cause: Cause,
    pub(super) mode: StopMode,
    pub(super) begun: Timestamp,
    /// The children that were stopped since, each with the outcome and the time it took, in the order of their ends.
    pub(super) stopped: Vec<(usize, StopOutcome, Duration)>,
}

/// The cause of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// It was requested.
    Asked,
    /// A child could not be started for the first time.
    Undone,
    /// The restart budget is spent, or a child could not be ended.
    GaveUp,
}
