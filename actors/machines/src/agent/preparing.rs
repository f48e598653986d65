//! The preparation of a task: its directories and its context.

use crate::allocations::{PrepareError, TaskContext};
use crate::kernel::Effects;
use crate::vocabulary::Moment;

use super::calls::Answered;
use super::state::{Agent, AgentOptions, Task, Wanted};

impl Task {
    pub(super) fn prepared(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        answer: &Answered<Result<TaskContext, PrepareError>>,
        effects: &mut Effects<Agent>,
    ) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(moment, None, effects);
        }
        match answer {
            Ok(Ok(context)) => {
                self.memory.sick_disk.reset();
                self.claim(moment, options, context, effects);
            }
            Ok(Err(disk @ PrepareError::Disk { .. })) => {
                self.disk_is_sick(moment, options, &disk.to_string(), effects);
            }
            Ok(Err(refusal)) => self.not_started(moment, options, refusal.to_string(), effects),
            Err(error) => self.not_started(moment, options, error.to_string(), effects),
        }
    }

    /// A disk that is full or gives no answer is no fault of the task, so it uses up no restarts: the task goes on by itself when the disk
    /// is sound again.
    pub(super) fn disk_is_sick(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        reason: &str,
        effects: &mut Effects<Agent>,
    ) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(moment, None, effects);
        }
        let pause = self.memory.sick_disk.failed(&options.restart.backoff, moment);
        self.start_later(moment, pause, &format!("{reason}; tried again"), effects);
    }
}
