//! The starts that this run of the host has requested, and their progress: a driver's answers are judged by it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use callboard_actors::driver::client::{ServingProcess, TaskId};
use callboard_actors::drivers::DriverNotLeased;
use tokio::sync::Notify;

use super::{Asked, Found, Trouble, found_without, is_proof, not_dispensed};

#[derive(Debug, Clone, Default)]
pub(super) struct Starts {
    asked: Rc<RefCell<BTreeMap<TaskId, Asked>>>,
    called_off: Rc<RefCell<BTreeSet<TaskId>>>,
    changed: Rc<Notify>,
}

impl Starts {
    /// Records a start that waits for its driver, until it is sent or the guard is dropped.
    pub(super) fn waits(&self, run: &TaskId) -> WaitingStart {
        self.asked.borrow_mut().insert(run.clone(), Asked::Waiting);
        WaitingStart { run: run.clone(), starts: self.clone() }
    }

    /// Whether a start of this run waits for its driver: it may begin although no process has received it yet.
    pub(super) fn is_waiting(&self, run: &TaskId) -> bool {
        matches!(self.asked.borrow().get(run), Some(Asked::Waiting))
    }

    /// Cancels a start that waits for its driver.
    pub(super) fn call_off(&self, run: &TaskId) {
        if self.is_waiting(run) {
            self.called_off.borrow_mut().insert(run.clone());
            self.changed.notify_waiters();
        }
    }

    /// Records that a start was sent to this process.
    pub(super) fn asked(&self, run: &TaskId, process: Option<ServingProcess>) {
        self.asked.borrow_mut().insert(run.clone(), Asked::Unanswered(process));
        self.changed.notify_waiters();
    }

    /// Waits while a start of this run waits for its driver. Returns whether it was then sent.
    pub(super) async fn sent(&self, run: &TaskId) -> bool {
        while self.is_waiting(run) {
            self.changed.notified().await;
        }
        matches!(self.asked.borrow().get(run), Some(Asked::Unanswered(_) | Asked::Answered))
    }

    /// Records that a start of this run was not sent to any process, and never will be.
    pub(super) fn never_sent(&self, run: &TaskId) {
        self.asked.borrow_mut().insert(run.clone(), Asked::NeverSent);
        self.changed.notify_waiters();
    }

    pub(super) fn answered(&self, run: &TaskId) {
        self.asked.borrow_mut().insert(run.clone(), Asked::Answered);
    }

    pub(super) fn forget(&self, run: &TaskId) {
        self.asked.borrow_mut().remove(run);
    }

    /// What is known about a run whose driver is unavailable.
    pub(super) fn found_without(&self, run: &TaskId, error: &DriverNotLeased) -> Result<Found, Trouble> {
        match error {
            DriverNotLeased::NotDispensed(error) => found_without(error, self.is_waiting(run)),
            // The unavailable driver implies nothing about the run.
            DriverNotLeased::NotAnswered(_) | DriverNotLeased::JustEnded { .. } => {
                Err(Trouble { is_transient: true, ..not_leased(error) })
            }
        }
    }

    /// Whether the answer "no such run" of this process proves that it has no start of the run in progress.
    pub(super) fn is_proof(&self, run: &TaskId, process: Option<ServingProcess>) -> bool {
        is_proof(self.asked.borrow().get(run).copied(), process)
    }
}

#[derive(Debug)]
pub(super) struct WaitingStart {
    run: TaskId,
    starts: Starts,
}

impl WaitingStart {
    /// Waits until it is cancelled.
    pub(super) async fn called_off(&self) {
        while !self.is_called_off() {
            self.starts.changed.notified().await;
        }
    }

    /// Whether it must no longer be sent.
    pub(super) fn is_called_off(&self) -> bool {
        self.starts.called_off.borrow().contains(&self.run)
    }
}

impl Drop for WaitingStart {
    fn drop(&mut self) {
        self.starts.called_off.borrow_mut().remove(&self.run);
        if self.starts.is_waiting(&self.run) {
            self.starts.forget(&self.run);
            self.starts.changed.notify_waiters();
        }
    }
}

/// Why there is no client of a driver.
pub(super) fn not_leased(error: &DriverNotLeased) -> Trouble {
    match error {
        DriverNotLeased::NotDispensed(error) => not_dispensed(error),
        DriverNotLeased::NotAnswered(_) | DriverNotLeased::JustEnded { .. } => {
            Trouble::passing(error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::drivers::NotDispensed;
    use callboard_actors::vocabulary::DriverName;
    use futures_util::FutureExt;

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

    #[test]
    fn nothing_begins_by_a_driver_that_is_refused_unless_a_start_still_waits_for_it_t3() {
        let (starts, run) = (Starts::default(), TaskId::new("a/web/1").unwrap());
        let driver = DriverName::new("exec").unwrap();
        let reason = "refused: it is not there".to_owned();
        let refused = NotDispensed::Refused { driver: driver.clone(), reason }.into();
        let is_proof = |starts: &Starts, error| {
            matches!(starts.found_without(&run, error), Ok(Found::Nothing { is_proof: true, .. }))
        };
        assert!(is_proof(&starts, &refused));
        let waiting = starts.waits(&run);
        assert!(!is_proof(&starts, &refused), "its program may be replaced meanwhile");
        drop(waiting);
        let blocked = NotDispensed::Blocked { driver }.into();
        let unknown = starts.found_without(&run, &blocked).expect_err("it is not known");
        assert!(!is_proof(&starts, &blocked) && unknown.is_transient);
    }

    #[test]
    fn of_a_start_that_is_never_sent_the_answer_of_any_process_is_proof() {
        let (starts, run) = (Starts::default(), TaskId::new("a/web/1").unwrap());
        let waiting = starts.waits(&run);
        starts.never_sent(&run);
        drop(waiting);
        assert!(!starts.is_waiting(&run) && starts.is_proof(&run, None));
        assert_eq!(starts.sent(&run).now_or_never(), Some(false));
    }

    #[test]
    fn who_waits_for_a_start_to_be_sent_is_told_when_it_was_and_when_it_never_will_be() {
        let (starts, run) = (Starts::default(), TaskId::new("a/web/1").unwrap());
        for is_sent in [true, false] {
            let waiting = starts.waits(&run);
            let mut sent = std::pin::pin!(starts.sent(&run));
            assert!(sent.as_mut().now_or_never().is_none(), "its driver is not there yet");
            if is_sent {
                starts.asked(&run, None);
            }
            drop(waiting);
            assert_eq!(sent.now_or_never(), Some(is_sent));
            starts.forget(&run);
        }
    }

    #[test]
    fn a_start_that_was_called_off_is_not_sent_and_counts_as_waiting_until_that_is_sure() {
        let (starts, run) = (Starts::default(), TaskId::new("a/web/1").unwrap());
        let waiting = starts.waits(&run);
        {
            let mut called_off = std::pin::pin!(waiting.called_off());
            assert!(called_off.as_mut().now_or_never().is_none());
            starts.call_off(&run);
            assert!(called_off.now_or_never().is_some() && waiting.is_called_off());
        }
        assert!(starts.is_waiting(&run), "what is being prepared for it is not released yet");
        drop(waiting);
        let again = starts.waits(&run);
        assert!(!again.is_called_off());
        starts.asked(&run, None);
        starts.call_off(&run);
        assert!(!again.is_called_off(), "it was sent");
    }
}
