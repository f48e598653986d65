//! What the supervisor of an allocation and those around it come to when nothing goes wrong any more.

use callboard_actors::allocation::{AllocationPhase, Task};
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::Health;

use super::super::law::Law;
use super::super::witness::{Violation, violation};
use super::world::AllocationWorld;

impl AllocationWorld {
    pub(super) fn check_end(&self) -> Result<(), Violation> {
        if !self.owner.unanswered.is_empty() {
            return violation(
                Law::Shell7,
                format!("questions {:?} were never answered", self.owner.unanswered.keys()),
            );
        }
        match (self.stopped, self.owner.task) {
            (Some(StopMode::Detach), _) => self.must_have_ended(),
            (Some(StopMode::Stop), _) => self.check_left(),
            (None, Task::Leaving) => self.check_left(),
            (None, task) => self.check_calm(task),
        }
    }

    fn must_have_ended(&self) -> Result<(), Violation> {
        if self.supervisor.has_ended() {
            return Ok(());
        }
        violation(Law::S4, "told to stop, it goes on")
    }

    fn check_left(&self) -> Result<(), Violation> {
        self.must_have_ended()?;
        if self.neighbours.around.has_directory && !self.is_disturbed {
            return violation(Law::A4, "it has left, and its files are there");
        }
        // The next start of the host drops what is not confirmed.
        let is_left_to_next = self.stopped.is_some() && self.is_disturbed;
        if self.neighbours.registered.is_some() && !is_left_to_next {
            return violation(Law::A4, "it has left, and is registered");
        }
        Ok(())
    }

    fn check_calm(&self, task: Task) -> Result<(), Violation> {
        let Some(machine) = self.supervisor.machine() else {
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
            // What an earlier run left is left alone.
            Task::NotStarted | Task::Exited | Task::Leaving => Ok(()),
        }
    }
}
