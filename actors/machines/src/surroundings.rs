//! The environment of a machine in its scripts: the time, its timers, its open calls, and its unanswered questions.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::kernel::{AskId, CallKey, CallLost, Effect, Input, Machine, StepContext};
use crate::vocabulary::{Moment, Timestamp};

/// The start time of every script.
#[must_use]
pub fn begun() -> Timestamp {
    Timestamp::from_epoch(Duration::from_secs(1_000))
}

/// The environment of one machine.
#[derive(Debug)]
pub struct Surroundings<M: Machine> {
    /// The present time.
    pub now: Timestamp,
    /// The calls that have not returned, in their order.
    pub calls: Vec<(CallKey, M::Call)>,
    timers: Vec<(Timestamp, M::Timer)>,
    unanswered: BTreeMap<AskId, M::Ask>,
    asked: u64,
}

/// No time has passed, and nothing is open.
impl<M: Machine> Default for Surroundings<M> {
    fn default() -> Self {
        Self { now: begun(), calls: vec![], timers: vec![], unanswered: BTreeMap::new(), asked: 0 }
    }
}

impl<M: Machine<Ask: Clone>> Surroundings<M> {
    /// The present moment, without randomness.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    /// Steps the machine. Returns its effects.
    pub fn step(&self, machine: &mut M, input: &Input<M>) -> Vec<Effect<M>> {
        let mut cx = StepContext::new(self.moment());
        machine.step(input, &mut cx);
        cx.drain().collect()
    }

    /// Asks a question, which is repeated after a rebuild of the machine until it is answered.
    pub fn ask(&mut self, ask: M::Ask) -> Input<M> {
        self.asked += 1;
        let id = AskId::new(self.asked);
        self.unanswered.insert(id, ask.clone());
        Input::Asked { id, asked_at: self.now, ask }
    }

    /// A question was answered: it is not repeated.
    pub fn answered(&mut self, id: AskId) {
        self.unanswered.remove(&id);
    }

    /// Drops all open questions.
    pub fn forget_questions(&mut self) {
        self.unanswered.clear();
    }

    /// Prepares a rebuild of the machine. Returns the questions to repeat.
    pub fn begin_anew(&mut self) -> Vec<Input<M>> {
        self.timers.clear();
        self.calls.clear();
        let asked =
            |(id, ask): (&AskId, &M::Ask)| Input::Asked { id: *id, asked_at: self.now, ask: ask.clone() };
        self.unanswered.iter().map(asked).collect()
    }

    /// Starts a timer, or sets it again.
    pub fn start_timer(&mut self, timer: M::Timer, at: Timestamp) {
        self.cancel_timer(&timer);
        self.timers.push((at, timer));
    }

    /// Cancels a timer, if it was started.
    pub fn cancel_timer(&mut self, timer: &M::Timer) {
        self.timers.retain(|(_, other)| other != timer);
    }

    /// Advances the time to the next timer that fires before `until`, if there is one.
    pub fn next_timer(&mut self, until: Timestamp) -> Option<M::Timer> {
        self.timers.sort();
        self.timers.first().filter(|(at, _)| *at <= until)?;
        let (at, timer) = self.timers.remove(0);
        self.now = at;
        Some(timer)
    }

    /// Completes the earliest matching call.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn returned(
        &mut self,
        is_meant: impl Fn(&M::Call) -> bool,
        outcome: Result<M::Outcome, CallLost>,
    ) -> Input<M> {
        let at = self.calls.iter().position(|(_, call)| is_meant(call)).expect("such a call is open");
        let (key, call) = self.calls.remove(at);
        Input::Returned { key, call, outcome }
    }
}
