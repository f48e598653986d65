//! Handles a refused stop: volumes of the plugin are in use (V13). The allocation stays, and so does the allocation that was to replace
//! it; if the host stops, it is stopped nevertheless.

use crate::allocations::StopAllocationError;
use crate::kernel::StepContext;
use crate::vocabulary::Attempt;

use super::calls::AgentCall;
use super::messages::{AgentAnswer, TaskError};
use super::state::{Agent, Goal, Life, Phase, Task, Wanted};
use super::stopping::WITHDRAW_TIMEOUT;

impl Agent {
    pub(super) fn stop_refused(
        &mut self,
        attempt: Attempt,
        call: &AgentCall,
        error: &StopAllocationError,
        cx: &mut StepContext<Self>,
    ) {
        let Self { tasks, life, .. } = self;
        let is_meant =
            |task: &Task| Some(&task.config.name) == call.allocation() && task.memory.attempt == attempt;
        let Some(task) = tasks.iter_mut().find(|task| is_meant(task)) else { return };
        let Phase::Withdrawing { pid, then } = task.phase.clone() else { return };
        match life {
            // The stop that does not wait is in progress, too.
            _ if task.even_if_used => {}
            Life::Serving if then == Goal::Stop => {
                task.stay(pid, error, cx);
                let name = task.config.name.clone();
                self.replaces_no_more(&name, error, cx);
            }
            Life::Leaving(Wanted::Left) => {
                task.refuse_askers(error, cx);
                task.memory.wanted = Some(Wanted::Left);
                task.remember(cx);
                task.wind_down(pid, cx);
            }
            Life::Serving | Life::Leaving(_) | Life::Surveying { .. } => {
                task.withdraw_used(error, cx);
            }
        }
    }
}

impl Task {
    /// Continues as if nothing had been requested. A process that has ended meanwhile is started again like any other.
    fn stay(&mut self, pid: Option<u32>, error: &StopAllocationError, cx: &mut StepContext<Agent>) {
        self.refuse_askers(error, cx);
        self.memory.wanted = Some(Wanted::Running);
        self.remember(cx);
        match (pid, &self.memory.exit) {
            (Some(pid), _) => {
                self.enter(Phase::Running { pid }, error.to_string(), cx);
            }
            (None, Some(exit)) => self.report_exit(exit.how.clone(), cx),
            (None, None) => self.report_exit("its exit was not observed".to_owned(), cx),
        }
    }

    fn refuse_askers(&mut self, error: &StopAllocationError, cx: &mut StepContext<Agent>) {
        for asker in std::mem::take(&mut self.askers) {
            cx.reply(asker, AgentAnswer::StopTask(Err(TaskError::NotStopped(error.clone()))));
        }
    }

    /// Deregisters it nevertheless, within the rest of the time for that.
    fn withdraw_used(&mut self, error: &StopAllocationError, cx: &mut StepContext<Agent>) {
        let within = WITHDRAW_TIMEOUT.saturating_sub(cx.now().since(self.step_began));
        let reason = match error {
            StopAllocationError::Used { in_use, .. } => in_use.to_string(),
            StopAllocationError::Unclear { reason, .. } => reason.clone(),
            StopAllocationError::Unknown(unknown) => unknown.to_string(),
        };
        self.finish_step(cx.moment(), "users", format!("not waited for any longer: {reason}"), false);
        let allocation = self.config.name.clone();
        self.call(within, AgentCall::Withdraw { allocation, even_if_used: true }, cx);
    }
}
