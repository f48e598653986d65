//! Makes calls that wait for notifications: the next items of a feed, or the endings of children. A machine has one such call of each
//! kind in flight, and makes the next one when it has returned.

use std::time::Duration;

use super::context::StepContext;
use super::machine::{CallKey, CallLost, Machine};

/// The deadline of a call that waits for notifications. Its expiry is not a failure.
const NEWS_DEADLINE: Duration = Duration::from_secs(3_600);
/// The pause before an actor that was not running, or whose answer was lost, is followed again.
pub const REFOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// Waits for notifications by this call.
pub fn await_news<M: Machine>(call: M::Call, cx: &mut StepContext<M>) {
    cx.call(CallKey::default(), NEWS_DEADLINE, call);
}

/// Handles the end of a call that waits for the next items of a feed, and waits for those after them by `next`: at once, also if nothing
/// came before the deadline; after a pause, when the timer elapses and the machine follows afresh, if the actor was not running or its
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

/// The pause before the endings of children are waited for again after such a call was lost.
const ENDINGS_PAUSE: Duration = Duration::from_secs(1);

/// Waits again for the endings of children by this call, which has returned `outcome`. At once if it has returned endings, or its
/// deadline elapsed; when this timer elapses if it was lost: another call might be lost in the same moment, repeatedly.
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
