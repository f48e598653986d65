//! The preparation of a task: its directories and its context.

use crate::allocations::{PrepareError, TaskContext};
use crate::kernel::StepContext;

use super::calls::Answered;
use super::state::{Agent, AgentOptions, Task, Wanted};

impl Task {
    pub(super) fn prepared(
        &mut self,
        options: &AgentOptions,
        answer: &Answered<Result<TaskContext, PrepareError>>,
        cx: &mut StepContext<Agent>,
    ) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(None, cx);
        }
        match answer {
            Ok(Ok(context)) => {
                self.memory.sick_disk.reset();
                self.claim(options, context, cx);
            }
            Ok(Err(disk @ PrepareError::Disk { .. })) => {
                self.disk_is_sick(options, &disk.to_string(), cx);
            }
            Ok(Err(refusal)) => self.not_started(options, refusal.to_string(), cx),
            Err(error) => self.not_started(options, error.to_string(), cx),
        }
    }

    /// A disk that is full or gives no answer is not a fault of the task, so it uses up no restarts: the task continues by itself when
    /// the disk is sound again.
    pub(super) fn disk_is_sick(&mut self, options: &AgentOptions, reason: &str, cx: &mut StepContext<Agent>) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(None, cx);
        }
        let pause = self.memory.sick_disk.failed(&options.restart.backoff, cx.moment());
        self.start_later(pause, &format!("{reason}; retrying"), cx);
    }
}
