//! Calls that wait for news: the next items of a feed, or the endings of children. A machine has one such call of each kind in flight, and
//! makes the next one when it has returned.

use std::time::Duration;

use super::context::StepContext;
use super::machine::{CallKey, CallLost, Machine};

/// The deadline of a call that waits for news. Nothing is wrong when it elapses.
const NEWS_DEADLINE: Duration = Duration::from_secs(3_600);
/// The pause before an actor is followed again that was not running, or whose answer was lost.
pub const REFOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// Waits for news by this call, for as long as there are none.
pub fn await_news<M: Machine>(call: M::Call, cx: &mut StepContext<M>) {
    cx.call(CallKey::default(), NEWS_DEADLINE, call);
}

/// Handles the end of a call that waits for the next items of a feed, and waits for those behind them by `next`: at once, also if there was
/// no news before the deadline; after a pause, when the timer elapses and the machine follows afresh, if the actor was not running or its
/// answer was lost. `heard` handles an outcome, and is false if there are no items in it.
pub fn follow_on<M: Machine>(
    outcome: &Result<M::Outcome, CallLost>,
    (next, refollow): (M::Call, M::Timer),
    cx: &mut StepContext<M>,
    heard: impl FnOnce(&M::Outcome, &mut StepContext<M>) -> bool,
) {
    let goes_on = match outcome {
        Ok(outcome) => heard(outcome, cx),
        Err(CallLost::DeadlineExceeded(_)) => true,
        Err(CallLost::Crashed(_) | CallLost::Busy(_)) => false,
    };
    if goes_on {
        await_news(next, cx);
    } else {
        cx.start_timer(refollow, cx.now() + REFOLLOW_PAUSE);
    }
}

/// How soon the endings of children are waited for again after that was lost.
const ENDINGS_PAUSE: Duration = Duration::from_secs(1);

/// Waits again for the endings of children by this call, which has come back with `outcome`. At once if it has brought some, or nothing
/// happened for long; when this timer elapses if it was lost: another one might be lost in the same moment, again and again.
pub fn await_endings_again<M: Machine>(
    outcome: &Result<M::Outcome, CallLost>,
    (call, timer): (M::Call, M::Timer),
    cx: &mut StepContext<M>,
) {
    match outcome {
        Ok(_) | Err(CallLost::DeadlineExceeded(_)) => await_news(call, cx),
        Err(CallLost::Crashed(_) | CallLost::Busy(_)) => cx.start_timer(timer, cx.now() + ENDINGS_PAUSE),
    }
}
