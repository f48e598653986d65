//! Decisions for a task that is out of reach: its driver does not end it, and its remains are not found or do not end. It
//! is left as it is, and checked again while the host serves.

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::TasksTimer;
use super::messages::{HAS_ENDED, TaskError, TasksAnswer};
use super::state::*;
use crate::kernel::StepContext;
use crate::vocabulary::{AllocationId, Backoff};

/// The longest pause between two checks of a task that is out of reach, unless a longer one is configured.
const LOOK_LONGEST: Duration = Duration::from_secs(600);

/// Whether a later check of a task can find more than this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Later {
    /// Its driver may answer, or its remains may end.
    Possible,
    /// Its driver is no longer in the configuration and is unavailable: that stays so in this run of the host.
    Pointless,
}

impl Tasks {
    /// Checks again a task that is out of reach, and its driver if that was unavailable.
    pub(super) fn look_again(&mut self, name: &AllocationId, cx: &mut StepContext<Self>) {
        let is_due = |task: &Task| task.config.name == *name && task.phase == Phase::OutOfReach;
        if self.shutdown == ShutdownState::Serving && self.tasks.iter().any(is_due) {
            self.bring_back_for(name, cx);
            self.set_up_again(name, cx);
            self.with(name, |task, scene| task.take_up_again(scene, cx));
        }
    }
}

impl Task {
    /// Leaves it as it is, and keeps its run recorded: it may still run, or something of it may be left.
    pub(super) fn out_of_reach(
        &mut self,
        scene: &Scene<'_>,
        (reason, later): (String, Later),
        cx: &mut StepContext<Tasks>,
    ) {
        let name = self.config.name.clone();
        cx.cancel_timer(TasksTimer::Again(name.clone()));
        cx.cancel_timer(TasksTimer::GiveUp(name.clone()));
        let ending = match self.known_end() {
            Some(_) => format!("it {HAS_ENDED}: {reason}"),
            None => format!("left as it is, it may still run: {reason}"),
        };
        self.finish_step(cx.moment(), ending, true);
        for asker in std::mem::take(&mut self.askers) {
            cx.reply(asker, TasksAnswer::StopTask(Err(self.not_stopped(reason.clone()))));
        }
        if scene.shutdown != ShutdownState::Serving || later == Later::Pointless {
            return self.enter(Phase::OutOfReach, reason, cx);
        }
        let first = self.config.look_again;
        let backoff = Backoff {
            first,
            longest: first.max(LOOK_LONGEST),
            jitter_percent: 10,
            reset_after: Duration::from_secs(3_600),
        };
        let pause = self.out_of_reach.failed(&backoff, cx.moment());
        cx.start_timer(TasksTimer::LookAgain(name), cx.now() + pause);
        let seconds = pause.as_millis().div_ceil(1_000);
        let note =
            format!("{reason}; looked at again in {seconds} s, or at once by `callboard stop` or `start`");
        self.enter(Phase::OutOfReach, note, cx);
    }

    /// Why a stop of the task is answered with an error instead of its end.
    pub(super) fn not_stopped(&self, reason: String) -> TaskError {
        let name = self.config.name.clone();
        match self.known_end() {
            Some(_) => TaskError::Remains { name, reason },
            None => TaskError::OutOfReach { name, reason },
        }
    }

    /// Queries its driver about its run once more, as after a restart of the host. The time for which its driver may have been busy with a
    /// start keeps counting: the driver is replaced when that time is long enough.
    pub(super) fn take_up_again(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        cx.cancel_timer(TasksTimer::LookAgain(self.config.name.clone()));
        let is_over = |run: &Run| matches!(run.state, RunState::Over { .. });
        if !self.durable.run.as_ref().is_some_and(is_over) {
            self.cause.clear();
        }
        self.take_up(scene, cx);
    }
}
