//! Calls that wait for news: a machine that follows the feed of another actor makes one such call at a time, and the next one when it
//! has returned.

use std::time::Duration;

use super::context::StepContext;
use super::machine::{CallKey, CallLost, Machine};

/// The deadline of a call that waits for news. Nothing is wrong when it elapses.
pub const NEWS_DEADLINE: Duration = Duration::from_secs(3_600);
/// The pause before an actor is followed again that was not running, or whose answer was lost.
pub const REFOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// What became of a call that waits for the next items of a feed.
#[derive(Debug)]
pub enum Followed<'a, T> {
    /// These are the next ones.
    Items(&'a [T]),
    /// There was no news before the deadline.
    Quiet,
    /// The actor was not running, or its answer was lost. It is followed from the start again, after [`REFOLLOW_PAUSE`].
    Lost,
}

impl<'a, T> Followed<'a, T> {
    /// What an outcome means, if `items` gives the items that are in it.
    pub fn of<O>(outcome: &'a Result<O, CallLost>, items: impl FnOnce(&'a O) -> Option<&'a [T]>) -> Self {
        match outcome {
            Ok(outcome) => items(outcome).map_or(Self::Lost, Self::Items),
            Err(CallLost::DeadlineExceeded(_)) => Self::Quiet,
            Err(CallLost::Crashed(_) | CallLost::Busy(_)) => Self::Lost,
        }
    }
}

/// How soon the endings of children are waited for again after that was lost.
const ENDINGS_PAUSE: Duration = Duration::from_secs(1);

/// Waits again for the endings of children by this call, which has come back with `outcome`. At once if it has brought some, or nothing
/// happened for long; when this timer elapses if it was lost: another one might be lost in the same moment, again and again.
pub fn await_endings_again<M: Machine>(
    outcome: &Result<M::Outcome, CallLost>,
    (call, deadline): (M::Call, Duration),
    timer: M::Timer,
    cx: &mut StepContext<M>,
) {
    match outcome {
        Ok(_) | Err(CallLost::DeadlineExceeded(_)) => cx.call(CallKey::default(), deadline, call),
        Err(CallLost::Crashed(_) | CallLost::Busy(_)) => cx.start_timer(timer, cx.now() + ENDINGS_PAUSE),
    }
}
