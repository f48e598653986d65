//! The calls of one actor: at most so many run at once, and the others wait for their turn.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::machine::{CallKey, Machine};
use super::state::StepNumber;

/// A call that the machine wants made.
#[derive(Debug, Hash)]
pub(super) struct Planned<M: Machine> {
    pub(super) key: CallKey,
    pub(super) deadline: Duration,
    pub(super) call: M::Call,
    /// The last write that it waits for.
    pub(super) behind: u64,
    /// The step that wants it.
    pub(super) step: StepNumber,
}

impl<M: Machine> Clone for Planned<M> {
    fn clone(&self) -> Self {
        let Self { key, deadline, call, behind, step } = self;
        Self { key: *key, deadline: *deadline, call: call.clone(), behind: *behind, step: *step }
    }
}

/// What runs and what waits.
#[derive(Debug, Hash)]
pub(super) struct Calls<M: Machine> {
    /// In boxes, since a map has place for eleven of them from the first one on.
    running: BTreeMap<u64, Box<(CallKey, M::Call)>>,
    waiting: VecDeque<Planned<M>>,
    ever: u64,
}

impl<M: Machine> Default for Calls<M> {
    fn default() -> Self {
        Self { running: BTreeMap::new(), waiting: VecDeque::new(), ever: 0 }
    }
}

impl<M: Machine> Clone for Calls<M> {
    fn clone(&self) -> Self {
        Self { running: self.running.clone(), waiting: self.waiting.clone(), ever: self.ever }
    }
}

impl<M: Machine> Calls<M> {
    /// How many run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The calls that are waited for, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &M::Call)> + '_ {
        self.running.iter().map(|(number, running)| (*number, &running.1))
    }

    /// Whether a call is waited for.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.running.contains_key(&number)
    }

    /// Has a call wait for its turn.
    pub(super) fn push(&mut self, planned: Planned<M>) {
        self.waiting.push_back(planned);
    }

    /// The next call, if so few run.
    pub(super) fn next_due(&mut self, running_max: usize) -> Option<Planned<M>> {
        if self.running.len() >= running_max { None } else { self.waiting.pop_front() }
    }

    /// Notes that a call runs, and gives its number.
    pub(super) fn start(&mut self, key: CallKey, call: M::Call) -> u64 {
        self.ever += 1;
        self.running.insert(self.ever, Box::new((key, call)));
        self.ever
    }

    /// Notes that a call came back. `None` means that it was given up before.
    pub(super) fn finish(&mut self, number: u64) -> Option<(CallKey, M::Call)> {
        self.running.remove(&number).map(|running| *running)
    }

    /// Gives all calls up.
    pub(super) fn abandon(&mut self) {
        self.running.clear();
        self.waiting.clear();
    }
}
