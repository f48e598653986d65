//! Decisions for a task with an unknown state: whether a start took effect, whether it still runs, and how it ended.

use std::sync::Arc;
use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::running::{ASK_TIMEOUT, TROUBLE_BACKOFF};
use super::state::*;
use crate::driver::{TaskEnd, TaskExit, TaskId};
use crate::kernel::StepContext;

/// How long a driver that may be busy with a start is queried before its process is replaced.
const UNSURE: Duration = Duration::from_secs(10);
/// The same for a driver that has started other tasks as well: if it runs tasks in its own process, these would be lost.
const UNSURE_SHARED: Duration = Duration::from_secs(120);

impl Task {
    /// Resets the wanted state of an earlier run of the host. Two facts stay: an existing run, and that a task which ended by itself
    /// is not restarted automatically. A task that was stopped or failed is started again if the configuration starts it.
    pub(super) fn begin_another_run_of_the_host(&mut self) {
        match (self.durable.wanted, &self.durable.run) {
            (Some(Wanted::Stopped | Wanted::Failed), Some(_)) => self.starts_after_stop = self.config.start,
            (Some(Wanted::Running), Some(_)) | (Some(Wanted::Ended), _) => {}
            (None | Some(Wanted::Running | Wanted::Stopped | Wanted::Failed), None) | (None, Some(_)) => {
                self.durable.wanted = None;
            }
        }
    }

    /// It was stopped only because the last incarnation of the actor had to leave.
    pub(super) fn come_back(&mut self) {
        match self.durable.run {
            Some(_) => self.starts_after_stop = true,
            None => self.durable.wanted = Some(Wanted::Running),
        }
    }

    pub(super) fn recover(&mut self, key: RunKey, cx: &mut StepContext<Tasks>) {
        let Some(RunState::Started(handle)) = self.durable.run.as_ref().map(|run| &run.state) else { return };
        let call = TasksCall::Recover(key, handle.clone(), Arc::clone(&self.config));
        self.phase = Phase::Recovering;
        self.call(ASK_TIMEOUT, call, cx);
    }

    /// Handles the driver's report about an intended run.
    pub(super) fn inspected(&mut self, answer: &Result<Found, Trouble>, cx: &mut StepContext<Tasks>) {
        if self.phase != Phase::Settling {
            return;
        }
        let Some(id) = self.durable.run.as_ref().map(|run| run.id.clone()) else { return };
        match answer {
            Ok(Found::Running) => {
                let note = format!(
                    "{id} was found running, but there is no handle to recover it; it is ended and started again"
                );
                self.over(None, note, cx);
            }
            Ok(Found::Exited(exit)) => {
                self.over(Some(exit.clone()), format!("{id} was found ended: {exit}"), cx);
            }
            Ok(Found::Nothing { words, is_proof: false }) => self.unsure(&id, words, cx),
            Ok(Found::Nothing { words, is_proof: true }) => {
                let cause = std::mem::take(&mut self.cause);
                let why = if cause.is_empty() { cause } else { format!("{cause}; ") };
                // The driver's answer is no proof: a run that it began may continue without it (T115).
                self.cause = format!("{why}{id} was not started, its driver knows nothing of it: {words}");
                self.sweep(DriverReply::Received, cx);
            }
            Err(trouble) => {
                let note = if self.is_unsent {
                    format!("{id} was not started, and its driver is to confirm that: {trouble}")
                } else {
                    format!("unknown whether {id} was started: {trouble}")
                };
                self.not_answered(trouble, note, cx);
            }
        }
    }

    /// Handles that its driver does not know a run, but may still be busy with its start, for an unknown time. The driver is
    /// queried for a while; then its process is replaced, since only a process that never received the start gives proof.
    fn unsure(&mut self, id: &TaskId, words: &str, cx: &mut StepContext<Tasks>) {
        let timeout = if self.shares_driver { UNSURE_SHARED } else { UNSURE };
        let replaced_at = self.unsure_since + timeout;
        if cx.now() >= replaced_at {
            let note = format!(
                "its driver does not know {id} but may still execute its start: its process is replaced"
            );
            self.note(note, cx);
            // A sick disk would delay the next process.
            return self.await_disk(cx);
        }
        let note = format!(
            "its driver does not know {id} yet but may still execute its start: {words}; its process is replaced if that goes on for {} s",
            timeout.as_secs()
        );
        self.note(note, cx);
        let pause = self.troubles.failed(&TROUBLE_BACKOFF, cx.moment());
        let at = (cx.now() + pause).min(replaced_at);
        cx.start_timer(TasksTimer::Again(self.config.name.clone()), at);
    }

    pub(super) fn replace_driver(&self, cx: &mut StepContext<Tasks>) {
        if let Some(run) = self.run_key() {
            self.call(ASK_TIMEOUT, TasksCall::ReplaceDriver(run), cx);
        }
    }

    /// Handles the replacement of its driver's process: the next process is queried as soon as it is there.
    pub(super) fn driver_replaced(&mut self, answer: &Result<(), Trouble>, cx: &mut StepContext<Tasks>) {
        if self.phase != Phase::Settling {
            return;
        }
        match answer {
            Ok(()) => self.speak_later(self.note.clone(), cx),
            Err(trouble) => {
                let note = format!("the process of its driver is not replaced: {trouble}");
                self.not_answered(trouble, note, cx);
            }
        }
    }

    pub(super) fn recovered(&mut self, answer: &Result<(), Trouble>, cx: &mut StepContext<Tasks>) {
        if self.phase != Phase::Recovering {
            return;
        }
        let Some(id) = self.durable.run.as_ref().map(|run| run.id.clone()) else { return };
        match answer {
            Ok(()) => self.go_on(format!("{id} is recovered and runs"), cx),
            Err(trouble) if trouble.is_transient => {
                let note = format!("{id} is not recovered yet: {trouble}");
                self.not_answered(trouble, note, cx);
            }
            // It may still live, so its run is over only when nothing is left of it (TH041), and its exit is not a success
            // (EVT-05).
            Err(trouble) => {
                let reason = format!("its driver cannot recover it: {trouble}");
                let exit = TaskExit { end: TaskEnd::Unknown(reason.clone()), oom_killed: false };
                self.over(Some(exit), format!("{id}: {reason}"), cx);
            }
        }
    }

    pub(super) fn waited(
        &mut self,
        scene: &Scene<'_>,
        answer: &Result<Waited, Trouble>,
        cx: &mut StepContext<Tasks>,
    ) {
        if self.phase == Phase::OutOfReach && answer.is_ok() && scene.shutdown == ShutdownState::Serving {
            // It was left as it is, and its driver has now reported its end.
            self.stop_began = cx.now();
            self.start_give_up(cx);
        } else if !matches!(self.phase, Phase::Running | Phase::Stopping) {
            return;
        }
        match answer {
            Ok(waited) => {
                let exit = waited.end(self.phase != Phase::Running);
                self.over(Some(exit.clone()), exit.to_string(), cx);
            }
            // Its driver is gone, or no longer knows it: it is recovered as soon as possible.
            Err(trouble) => {
                let note = format!("lost contact with it: {trouble}; recovering it");
                self.enter(Phase::Recovering, note.clone(), cx);
                self.not_answered(trouble, note, cx);
            }
        }
    }
}
