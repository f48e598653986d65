//! Stops an allocation, always in this order (A4, SHD-04): deregister, so that no new work is routed; wait for calls in flight; then
//! remove the socket and its directory. Each step is bounded, and its failure becomes a remark. A deregistration that was
//! not possible in time is retried further, unless the host itself stops.

use std::time::Duration;

use super::messages::{AllocationAnswer, AllocationStopped, TaskEventKind};
use super::neighbours::RetiredOutcome;
use super::state::{
    ActualState, Allocation, AllocationCall, AllocationTimer, Desired, Event, Phase, Stage, Stopping,
};
use crate::AskError;
use crate::instances::AwaitRetiredError;
use crate::kernel::{AskId, CallLost, StepContext};
use crate::vocabulary::{Attempt, Health};

/// The pause before a retry with actors that were too busy to answer.
const RETIRE_PAUSE: Duration = Duration::from_millis(100);

impl Allocation {
    pub(super) fn begin_stopping(&mut self, asker: Option<AskId>, cx: &mut StepContext<Self>) {
        if let Phase::Stopping(stopping) = &mut self.phase {
            match (asker, stopping.stage) {
                (Some(id), Stage::Owing) => {
                    cx.reply(id, AllocationAnswer::StopSupervision(stopping.report.clone()));
                }
                (asker, _) => stopping.askers.extend(asker),
            }
            return;
        }
        self.refuse_preparing(cx);
        let report = AllocationStopped { deregistered: false, remarks: Vec::new() };
        let askers = asker.into_iter().collect();
        let stopping = Stopping { askers, stage: Stage::Deregistering, report, is_last: false };
        self.enter(Phase::Stopping(stopping), "stopping; deregistering first", cx);
        let deadline = self.config.options.stop_deadline;
        cx.start_timer(AllocationTimer::StopDeadline, cx.now() + deadline);
        self.want(Desired::Out, cx);
    }

    /// The host itself stops: a deregistration is no longer owed, since the next start drops unconfirmed registrations (R8).
    pub(super) fn stop_with_host(&mut self, cx: &mut StepContext<Self>) {
        self.begin_stopping(None, cx);
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.is_last = true;
        }
        if self.stage() == Some(Stage::Owing) {
            self.enter(Phase::Ended, "stopped", cx);
        }
    }

    /// Waits until no instance talks to the plugin.
    pub(super) fn retire(&mut self, cx: &mut StepContext<Self>) {
        let deadline = self.config.options.retire_deadline;
        match self.phase {
            Phase::Stopping(Stopping { stage: Stage::Deregistering | Stage::Retiring { .. }, .. }) => {
                let attempt = self.call(AllocationCall::AwaitRetired, deadline, cx);
                self.set_stage(Stage::Retiring { attempt });
            }
            // That stage is over.
            Phase::Stopping(Stopping { stage: Stage::Removing { .. } | Stage::Owing, .. })
            | Phase::Prepared
            | Phase::Waiting(_)
            | Phase::Registering
            | Phase::Registered(_)
            | Phase::AwaitingRestart
            | Phase::Ended => {}
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.stage = stage;
        }
    }

    fn stage(&self) -> Option<Stage> {
        match &self.phase {
            Phase::Stopping(stopping) => Some(stopping.stage),
            Phase::Prepared
            | Phase::Waiting(_)
            | Phase::Registering
            | Phase::Registered(_)
            | Phase::AwaitingRestart
            | Phase::Ended => None,
        }
    }

    pub(super) fn retired(&mut self, attempt: Attempt, retired: &RetiredOutcome, cx: &mut StepContext<Self>) {
        if self.stage() != Some(Stage::Retiring { attempt }) {
            return;
        }
        match retired {
            // Without instances there are no calls.
            Ok(Ok(())) | Err(AskError::NotRunning { .. }) => self.remove_directory(cx),
            Ok(Err(AwaitRetiredError::TooMany { .. }))
            | Err(AskError::Busy { .. } | AskError::NotDurable { .. } | AskError::NotWritten { .. }) => {
                cx.start_timer(AllocationTimer::Retire, cx.now() + RETIRE_PAUSE);
            }
            Ok(Err(error @ AwaitRetiredError::StillServing { .. })) => {
                self.remark(error.to_string());
                self.remove_directory(cx);
            }
            Err(error @ AskError::Crashed { .. }) => {
                self.remark(format!("unknown whether calls were in flight: {error}"));
                self.remove_directory(cx);
            }
        }
    }

    pub(super) fn retire_lost(&mut self, attempt: Attempt, lost: &CallLost, cx: &mut StepContext<Self>) {
        if self.stage() == Some(Stage::Retiring { attempt }) {
            self.remark(format!("calls in flight to the plugin did not end in time: {lost}"));
            self.remove_directory(cx);
        }
    }

    fn remove_directory(&mut self, cx: &mut StepContext<Self>) {
        let deadline = self.config.options.directory_deadline;
        let attempt = self.call(AllocationCall::RemoveDirectory, deadline, cx);
        self.set_stage(Stage::Removing { attempt });
    }

    /// The stop timeout: continues without the pending step.
    pub(super) fn stop_deadline_passed(&mut self, cx: &mut StepContext<Self>) {
        let deadline = self.config.options.stop_deadline;
        match self.stage() {
            Some(Stage::Deregistering) => {
                let trouble =
                    self.registration_state.trouble.clone().unwrap_or_else(|| "no answer yet".to_owned());
                self.remark(format!("could not be deregistered within {deadline:?}: {trouble}"));
                self.remove_directory(cx);
            }
            Some(Stage::Retiring { .. }) => {
                self.remark(format!("calls in flight to the plugin did not end within {deadline:?}"));
                self.remove_directory(cx);
            }
            // The removal has its own deadline, an owed deregistration has none; other phases have no stop to time out.
            Some(Stage::Removing { .. } | Stage::Owing) | None => {}
        }
    }

    fn remark(&mut self, remark: String) {
        if let Phase::Stopping(stopping) = &mut self.phase {
            stopping.report.remarks.push(remark);
        }
    }

    pub(super) fn removed(&mut self, attempt: Attempt, left: &[String], cx: &mut StepContext<Self>) {
        let Phase::Stopping(stopping) = &mut self.phase else { return };
        if stopping.stage != (Stage::Removing { attempt }) {
            return;
        }
        stopping.report.remarks.extend_from_slice(left);
        let (report, is_last) = (stopping.report.clone(), stopping.is_last);
        for id in std::mem::take(&mut stopping.askers) {
            cx.reply(id, AllocationAnswer::StopSupervision(report.clone()));
        }
        self.health = Health::Gone;
        if is_last || self.registration_state.actual == ActualState::Out {
            self.enter(Phase::Ended, "stopped", cx);
        } else {
            self.last_event = "stopped, but still registered; trying to deregister it".to_owned();
            self.set_stage(Stage::Owing);
        }
        if !report.remarks.is_empty() {
            let message = format!("stopped, with remarks: {}", report.remarks.join("; "));
            self.event(Event { kind: TaskEventKind::StoppedWithRemarks, message });
        }
    }
}
