//! Calls that wait for news: a machine that follows the feed of another actor makes one such call at a time, and the next one when it
//! has returned.

use std::time::Duration;

use super::machine::CallLost;

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
