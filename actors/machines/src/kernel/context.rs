//! The input of a step besides its event, and the effects that the step requests.

use std::time::Duration;

use super::machine::{AskId, CallKey, Ending, Machine};
use crate::vocabulary::{Moment, Timestamp};

/// The part of the later output that waits until a write is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gate {
    /// Nothing: a crash may take the write back without harm.
    Nothing,
    /// Answers that are promises, and calls that await the disk.
    Promises,
    /// Everything that leaves the actor: later output depends on this write.
    Everything,
}

/// One requested action.
#[derive(Debug)]
pub enum Effect<M: Machine> {
    /// Write this change; the gate determines what waits until it is on disk.
    Persist(Gate, M::Change),
    /// Answer a question.
    Reply(AskId, M::Answer),
    /// Notify every subscriber.
    Publish(M::News),
    /// Make a call beside the mailbox.
    Call {
        /// The key that identifies the call.
        key: CallKey,
        /// The deadline.
        deadline: Duration,
        /// The call.
        call: M::Call,
    },
    /// Wake the machine at this time. Timers are not visible outside, so they do not wait behind a gate.
    StartTimer(M::Timer, Timestamp),
    /// Cancel this timer.
    CancelTimer(M::Timer),
    /// End the actor in this way, after everything before this has left.
    Stop(Ending),
}

/// The context of one step: its time, and the effects that it requests.
#[derive(Debug)]
pub struct StepContext<M: Machine> {
    moment: Moment,
    effects: Vec<Effect<M>>,
}

impl<M: Machine> StepContext<M> {
    /// The context of a step at this moment, without effects.
    #[must_use]
    pub const fn new(moment: Moment) -> Self {
        Self { moment, effects: Vec::new() }
    }

    /// Sets the moment of the next step.
    pub(crate) const fn begin(&mut self, moment: Moment) {
        self.moment = moment;
    }

    /// The moment of this step.
    #[must_use]
    pub const fn moment(&self) -> Moment {
        self.moment
    }

    /// The present time.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.moment.now
    }

    /// The random number of this step; it is the same for the whole step.
    #[must_use]
    pub const fn random(&self) -> u64 {
        self.moment.random
    }

    /// Writes a change; everything after it waits until it is on disk. If the store refuses it at once, nothing after it takes effect.
    /// If it is lost, it is written again, and callers that wait for a promise get `NotDurable`.
    pub fn persist(&mut self, change: M::Change) {
        self.write(Gate::Everything, change);
    }

    /// Writes a change for which nothing waits.
    pub fn record(&mut self, change: M::Change) {
        self.write(Gate::Nothing, change);
    }

    /// Writes a change; the gate determines what waits for it.
    pub fn write(&mut self, gate: Gate, change: M::Change) {
        self.effects.push(Effect::Persist(gate, change));
    }

    /// Answers a question.
    pub fn reply(&mut self, id: AskId, answer: impl Into<M::Answer>) {
        self.effects.push(Effect::Reply(id, answer.into()));
    }

    /// Notifies every subscriber.
    pub fn publish(&mut self, news: M::News) {
        self.effects.push(Effect::Publish(news));
    }

    /// Makes a call beside the mailbox, with a deadline.
    pub fn call(&mut self, key: CallKey, deadline: Duration, call: M::Call) {
        self.effects.push(Effect::Call { key, deadline, call });
    }

    /// Wakes the machine at a time; a timer that runs already is set again.
    pub fn start_timer(&mut self, timer: M::Timer, at: Timestamp) {
        self.effects.push(Effect::StartTimer(timer, at));
    }

    /// Stops a timer; has no effect if the timer does not run.
    pub fn cancel_timer(&mut self, timer: M::Timer) {
        self.effects.push(Effect::CancelTimer(timer));
    }

    /// Ends the actor after everything before this has left.
    pub fn stop(&mut self) {
        self.effects.push(Effect::Stop(Ending::Normal));
    }

    /// Gives up: ends the actor as [`Ending::Failed`], so that its parent decides how to continue.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.effects.push(Effect::Stop(Ending::Failed(reason.into())));
    }

    /// The effects collected so far, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Effect<M>] {
        &self.effects
    }

    /// Takes all effects out, in order, and leaves the collection empty.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect<M>> + '_ {
        self.effects.drain(..)
    }

    /// Adds effects to the collection.
    pub fn extend(&mut self, effects: Vec<Effect<M>>) {
        self.effects.extend(effects);
    }

    /// Discards the collected effects: a step that crashed has none.
    pub fn clear(&mut self) {
        self.effects.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Input, Never};

    /// Rings when its timer elapses.
    #[derive(Debug)]
    struct Bell;

    impl Machine for Bell {
        const KIND: &'static str = "bell";
        type Config = ();
        type Image = ();
        type Ask = Never;
        type Answer = Never;
        type Call = Never;
        type Outcome = Never;
        type Timer = u8;
        type Change = Never;
        type News = &'static str;
        type View = ();

        fn restore((): &(), (): (), _: Moment) -> Self {
            Self
        }

        fn step(&mut self, _: &Input<Self>, cx: &mut StepContext<Self>) {
            cx.publish("ding");
            cx.cancel_timer(7);
        }

        fn view(&self) {}
    }

    #[test]
    fn effects_are_kept_in_their_order_until_they_are_taken_or_forgotten() {
        let mut cx = StepContext::new(Moment::default());
        Bell::restore(&(), (), cx.moment()).step(&Input::Resumed, &mut cx);
        cx.extend(vec![Effect::Publish("dong")]);
        let told = [Effect::Publish("ding"), Effect::CancelTimer(7), Effect::<Bell>::Publish("dong")];
        assert_eq!(format!("{:?}", cx.as_slice()), format!("{told:?}"));
        cx.clear();
        assert!(cx.as_slice().is_empty());
        cx.stop();
        assert_eq!(cx.drain().count(), 1);
        assert_eq!(cx.drain().count(), 0);
    }
}
