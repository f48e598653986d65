//! Runs the calls of one actor: a limited number at a time; the others are queued.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::machine::{CallKey, Machine};
use super::state::StepNumber;

/// A call that the machine requests.
#[derive(Debug, Hash)]
pub(super) struct Planned<M: Machine> {
    pub(super) key: CallKey,
    pub(super) deadline: Duration,
    pub(super) call: M::Call,
    /// The last write that it waits for.
    pub(super) behind: u64,
    /// The step that requests it.
    pub(super) step: StepNumber,
}

impl<M: Machine> Clone for Planned<M> {
    fn clone(&self) -> Self {
        let Self { key, deadline, call, behind, step } = self;
        Self { key: *key, deadline: *deadline, call: call.clone(), behind: *behind, step: *step }
    }
}

/// The running and the queued calls.
#[derive(Debug, Hash)]
pub(super) struct Calls<M: Machine> {
    /// Boxed, since a map allocates space for eleven of them with the first one.
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
    /// The number of running calls.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// The number of queued calls.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The calls in flight, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &M::Call)> + '_ {
        self.running.iter().map(|(number, running)| (*number, &running.1))
    }

    /// Whether a call is in flight.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.running.contains_key(&number)
    }

    /// Queues a call.
    pub(super) fn push(&mut self, planned: Planned<M>) {
        self.waiting.push_back(planned);
    }

    /// The next queued call, if the number of running calls permits it.
    pub(super) fn next_due(&mut self, running_max: usize) -> Option<Planned<M>> {
        if self.running.len() >= running_max { None } else { self.waiting.pop_front() }
    }

    /// Records that a call runs, and returns its number.
    pub(super) fn start(&mut self, key: CallKey, call: M::Call) -> u64 {
        self.ever += 1;
        self.running.insert(self.ever, Box::new((key, call)));
        self.ever
    }

    /// Records that a call returned. `None` means that it was given up before.
    pub(super) fn finish(&mut self, number: u64) -> Option<(CallKey, M::Call)> {
        self.running.remove(&number).map(|running| *running)
    }

    /// Gives up all calls.
    pub(super) fn abandon(&mut self) {
        self.running.clear();
        self.waiting.clear();
    }
}
