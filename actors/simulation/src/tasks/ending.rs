//! The final state of the tasks once faults have stopped.

use callboard_actors::shell::StopMode;
use callboard_actors::tasks::{Started, TaskPhase, TasksCall};
use callboard_actors::vocabulary::{AllocationId, Timestamp};

use super::answering::handle;
use super::born::RESTARTS_MAX;
use super::environment::Standing;
use super::host::{Host, LastReport};
use crate::{Law, Outcome};

impl Host {
    /// Performs the next event that must happen without a fault. False if only time has to pass. A start that nothing waits
    /// for proceeds only when nothing else does.
    pub(super) fn go_on(&mut self, now: Timestamp) -> bool {
        if self.actor.has_ended() {
            return false;
        }
        let standing = self.environment.process.as_ref().map(|process| process.standing);
        let due = self.questions().into_iter().find(|(_, _, is_due)| *is_due);
        if self.actor.store.waiting() > 0 && !self.actor.is_sick() {
            self.settle(now, usize::MAX, Outcome::Written);
        } else if self.actor.is_loading() {
            self.load(now);
        } else if standing != Some(Standing::Serves) {
            match standing {
                Some(Standing::Left) => self.environment.find(),
                Some(Standing::Doomed) => self.environment.die(),
                Some(Standing::Serves) | None => self.environment.launch(),
            }
            self.carry(now);
        } else if let Some(place) = self.awaited_work() {
            self.work(now, place);
        } else if let Some((question, task, _)) = due {
            self.answer(now, question, task);
        } else {
            return false;
        }
        true
    }

    /// A start that a call waits for.
    fn awaited_work(&self) -> Option<u8> {
        let mut starts = self.actor.calls().filter_map(|(number, call)| match call {
            TasksCall::Start(run, _) if self.sent.contains(&number) => Some(run),
            _ => None,
        });
        let place =
            starts.find_map(|run| self.environment.works().iter().position(|work| work.run == *run))?;
        u8::try_from(place).ok()
    }

    /// The driver proceeds with a start.
    fn work(&mut self, now: Timestamp, place: u8) {
        if self.environment.works().get(usize::from(place)).is_some_and(|work| work.has_begun) {
            self.finish(now, place, |run| Started::Runs(handle(run)));
        } else {
            self.begin(place);
        }
    }

    /// The driver proceeds with a start that no call waits for. False if there is none.
    pub(super) fn go_on_alone(&mut self, now: Timestamp) -> bool {
        let has_one = !self.environment.works().is_empty();
        if has_one {
            self.work(now, 0);
        }
        has_one
    }

    /// Whether nothing more happens by itself, not even later.
    pub(super) fn is_calm(&self) -> bool {
        let is_settled = |told: &LastReport| told.is_down() || told.phase == TaskPhase::Running;
        self.actor.has_ended()
            || self.ends.is_none()
                && self.actor.machine().is_some()
                && self.unanswered.is_empty()
                && self.told.values().all(is_settled)
    }

    /// Checks at rest that each task is as wanted, or has a reported reason why not.
    pub(super) fn check_end(&mut self) {
        let found = match self.ends {
            Some(mode) => self.check_ended(mode),
            None => self.check_calm(),
        };
        if let Err((law, what)) = found {
            self.verdict.violation(law, || what);
        }
    }

    /// Checks at rest on a sick disk that no caller waits, and that the tasks have ended if that was requested.
    pub(super) fn check_sick(&mut self) {
        if self.actor.machine().is_none() {
            return;
        }
        let told = &self.told;
        if self.ends.is_some() {
            self.verdict
                .violation(Law::Shell1a, || format!("the disk is sick, and the tasks go on: {told:?}"));
        } else if let Some((asker, name)) = self.unanswered.first_key_value() {
            self.verdict.violation(Law::Shell1a, || {
                format!("the disk is sick, and asker {asker} is not answered; {name} is {:?}", told.get(name))
            });
        }
    }

    fn check_ended(&self, mode: StopMode) -> Result<(), (Law, String)> {
        if !self.actor.has_ended() {
            return Err((Law::S3, format!("told to end, the tasks go on: {:?}", self.told)));
        }
        if mode == StopMode::Detach && self.environment.manner.survives {
            return Ok(());
        }
        for (name, told) in &self.told {
            if self.environment.living(name) > 0 && told.phase != TaskPhase::OutOfReach {
                return Err((Law::T3, format!("the host has stopped, and {name} runs: {told:?}")));
            }
        }
        Ok(())
    }

    fn check_calm(&self) -> Result<(), (Law, String)> {
        if let Some((asker, name)) = self.unanswered.first_key_value() {
            let told = self.told.get(name);
            return Err((Law::Shell7, format!("asker {asker} was never answered; {name} is {told:?}")));
        }
        if self.actor.machine().is_none() {
            return Err((Law::Shell4, "the tasks do not live".to_owned()));
        }
        self.told.iter().try_for_each(|(name, told)| self.check_task(name, told))
    }

    fn check_task(&self, name: &AllocationId, told: &LastReport) -> Result<(), (Law, String)> {
        let wanted = self.wants.get(name).copied().flatten();
        let copies = &self.environment.copies;
        let living = self.environment.living(name);
        match told.phase {
            TaskPhase::Running if wanted == Some(false) => {
                Err((Law::T3, format!("{name} was to stop, and is told to run")))
            }
            TaskPhase::Running => {
                let run = told.run.as_ref();
                if run.is_some_and(|run| self.environment.says_runs(run) && self.environment.lives(run)) {
                    return Ok(());
                }
                Err((Law::T2, format!("{name} is told to run as {run:?}, and there live {copies:?}")))
            }
            TaskPhase::Stopped | TaskPhase::Ended | TaskPhase::Failed if living > 0 => {
                Err((Law::T3, format!("{name} is told to be {}, and there live {copies:?}", told.phase)))
            }
            TaskPhase::Stopped | TaskPhase::Ended | TaskPhase::Failed => {
                if wanted != Some(true) || self.is_so(name, told) {
                    return Ok(());
                }
                Err((Law::T2, format!("{name} is wanted, and told to be {} without cause", told.phase)))
            }
            TaskPhase::Starting
            | TaskPhase::Recovering
            | TaskPhase::Stopping
            | TaskPhase::Waiting
            | TaskPhase::OutOfReach => {
                Err((Law::T2, format!("{name} never gets further than {}", told.phase)))
            }
        }
    }

    /// Whether the reported state of a wanted task has a cause.
    fn is_so(&self, name: &AllocationId, told: &LastReport) -> bool {
        match told.phase {
            TaskPhase::Ended => self.environment.exits.get(name) == Some(&0),
            TaskPhase::Failed => {
                self.environment.refused.contains(name) || told.restarts >= u64::from(RESTARTS_MAX)
            }
            TaskPhase::OutOfReach
            | TaskPhase::Stopped
            | TaskPhase::Starting
            | TaskPhase::Recovering
            | TaskPhase::Running
            | TaskPhase::Stopping
            | TaskPhase::Waiting => false,
        }
    }
}
