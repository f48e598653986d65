//! The starts that this run of the host has requested, and their progress: a driver's answers are judged by it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use callboard_actors::driver::client::{ServingProcess, TaskId};

use super::answers::{Asked, is_proof};

#[derive(Debug, Clone, Default)]
pub(super) struct Starts(Rc<RefCell<BTreeMap<TaskId, Asked>>>);

impl Starts {
    /// Records a start that waits for its driver, until it is sent or the guard is dropped.
    pub(super) fn waits(&self, run: &TaskId) -> WaitingStart {
        self.0.borrow_mut().insert(run.clone(), Asked::Waiting);
        WaitingStart { run: run.clone(), starts: self.clone() }
    }

    /// Whether a start of this run waits for its driver: it may begin although no process has received it yet.
    pub(super) fn is_waiting(&self, run: &TaskId) -> bool {
        matches!(self.0.borrow().get(run), Some(Asked::Waiting))
    }

    /// Records that a start was sent to this process.
    pub(super) fn asked(&self, run: &TaskId, process: Option<ServingProcess>) {
        self.0.borrow_mut().insert(run.clone(), Asked::Unanswered(process));
    }

    pub(super) fn answered(&self, run: &TaskId) {
        self.0.borrow_mut().insert(run.clone(), Asked::Answered);
    }

    pub(super) fn forget(&self, run: &TaskId) {
        self.0.borrow_mut().remove(run);
    }

    /// Whether the answer "no such run" of this process proves that it has no start of the run under way.
    pub(super) fn is_proof(&self, run: &TaskId, process: Option<ServingProcess>) -> bool {
        is_proof(self.0.borrow().get(run).copied(), process)
    }
}

#[derive(Debug)]
pub(super) struct WaitingStart {
    run: TaskId,
    starts: Starts,
}

impl Drop for WaitingStart {
    fn drop(&mut self) {
        if self.starts.is_waiting(&self.run) {
            self.starts.forget(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_waits_for_its_driver_until_it_is_asked_for_or_given_up_t3() {
        let (starts, run) = (Starts::default(), TaskId::new("a/web/1").unwrap());
        let waiting = starts.waits(&run);
        assert!(starts.is_waiting(&run) && !starts.is_proof(&run, None));
        drop(waiting);
        assert!(!starts.is_waiting(&run));

        let waiting = starts.waits(&run);
        starts.asked(&run, None);
        assert!(!starts.is_waiting(&run));
        drop(waiting);
        starts.answered(&run);
        assert!(starts.is_proof(&run, None), "it has said what came of it");
    }
}
