//! The preparation of a task: its directories and its context.

use crate::allocations::{PrepareError, TaskContext};
use crate::kernel::Effects;
use crate::vocabulary::Moment;

use super::calls::{AgentTimer, Answered};
use super::state::{Agent, AgentOptions, Phase, Task, Wanted};

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
                self.claim(moment, options, context, effects);
            }
            Ok(Err(disk @ PrepareError::Directory { .. })) => {
                self.not_prepared(moment, options, &disk.to_string(), effects);
            }
            Ok(Err(refusal)) => self.not_started(moment, options, refusal.to_string(), effects),
            Err(error) => self.not_prepared(moment, options, &error.to_string(), effects),
        }
    }

    /// It is not to blame for a disk that is full or gives no answer, so its restarts are not used up: it goes on by itself when the disk
    /// is sound again.
    pub(super) fn not_prepared(
        &mut self,
        moment: Moment,
        options: &AgentOptions,
        reason: &str,
        effects: &mut Effects<Agent>,
    ) {
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(moment, None, effects);
        }
        let pause = self.memory.backoff.failed(&options.restart.backoff, moment);
        self.remember(effects);
        let event = format!("{reason}; tried again in {:.1} s", pause.as_secs_f64());
        self.enter(moment, Phase::Waiting, event, effects);
        effects.start_timer(AgentTimer::Start(self.config.name.clone()), moment.now + pause);
    }
}
