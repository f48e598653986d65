//! Checks the final state of the owner of the allocations and of their supervisors once faults have stopped.

use callboard_actors::allocation::Task;
use callboard_actors::shell::StopMode;

use super::super::law::Law;
use super::super::law_checker::{Violation, violation};
use super::super::search::Stage;
use super::event::name;
use super::known::Known;
use super::scene::{AllocationsScene, allocation};

impl AllocationsScene {
    pub(super) fn check_rest(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        if let Some(mode) = stage.stopped {
            return self.check_stopped(stage, mode);
        }
        if stage.actor.machine().is_none() {
            return violation(Law::Shell4, "the owner of the allocations does not live");
        }
        let known = |place| stage.actor.checker.known(&allocation(place));
        let count = (0..self.handler.entries.len()).filter(|place| known(*place).is_some()).count();
        if stage.actor.store.len() != count {
            return violation(
                Law::A5,
                format!("{} allocations are kept, and {count} are known", stage.actor.store.len()),
            );
        }
        (0..self.handler.entries.len()).try_for_each(|place| match known(place) {
            Some(known) => self.check_known(place, known),
            None => self.check_gone(stage, place),
        })
    }

    fn check_stopped(&self, stage: &Stage<Self>, mode: StopMode) -> Result<(), Violation> {
        if !stage.actor.has_ended() {
            return violation(Law::S3, "told to stop, the owner of the allocations goes on");
        }
        if self.handler.entries.iter().any(|entry| entry.supervisor.is_some()) {
            return violation(Law::S4, "the owner of the allocations has ended, and a supervisor is left");
        }
        if mode == StopMode::Detach {
            return Ok(());
        }
        (0..self.handler.entries.len()).try_for_each(|place| self.check_gone(stage, place))
    }

    fn check_gone(&self, stage: &Stage<Self>, place: usize) -> Result<(), Violation> {
        let entry = &self.handler.entries[place];
        if entry.supervisor.is_some() {
            return violation(Law::A5, format!("{} is not known, and its supervisor lives", name(place)));
        }
        let is_excused = entry.is_excused || stage.actor.checker.abandoned.contains(&allocation(place));
        if entry.is_registered && !is_excused {
            return violation(Law::A5, format!("{} is not known, and is registered", name(place)));
        }
        Ok(())
    }

    fn check_known(&self, place: usize, known: &Known) -> Result<(), Violation> {
        let entry = &self.handler.entries[place];
        if known.is_given_up && entry.supervisor.is_none() {
            return Ok(());
        }
        let Some(supervisor) = &entry.supervisor else {
            return violation(Law::A5, format!("{} is known, and has no supervisor", name(place)));
        };
        if supervisor.life != known.life || known.is_down {
            return violation(
                Law::A5,
                format!("another life of {} lives than its owner thinks", name(place)),
            );
        }
        if known.task == Task::Leaving {
            return violation(Law::A5, format!("{} was stopped, and is still there", name(place)));
        }
        if supervisor.task != known.task {
            let (known, thought) = (known.task, supervisor.task);
            return violation(
                Law::A5,
                format!("{} is {known:?}, and its supervisor takes it for {thought:?}", name(place)),
            );
        }
        if entry.is_registered != (known.task == Task::Running) {
            return violation(
                Law::A5,
                format!("{} is {:?}: registered {}", name(place), known.task, entry.is_registered),
            );
        }
        Ok(())
    }
}
