//! Decides how all children are stopped: on request, as rollback of a failed start, or after giving up.

use std::time::Duration;

use super::messages::{
    ChildEnding, RestartError, ShutdownError, ShutdownReport, StartError, StopOutcome, SupervisorAnswer,
    SupervisorNews,
};
use super::state::{ChildPhase, Closing, ClosingCause, Fall, Phase, Supervisor, Timer, WAITERS_MAX};
use crate::kernel::{AskId, StepContext, StopMode};

impl Supervisor {
    pub(super) fn shutdown_asked(&mut self, id: AskId, mode: StopMode, cx: &mut StepContext<Self>) {
        self.begin_closing(ClosingCause::Asked, mode, cx);
        self.await_report(id, cx);
        self.close_next(cx);
    }

    /// Stops everything; nothing is started from now on. A stop in progress keeps its cause.
    pub(super) fn close(&mut self, cause: ClosingCause, mode: StopMode, cx: &mut StepContext<Self>) {
        self.begin_closing(cause, mode, cx);
        self.close_next(cx);
    }

    fn begin_closing(&mut self, cause: ClosingCause, mode: StopMode, cx: &mut StepContext<Self>) {
        if let Phase::Closing(closing) = &mut self.phase {
            if mode == StopMode::Stop {
                closing.mode = mode;
            }
            return;
        }
        for group in self.group_restarts.drain(..) {
            cx.cancel_timer(Timer::Pause(group.number));
        }
        self.disappoint(&cause, cx);
        self.phase =
            Phase::Closing(Closing { cause, mode, begun: cx.now(), endings: Vec::new(), askers: Vec::new() });
        for child in 0..self.children.len() {
            match &self.children[child].phase {
                // A child that is not ready is stopped at once, out of turn.
                ChildPhase::Starting { .. } => self.stop(child, mode, cx),
                ChildPhase::Stuck { reason } => {
                    let outcome = StopOutcome::Stuck { reason: reason.clone() };
                    self.note(child, outcome);
                }
                ChildPhase::Unseen
                | ChildPhase::Waiting
                | ChildPhase::Running { .. }
                | ChildPhase::Stopping { .. }
                | ChildPhase::Ended
                | ChildPhase::Closed => {}
            }
        }
    }

    /// Answers callers with an error. Callers that wait for the start receive a failed start after the rollback.
    fn disappoint(&mut self, cause: &ClosingCause, cx: &mut StepContext<Self>) {
        for (_, id) in std::mem::take(&mut self.awaiting_restart) {
            cx.reply(id, SupervisorAnswer::RestartChild(Err(RestartError::Stopping)));
        }
        if matches!(cause, ClosingCause::Asked) {
            for id in std::mem::take(&mut self.awaiting_start) {
                cx.reply(id, SupervisorAnswer::AwaitStarted(Err(StartError::Stopping)));
            }
        }
    }

    fn await_report(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        let Phase::Closing(closing) = &mut self.phase else { return };
        if closing.askers.len() < WAITERS_MAX {
            closing.askers.push(id);
        } else {
            let refusal = ShutdownError::TooManyWaiting { limit: WAITERS_MAX };
            cx.reply(id, SupervisorAnswer::Shutdown(Err(refusal)));
        }
    }

    /// Stops the last child that still needs it; if there is none, the supervisor ends.
    pub(super) fn close_next(&mut self, cx: &mut StepContext<Self>) {
        let Phase::Closing(Closing { mode: wanted, .. }) = self.phase else { return };
        for child in (0..self.children.len()).rev() {
            match &self.children[child].phase {
                ChildPhase::Closed | ChildPhase::Stuck { .. } => {}
                ChildPhase::Waiting | ChildPhase::Ended if self.may_have_left(child) => {
                    self.stop(child, wanted, cx);
                    return;
                }
                ChildPhase::Waiting | ChildPhase::Ended => {
                    self.note(child, self.ended_before(child));
                    self.children[child].phase = ChildPhase::Closed;
                }
                ChildPhase::Stopping { mode, is_final, .. }
                    if *mode == wanted && (*is_final || !self.may_have_left(child)) =>
                {
                    return;
                }
                // Its group restart asked it to detach, or to stop for another life, or its state is unknown yet.
                ChildPhase::Stopping { .. }
                | ChildPhase::Running { .. }
                | ChildPhase::Starting { .. }
                | ChildPhase::Unseen => {
                    self.stop(child, wanted, cx);
                    return;
                }
            }
        }
        self.finish(cx);
    }

    /// Whether something that it started may outlive it.
    pub(super) fn may_have_left(&self, child: usize) -> bool {
        self.spec_of(child).may_leave && self.children[child].has_run
    }

    pub(super) fn ended_before(&self, child: usize) -> StopOutcome {
        match &self.children[child].fall {
            Some(Fall { reason, in_order }) => {
                StopOutcome::EndedBefore { reason: reason.clone(), in_order: *in_order }
            }
            None => StopOutcome::NotStarted,
        }
    }

    fn note(&mut self, child: usize, outcome: StopOutcome) {
        let ending =
            ChildEnding { name: self.name_of(child), ending: outcome, below: vec![], took: Duration::ZERO };
        if let Phase::Closing(closing) = &mut self.phase {
            closing.endings.push(ending);
        }
    }

    /// A child has been stopped; continues with the next one.
    pub(super) fn closed(&mut self, child: usize, ending: ChildEnding, cx: &mut StepContext<Self>) {
        self.children[child].phase = match &ending.ending {
            StopOutcome::Stuck { reason } => ChildPhase::Stuck { reason: reason.clone() },
            StopOutcome::Stopped
            | StopOutcome::Killed { .. }
            | StopOutcome::Crashed { .. }
            | StopOutcome::EndedBefore { .. }
            | StopOutcome::NotStarted => ChildPhase::Closed,
        };
        if let Phase::Closing(closing) = &mut self.phase {
            closing.endings.push(ending.clone());
        }
        cx.publish(SupervisorNews::ChildStopped(ending));
        self.close_next(cx);
    }

    /// Everything has ended: sends the report, and ends the supervisor.
    fn finish(&mut self, cx: &mut StepContext<Self>) {
        self.answer_describers(None, &[], cx);
        let Phase::Closing(closing) = &mut self.phase else { return };
        let took = cx.now().since(closing.begun);
        for id in std::mem::take(&mut closing.askers) {
            let report = ShutdownReport { children: closing.endings.clone(), took };
            cx.reply(id, SupervisorAnswer::Shutdown(Ok(report)));
        }
        let (error, cause) = match closing.cause.clone() {
            ClosingCause::Asked => {
                cx.stop();
                return;
            }
            ClosingCause::StartFailed { child, reason } => {
                let cause = format!("{child} did not start: {reason}");
                (StartError::Child { child, reason }, cause)
            }
            ClosingCause::Escalated { reason } => (StartError::GaveUp { reason: reason.clone() }, reason),
        };
        for id in std::mem::take(&mut self.awaiting_start) {
            cx.reply(id, SupervisorAnswer::AwaitStarted(Err(error.clone())));
        }
        cx.fail(cause);
    }
}
