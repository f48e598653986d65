//! Replaces one allocation by another behind a gate (F16): the new one is started beside the old one, which leaves only when the new
//! one has been healthy for a while; otherwise the new one leaves.

use std::time::Duration;

use callboard_actors::instances::{AwaitHealthy, AwaitHealthyError};
use callboard_actors::shell::{AskError, AskId, CallKey, CallLost, Effects};
use callboard_actors::vocabulary::{AllocationId, Attempt, Moment, PluginKey};

use super::behaviour::AgentAnswer;
use super::messages::{Replace, ReplaceError, TaskError, TaskPhase, TaskStopped};
use super::state::{Agent, AgentCall, Life, Task, Wanted};

/// How much later than its own timeout an answer about health may come.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);

/// One replacement that is under way.
#[derive(Debug)]
pub(super) struct Replacement {
    asker: AskId,
    number: Attempt,
    old: AllocationId,
    new: AllocationId,
    /// Whether the new one was started for this; otherwise it is not stopped if it is not healthy.
    is_started_for_it: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The new one is to become healthy.
    Gate,
    /// The old one is being stopped.
    Leaving,
    /// The new one is being stopped, for this reason.
    RollingBack(String),
}

impl Agent {
    /// Begins a replacement, or says why not.
    pub(super) fn replace(
        &mut self,
        moment: Moment,
        asker: AskId,
        replace: &Replace,
        effects: &mut Effects<Self>,
    ) -> Result<(), ReplaceError> {
        self.check_replaceable(replace)?;
        let Replace { allocation, with, healthy_for, within } = replace;
        let new = self.known(with)?;
        let (plugin, role) = (new.config.plugin.clone(), new.config.role);
        let is_started_for_it = match self.start(moment, with, effects) {
            Ok(()) => true,
            Err(TaskError::Started { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        self.replacement = self.replacement.next();
        let types = role.plugin_types().iter();
        let awaited = AwaitHealthy {
            allocation: with.clone(),
            plugins: types.map(|kind| PluginKey::new(*kind, plugin.clone())).collect(),
            healthy_for: *healthy_for,
            within: *within,
        };
        let key = CallKey { attempt: self.replacement, ..CallKey::default() };
        effects.call(key, within.saturating_add(ANSWER_MARGIN), AgentCall::AwaitHealthy(awaited));
        self.replacements.push(Replacement {
            asker,
            number: self.replacement,
            old: allocation.clone(),
            new: with.clone(),
            is_started_for_it,
            stage: Stage::Gate,
        });
        Ok(())
    }

    fn known(&self, allocation: &AllocationId) -> Result<&Task, TaskError> {
        let task = self.tasks.iter().find(|task| task.config.name == *allocation);
        task.ok_or_else(|| TaskError::Unknown { allocation: allocation.clone() })
    }

    fn check_replaceable(&self, Replace { allocation, with, .. }: &Replace) -> Result<(), ReplaceError> {
        let (old, new) = (self.known(allocation)?, self.known(with)?);
        if allocation == with {
            return Err(ReplaceError::Itself { allocation: allocation.clone() });
        }
        if (&old.config.plugin, old.config.role) != (&new.config.plugin, new.config.role) {
            let [old, new] = [old, new].map(|task| format!("{} as {}", task.config.plugin, task.config.role));
            let (allocation, with) = (allocation.clone(), with.clone());
            return Err(ReplaceError::OtherPlugin { allocation, with, old, new });
        }
        let involves = |other: &&Replacement| {
            [&other.old, &other.new].into_iter().any(|name| name == allocation || name == with)
        };
        if let Some(other) = self.replacements.iter().find(involves) {
            let (allocation, with) = (other.old.clone(), other.new.clone());
            return Err(ReplaceError::UnderWay { allocation, with });
        }
        match old.phase.told() {
            TaskPhase::Stopped | TaskPhase::Failed => {
                Err(TaskError::NotRunning { allocation: allocation.clone(), phase: old.phase.told() }.into())
            }
            TaskPhase::Stopping => Err(TaskError::Stopping { allocation: allocation.clone() }.into()),
            TaskPhase::Starting | TaskPhase::Running | TaskPhase::Waiting => Ok(()),
        }
    }

    /// The gate of a replacement has opened, or will not.
    pub(super) fn gate_answered(
        &mut self,
        moment: Moment,
        number: Attempt,
        answer: Result<&Result<Result<(), AwaitHealthyError>, AskError>, &CallLost>,
        effects: &mut Effects<Self>,
    ) {
        let is_it = |replacement: &Replacement| {
            replacement.number == number && matches!(replacement.stage, Stage::Gate)
        };
        let Some(place) = self.replacements.iter().position(is_it) else { return };
        let refusal = match answer {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(AwaitHealthyError::NotHealthy { reason, .. }))) => Some(reason.clone()),
            Ok(Ok(Err(error))) => Some(error.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(lost) => Some(lost.to_string()),
        };
        match refusal {
            None => {
                let old = self.replacements[place].old.clone();
                self.replacements[place].stage = Stage::Leaving;
                if let Some(old) = self.task(&old) {
                    old.stop(moment, Wanted::Stopped, effects);
                }
            }
            Some(reason) => self.roll_back(moment, place, reason, effects),
        }
    }

    /// The new one leaves, unless it runs for another reason, or the old one has ended meanwhile.
    fn roll_back(&mut self, moment: Moment, place: usize, reason: String, effects: &mut Effects<Self>) {
        let Replacement { old, new, is_started_for_it, .. } = &self.replacements[place];
        let does_run = self.known(old).is_ok_and(|old| old.phase.told() == TaskPhase::Running);
        if *is_started_for_it && does_run {
            let new = new.clone();
            self.replacements[place].stage = Stage::RollingBack(reason);
            if let Some(new) = self.task(&new) {
                new.stop(moment, Wanted::Stopped, effects);
            }
        } else {
            self.refuse(place, reason, true, effects);
        }
    }

    fn refuse(&mut self, place: usize, reason: String, is_kept: bool, effects: &mut Effects<Self>) {
        let Replacement { asker, old, new, .. } = self.replacements.remove(place);
        let error = ReplaceError::NotHealthy { allocation: old, with: new, reason, is_kept };
        effects.reply(asker, AgentAnswer::Replace(Err(error)));
    }

    /// Takes note of what has become of the tasks of the replacements that are under way.
    pub(super) fn advance_replacements(&mut self, effects: &mut Effects<Self>) {
        for place in (0..self.replacements.len()).rev() {
            let Replacement { asker, old, new, stage, .. } = &self.replacements[place];
            let (Ok(old), Ok(new)) = (self.known(old), self.known(new)) else { continue };
            match stage {
                // It was stopped or given up.
                Stage::Gate if new.phase.is_quiet() => {
                    let reason = new.last_event.clone();
                    self.refuse(place, reason, false, effects);
                }
                Stage::Leaving if old.phase.is_quiet() => {
                    let stopped = TaskStopped { steps: old.steps.clone() };
                    effects.reply(*asker, AgentAnswer::Replace(Ok(stopped)));
                    self.replacements.remove(place);
                }
                Stage::RollingBack(reason) if new.phase.is_quiet() => {
                    let reason = reason.clone();
                    self.refuse(place, reason, false, effects);
                }
                Stage::Gate if matches!(self.life, Life::Leaving) => {
                    let error = TaskError::HostStopping { allocation: new.config.name.clone() };
                    effects.reply(*asker, AgentAnswer::Replace(Err(error.into())));
                    self.replacements.remove(place);
                }
                Stage::Gate | Stage::Leaving | Stage::RollingBack(_) => {}
            }
        }
    }
}
