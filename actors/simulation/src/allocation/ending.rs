//! Checks the final state of the supervisor of an allocation and its surroundings once faults have stopped.

use callboard_actors::allocation::{AllocationPhase, Task};
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::Health;

use super::super::law::Law;
use super::super::law_checker::{Violation, violation};
use super::super::search::Stage;
use super::scene::AllocationScene;

impl AllocationScene {
    pub(super) fn check_rest(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        match (stage.stopped, self.owner.task) {
            (Some(StopMode::Detach), _) => Self::must_have_ended(stage),
            (Some(StopMode::Stop), _) => self.check_left(stage),
            (None, Task::Leaving) => self.check_left(stage),
            (None, task) => self.check_calm(stage, task),
        }
    }

    fn must_have_ended(stage: &Stage<Self>) -> Result<(), Violation> {
        if stage.actor.has_ended() {
            return Ok(());
        }
        violation(Law::S4, "told to stop, it goes on")
    }

    fn check_left(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        Self::must_have_ended(stage)?;
        if self.neighbours.around.has_directory && !self.is_disturbed {
            return violation(Law::A4, "it has left, and its files are there");
        }
        // The next start of the host drops unconfirmed registrations.
        let is_left_to_next = stage.stopped.is_some() && self.is_disturbed;
        if self.neighbours.registered.is_some() && !is_left_to_next {
            return violation(Law::A4, "it has left, and is registered");
        }
        Ok(())
    }

    fn check_calm(&self, stage: &Stage<Self>, task: Task) -> Result<(), Violation> {
        let Some(machine) = stage.actor.machine() else {
            return violation(Law::Shell4, "the supervisor does not live");
        };
        let registered = &self.neighbours.registered;
        let status = machine.view();
        match task {
            Task::Running if status.phase == AllocationPhase::AwaitingRestart => Ok(()),
            Task::Running => {
                let is_registered = *registered == Some(self.neighbours.around.version());
                if is_registered && status.phase == AllocationPhase::Registered {
                    return match status.health {
                        Health::Healthy => Ok(()),
                        other => violation(Law::A3, format!("what is healthy is called {other}")),
                    };
                }
                let shown = status.phase.as_str();
                violation(
                    Law::A3,
                    format!("a plugin that is ready is {shown}, and registered as {registered:?}"),
                )
            }
            Task::Exited if registered.is_some() => {
                violation(Law::A4, "a task has ended, and its plugin is registered")
            }
            Task::NotStarted | Task::Exited if status.phase != AllocationPhase::Prepared => {
                violation(Law::A3, format!("a task that does not run is shown as {}", status.phase.as_str()))
            }
            // A registration of an earlier run is left alone.
            Task::NotStarted | Task::Exited | Task::Leaving => Ok(()),
        }
    }
}
