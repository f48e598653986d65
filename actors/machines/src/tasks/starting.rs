//! Decisions for a task whose driver is starting it: until the driver has answered, no other start begins.

use std::time::Duration;

use super::behaviour::SAY_TIMEOUT;
use super::calls::*;
use super::handle::KeptHandle;
use super::state::*;
use crate::kernel::StepContext;

/// The timeout of a start, in effect none: a start that was given up would continue, and its result would be lost.
const START_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
/// A start that takes longer is reported as slow.
const START_USUAL: Duration = Duration::from_secs(60);
/// The largest handle that is stored, in bytes.
const HANDLE_BYTES_MAX: usize = 512 * 1_024;

impl Task {
    pub(super) fn order_start(&mut self, key: RunKey, cx: &mut StepContext<Tasks>) {
        let note = if self.awaits_driver { self.note.clone() } else { "starting".to_owned() };
        self.enter(Phase::Starting, note, cx);
        self.call(START_TIMEOUT, TasksCall::Start(key.clone(), self.config.clone()), cx);
        if self.awaits_driver {
            // After the start: it ends with the start, sent or not.
            self.call(START_TIMEOUT, TasksCall::AwaitSent(key), cx);
        }
        cx.start_timer(TasksTimer::Again(self.config.name.clone()), cx.now() + START_USUAL);
    }

    /// Its driver is now available, and has received the start.
    pub(super) fn start_is_sent(&mut self, run: &RunKey, cx: &mut StepContext<Tasks>) {
        let is_present = self.durable.run.as_ref().is_some_and(|present| present.id == run.id);
        if is_present && self.phase == Phase::Starting && std::mem::take(&mut self.awaits_driver) {
            self.since = cx.now();
            self.enter(Phase::Starting, "starting", cx);
        }
    }

    /// Calls its start off, if the start still waits for its driver.
    pub(super) fn call_off(&self, cx: &mut StepContext<Tasks>) {
        if let (Phase::Starting, Some(run)) = (self.phase, self.run_key()) {
            self.call(SAY_TIMEOUT, TasksCall::CallOff(run), cx);
        }
    }

    pub(super) fn start_takes_long(&mut self, cx: &mut StepContext<Tasks>) {
        let is_late = if self.config.volumes.is_empty() {
            "waiting for its driver to confirm the start"
        } else {
            "waiting for its volumes, or for its driver to confirm the start"
        };
        self.note(is_late, cx);
    }

    pub(super) fn started(&mut self, started: &Started, cx: &mut StepContext<Tasks>) {
        // The task may have become out of reach, or be settling, while the answer was in flight.
        let is_awaited = matches!(
            self.phase,
            Phase::Starting
                | Phase::Settling
                | Phase::Readying(Next::Settle)
                | Phase::Sweeping(DriverReply::Unavailable | DriverReply::TimedOut)
                | Phase::OutOfReach
        );
        let is_intended = self.durable.run.as_ref().is_some_and(|run| run.state == RunState::Intended);
        if !is_awaited || !is_intended {
            return;
        }
        let is_open = matches!(started, Started::Unclear(_) | Started::Unreleased(_));
        if self.phase != Phase::Starting && is_open {
            return;
        }
        if self.phase == Phase::OutOfReach {
            self.start_give_up(cx);
        }
        cx.cancel_timer(TasksTimer::Again(self.config.name.clone()));
        let awaited = std::mem::take(&mut self.awaits_driver);
        match started {
            Started::Runs(handle) => self.runs(handle, cx),
            Started::NotAsked(trouble) if trouble.is_transient => {
                if self.durable.wanted == Some(Wanted::Running) {
                    let note = format!("cannot be started yet: {trouble}");
                    self.awaits_driver = awaited;
                    self.enter(Phase::Readying(Next::StartAtLast), note.clone(), cx);
                    self.awaits_driver = true;
                    self.speak_later(note, cx);
                } else {
                    self.not_started(String::new(), cx);
                }
            }
            Started::NotAsked(trouble) => self.not_started(trouble.reason.clone(), cx),
            // The answer is no proof: the next run begins, or the stop completes, when the driver has forgotten this run.
            Started::Retry(reason) => {
                self.over(None, format!("its driver did not start it: {reason}"), cx);
            }
            Started::Fatal(reason) | Started::Refused(reason) => self.refuse(reason, cx),
            Started::Unclear(trouble) | Started::Unreleased(trouble) => {
                self.is_unsent = matches!(started, Started::Unreleased(_));
                let note = if self.is_unsent {
                    format!("not started: {trouble}")
                } else {
                    format!("unknown whether its driver has started it: {trouble}")
                };
                self.cause.clone_from(&trouble.reason);
                self.unsure_since = cx.now();
                self.enter(Phase::Settling, note.clone(), cx);
                self.not_answered(trouble, note, cx);
            }
        }
    }

    /// Handles that its driver refuses permanently. Anything that the driver began nevertheless has to be removed (TH040).
    fn refuse(&mut self, reason: &str, cx: &mut StepContext<Tasks>) {
        if self.durable.wanted == Some(Wanted::Running) {
            self.durable.wanted = Some(Wanted::Failed);
        }
        self.over(None, format!("its driver does not start it: {reason}"), cx);
    }

    /// Handles that it runs: its handle is on disk before this is published. The wait for its end starts at once.
    fn runs(&mut self, handle: &KeptHandle, cx: &mut StepContext<Tasks>) {
        let Some(run) = &mut self.durable.run else { return };
        let bytes = handle.bytes().len();
        if bytes > HANDLE_BYTES_MAX {
            // Without its handle it could not be recovered.
            let reason =
                format!("its driver gave it a handle of {bytes} bytes; at most {HANDLE_BYTES_MAX} are kept");
            self.durable.wanted = Some(Wanted::Failed);
            return self.over(None, reason, cx);
        }
        run.state = RunState::Started(Box::new(handle.clone()));
        self.remember(cx);
        self.troubles.reset();
        self.is_driver_absent = false;
        self.phase = Phase::Running;
        self.await_disk(cx);
        self.attend(cx);
    }
}
