//! The environment of a machine in its scripts: the time, its timers, its open calls, and its unanswered questions.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::shell::{AskId, CallKey, CallLost, Effect, Effects, Input, Machine};
use callboard_actors::vocabulary::{Moment, Timestamp};
use goldenscript::Runner;

/// Runs every script of a folder, each on a stage of its own, and checks that none is missing.
pub(crate) fn play_all<R: Runner>(folder: &str, at_least: usize, open: impl Fn() -> R) {
    let mut stories: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.sort();
    assert!(stories.len() >= at_least, "stories are gone from {folder}: {} are left", stories.len());
    for story in stories {
        println!("{}", story.display());
        goldenscript::run(&mut open(), &story).unwrap();
    }
}

/// The start time of every script.
pub(crate) fn begun() -> Timestamp {
    Timestamp::from_epoch(Duration::from_secs(1_000))
}

pub(crate) struct Surroundings<M: Machine> {
    pub(crate) now: Timestamp,
    pub(crate) calls: Vec<(CallKey, M::Call)>,
    timers: Vec<(Timestamp, M::Timer)>,
    unanswered: BTreeMap<AskId, M::Ask>,
    asked: u64,
}

impl<M: Machine<Ask: Clone>> Surroundings<M> {
    pub(crate) fn new() -> Self {
        Self { now: begun(), calls: vec![], timers: vec![], unanswered: BTreeMap::new(), asked: 0 }
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    pub(crate) fn step(&self, machine: &mut M, input: &Input<M>) -> Vec<Effect<M>> {
        let mut effects = Effects::default();
        machine.step(self.moment(), input, &mut effects);
        effects.drain().collect()
    }

    /// Asks a question, which is repeated after a rebuild of the machine until it is answered.
    pub(crate) fn ask(&mut self, ask: M::Ask) -> Input<M> {
        self.asked += 1;
        let id = AskId::new(self.asked);
        self.unanswered.insert(id, ask.clone());
        Input::Asked { id, asked_at: self.now, ask }
    }

    pub(crate) fn answered(&mut self, id: AskId) {
        self.unanswered.remove(&id);
    }

    /// Drops all open questions.
    pub(crate) fn forget_questions(&mut self) {
        self.unanswered.clear();
    }

    /// Prepares a rebuild of the machine. Returns the questions to repeat.
    pub(crate) fn begin_anew(&mut self) -> Vec<Input<M>> {
        self.timers.clear();
        self.calls.clear();
        let asked =
            |(id, ask): (&AskId, &M::Ask)| Input::Asked { id: *id, asked_at: self.now, ask: ask.clone() };
        self.unanswered.iter().map(asked).collect()
    }

    pub(crate) fn start_timer(&mut self, timer: M::Timer, at: Timestamp) {
        self.cancel_timer(&timer);
        self.timers.push((at, timer));
    }

    pub(crate) fn cancel_timer(&mut self, timer: &M::Timer) {
        self.timers.retain(|(_, other)| other != timer);
    }

    /// Advances the time to the next timer that fires before `until`, if there is one.
    pub(crate) fn next_timer(&mut self, until: Timestamp) -> Option<M::Timer> {
        self.timers.sort();
        self.timers.first().filter(|(at, _)| *at <= until)?;
        let (at, timer) = self.timers.remove(0);
        self.now = at;
        Some(timer)
    }

    /// Completes the earliest such call.
    pub(crate) fn returned(
        &mut self,
        is_meant: impl Fn(&M::Call) -> bool,
        outcome: Result<M::Outcome, CallLost>,
    ) -> Input<M> {
        let at = self.calls.iter().position(|(_, call)| is_meant(call)).expect("such a call is open");
        let (key, call) = self.calls.remove(at);
        Input::Returned { key, call, outcome }
    }
}
