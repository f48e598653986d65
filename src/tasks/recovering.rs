//! What is decided for one task of which something is to be found out: whether a start was one, whether it still runs, and how
//! it ended.

use callboard_actors::driver::client::{TaskEnd, TaskExit};
use callboard_actors::shell::Effects;
use callboard_actors::vocabulary::Moment;

use super::calls::*;
use super::running::{ASK_PATIENCE, TROUBLE_BACKOFF};
use super::state::*;

impl Task {
    pub(super) fn recover(&mut self, key: RunKey, effects: &mut Effects<Tasks>) {
        let Some(RunState::Started(handle)) = self.course.run.as_ref().map(|run| &run.state) else { return };
        // It was stored without the environment.
        let handle = handle.as_ref().clone().with_environment(&self.config.environment);
        let call = TasksCall::Recover(key, Box::new(handle));
        self.phase = Phase::Recovering;
        self.call(ASK_PATIENCE, call, effects);
    }

    /// Takes what the driver says of a run that was intended.
    pub(super) fn inspected(
        &mut self,
        moment: Moment,
        answer: &Result<Found, Trouble>,
        effects: &mut Effects<Tasks>,
    ) {
        if self.phase != Phase::Settling {
            return;
        }
        let Some(id) = self.course.run.as_ref().map(|run| run.id.clone()) else { return };
        match answer {
            Ok(Found::Running) => {
                let note = format!(
                    "{id} was found running, and nothing is known by which it could be recovered; it is ended and \
                     started anew"
                );
                self.over(moment, None, note, effects);
            }
            Ok(Found::Exited(exit)) => {
                self.over(moment, Some(exit.clone()), format!("{id} was found ended: {exit}"), effects);
            }
            Ok(Found::Nothing { words, is_proof: false }) if moment.now < self.unsure_until => {
                let note = format!(
                    "its driver knows nothing of {id} yet, and may still be busy with the start of it: {words}"
                );
                self.note(note, effects);
                let pause = self.troubles.failed(&TROUBLE_BACKOFF, moment);
                let at = (moment.now + pause).min(self.unsure_until);
                effects.start_timer(TasksTimer::Again(self.config.name.clone()), at);
            }
            Ok(Found::Nothing { words, .. }) => {
                let cause = std::mem::take(&mut self.cause);
                let why = if cause.is_empty() { cause } else { format!("{cause}; ") };
                // Its word is no proof: what it began may run on without it (T115).
                self.cause = format!("{why}{id} was not started, its driver knows nothing of it: {words}");
                self.sweep(moment, Word::Had, effects);
            }
            Err(trouble) => {
                let note = format!("it is not known whether {id} was started: {trouble}");
                self.not_answered(moment, trouble, note, effects);
            }
        }
    }

    pub(super) fn recovered(
        &mut self,
        moment: Moment,
        answer: &Result<(), Trouble>,
        effects: &mut Effects<Tasks>,
    ) {
        if self.phase != Phase::Recovering {
            return;
        }
        let Some(id) = self.course.run.as_ref().map(|run| run.id.clone()) else { return };
        match answer {
            Ok(()) => self.go_on(moment, format!("{id} is recovered and runs"), effects),
            Err(trouble) if trouble.is_transient => {
                let note = format!("{id} is not recovered yet: {trouble}");
                self.not_answered(moment, trouble, note, effects);
            }
            // What became of it nobody knows: it may live, so it is not over before nothing is left of it (TH041), and how it
            // ended is no success (EVT-05).
            Err(trouble) => {
                let reason = format!("its driver cannot recover it: {trouble}");
                let exit = TaskExit { end: TaskEnd::Unknown(reason.clone()), oom_killed: false };
                self.over(moment, Some(exit), format!("{id}: {reason}"), effects);
            }
        }
    }

    pub(super) fn waited(
        &mut self,
        moment: Moment,
        answer: &Result<TaskExit, Trouble>,
        effects: &mut Effects<Tasks>,
    ) {
        if !matches!(self.phase, Phase::Running | Phase::Stopping) {
            return;
        }
        match answer {
            Ok(exit) => self.over(moment, Some(exit.clone()), exit.to_string(), effects),
            // Its driver is gone, or does not know it any more: it is recovered as soon as that can be.
            Err(trouble) => {
                let note = format!("lost sight of it: {trouble}; to be recovered");
                self.enter(moment, Phase::Recovering, note.clone(), effects);
                self.not_answered(moment, trouble, note, effects);
            }
        }
    }
}
