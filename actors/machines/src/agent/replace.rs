//! Replaces one allocation by another behind a gate (F16): the new one is started beside the old one, and the old one is stopped only
//! when the new one has been healthy for a while; otherwise the new one is stopped.

use std::time::Duration;

use crate::AskError;
use crate::allocations::StopAllocationError;
use crate::instances::{AwaitHealthy, AwaitHealthyError};
use crate::kernel::{AskId, CallKey, CallLost, StepContext};
use crate::vocabulary::{AllocationId, Attempt, Moment, PluginKey, Timestamp};

use super::behaviour::RETRY_PAUSE;
use super::calls::{AgentCall, AgentTimer};
use super::messages::{AgentAnswer, Replace, ReplaceError, TaskError, TaskPhase, TaskStopped};
use super::state::{Agent, Life, Task, Wanted};

/// The longest timeout of one question about health. The question is repeated until the timeout of the replacement; so a question
/// whose replacement has ended occupies a call of the agent only for a short time.
const QUESTION_WITHIN: Duration = Duration::from_secs(10);
/// How much later than its own timeout an answer about health may come.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);

/// A replacement that is in progress.
#[derive(Debug, Clone, Hash)]
pub(super) struct Replacement {
    asker: AskId,
    number: Attempt,
    old: AllocationId,
    new: AllocationId,
    healthy_for: Duration,
    until: Timestamp,
    stage: Stage,
}

/// A replacement with a decided outcome: one of the two allocations is being stopped for it. It is remembered with that allocation,
/// so that the caller gets its answer from a machine that is rebuilt meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decided {
    asker: AskId,
    /// Why the new allocation is stopped, if it is.
    rolls_back: Option<String>,
}

#[derive(Debug, Clone, Hash)]
enum Stage {
    /// The new allocation is to become healthy.
    Gate {
        /// Whether it was started for this replacement; otherwise it is not stopped if it is not healthy.
        is_started_for_it: bool,
    },
    /// The new allocation was not healthy in time, for this reason; the health of the old one decides.
    Looking(String),
    /// The old allocation is being stopped.
    Leaving,
    /// The new allocation is being stopped, for this reason.
    RollingBack(String),
}

impl Replacement {
    /// Whether it stops or starts this allocation.
    fn involves(&self, allocation: &AllocationId) -> bool {
        [&self.old, &self.new].contains(&allocation)
    }

    /// The allocation that is being stopped.
    const fn leaver(&self) -> Option<&AllocationId> {
        match self.stage {
            Stage::Gate { .. } | Stage::Looking(_) => None,
            Stage::Leaving => Some(&self.old),
            Stage::RollingBack(_) => Some(&self.new),
        }
    }
}

impl Agent {
    /// Begins a replacement, or returns why it cannot.
    pub(super) fn replace(
        &mut self,
        asker: AskId,
        replace: &Replace,
        cx: &mut StepContext<Self>,
    ) -> Result<(), ReplaceError> {
        if let Some(stage) = self.decided(asker) {
            self.begin_replacement(cx.moment(), asker, replace, stage);
            return Ok(());
        }
        self.check_replaceable(replace)?;
        let is_started_for_it = self.known(&replace.with)?.phase.is_quiet();
        match self.start(&replace.with, cx) {
            Ok(()) | Err(TaskError::Started { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.begin_replacement(cx.moment(), asker, replace, Stage::Gate { is_started_for_it });
        self.ask_for_health(self.replacement, cx);
        Ok(())
    }

    fn begin_replacement(&mut self, moment: Moment, asker: AskId, replace: &Replace, stage: Stage) {
        let Replace { allocation, with, healthy_for, within } = replace;
        self.replacement = self.replacement.next();
        self.replacements.push(Replacement {
            asker,
            number: self.replacement,
            old: allocation.clone(),
            new: with.clone(),
            healthy_for: *healthy_for,
            until: moment.now + *within,
            stage,
        });
    }

    /// The stage of a replacement that was decided before the machine was rebuilt, when the replacement is requested again.
    fn decided(&self, asker: AskId) -> Option<Stage> {
        let mut decided = self.tasks.iter().filter_map(|task| task.memory.replacement.as_ref());
        let decided = decided.find(|decided| decided.asker == asker)?;
        Some(match &decided.rolls_back {
            Some(reason) => Stage::RollingBack(reason.clone()),
            None => Stage::Leaving,
        })
    }

    /// Asks the next question that decides a replacement: whether the new allocation has been healthy for long enough, or the old one is.
    pub(super) fn ask_for_health(&self, number: Attempt, cx: &mut StepContext<Self>) {
        let Some(replacement) = self.replacements.iter().find(|one| one.number == number) else { return };
        let Replacement { old, new, healthy_for, until, stage, .. } = replacement;
        let (allocation, healthy_for, within) = match stage {
            Stage::Gate { .. } => (new, *healthy_for, until.since(cx.now()).min(QUESTION_WITHIN)),
            Stage::Looking(_) => (old, Duration::ZERO, Duration::ZERO),
            Stage::Leaving | Stage::RollingBack(_) => return,
        };
        let Ok(task) = self.known(allocation) else { return };
        let types = task.config.role.plugin_types().iter();
        let plugins = types.map(|kind| PluginKey::new(*kind, task.config.plugin.clone())).collect();
        let awaited = AwaitHealthy { allocation: allocation.clone(), plugins, healthy_for, within };
        let key = CallKey { attempt: number, ..CallKey::default() };
        cx.call(key, within + ANSWER_MARGIN, AgentCall::AwaitHealthy(awaited));
    }

    fn known(&self, allocation: &AllocationId) -> Result<&Task, TaskError> {
        let task = self.tasks.iter().find(|task| task.config.name == *allocation);
        task.ok_or_else(|| TaskError::Unknown { allocation: allocation.clone() })
    }

    fn check_replaceable(&self, replace: &Replace) -> Result<(), ReplaceError> {
        let Replace { allocation, with, healthy_for, within } = replace;
        let (old, new) = (self.known(allocation)?, self.known(with)?);
        if allocation == with {
            return Err(ReplaceError::Itself { allocation: allocation.clone() });
        }
        if (&old.config.plugin, old.config.role) != (&new.config.plugin, new.config.role) {
            let [old, new] = [old, new].map(|task| format!("{} as {}", task.config.plugin, task.config.role));
            let (allocation, with) = (allocation.clone(), with.clone());
            return Err(ReplaceError::OtherPlugin { allocation, with, old, new });
        }
        if healthy_for > within {
            let (healthy_for, within) = (*healthy_for, *within);
            return Err(ReplaceError::NeverInTime { healthy_for, within });
        }
        let involves = |other: &&Replacement| other.involves(allocation) || other.involves(with);
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

    /// Handles an answer about the health that a replacement depends on, or its absence.
    pub(super) fn health_answered(
        &mut self,
        number: Attempt,
        answer: Result<&Result<Result<(), AwaitHealthyError>, AskError>, &CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(place) = self.replacements.iter().position(|one| one.number == number) else { return };
        let Replacement { old, until, stage, .. } = &self.replacements[place];
        let (old, is_over) = (old.clone(), cx.now() >= *until);
        let lack = match answer {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(AwaitHealthyError::NotHealthy { reason, .. }))) => Some((reason.clone(), true)),
            Ok(Ok(Err(error))) => Some((error.to_string(), false)),
            Ok(Err(error)) => Some((error.to_string(), false)),
            Err(lost) => Some((lost.to_string(), false)),
        };
        match (stage, lack) {
            (Stage::Gate { .. }, None) => self.stop_for_replacement(place, &old, Stage::Leaving, cx),
            (Stage::Gate { .. }, Some((_, true))) if !is_over => self.ask_for_health(number, cx),
            // Nothing is known of its health yet.
            (Stage::Gate { .. }, Some((_, false))) if !is_over => {
                cx.start_timer(AgentTimer::AskForHealth(number), cx.now() + RETRY_PAUSE);
            }
            (Stage::Gate { .. }, Some((reason, _))) => self.not_healthy(place, reason, cx),
            (Stage::Looking(reason), None) => {
                let (stage, new) = (Stage::RollingBack(reason.clone()), self.replacements[place].new.clone());
                self.stop_for_replacement(place, &new, stage, cx);
            }
            // The old allocation is not healthy either.
            (Stage::Looking(reason), Some(_)) => {
                let reason = reason.clone();
                self.refuse(place, reason, true, cx);
            }
            (Stage::Leaving | Stage::RollingBack(_), _) => {}
        }
    }

    fn stop_for_replacement(
        &mut self,
        place: usize,
        allocation: &AllocationId,
        stage: Stage,
        cx: &mut StepContext<Self>,
    ) {
        let rolls_back = match &stage {
            Stage::RollingBack(reason) => Some(reason.clone()),
            Stage::Gate { .. } | Stage::Looking(_) | Stage::Leaving => None,
        };
        let decided = Decided { asker: self.replacements[place].asker, rolls_back };
        self.replacements[place].stage = stage;
        if let Some(task) = self.task(allocation) {
            task.memory.replacement = Some(decided);
            task.stop(Wanted::Stopped, cx);
        }
    }

    /// Stops the new allocation, unless it runs for another reason, or the old one does not run or is not healthy itself.
    fn not_healthy(&mut self, place: usize, reason: String, cx: &mut StepContext<Self>) {
        let Replacement { number, old, new, stage, .. } = &self.replacements[place];
        let is_started_for_it = matches!(stage, Stage::Gate { is_started_for_it: true });
        let does_run = self.known(old).is_ok_and(|old| old.phase.told() == TaskPhase::Running);
        let ended = self.known(new).ok().and_then(|new| {
            let exit = new.memory.exit.as_ref().filter(|_| new.memory.restarts > 0)?;
            Some(format!(
                "{reason}; its last process ended: {} (restarts: {})",
                exit.how, new.memory.restarts
            ))
        });
        let reason = ended.unwrap_or(reason);
        if is_started_for_it && does_run {
            let number = *number;
            self.replacements[place].stage = Stage::Looking(reason);
            self.ask_for_health(number, cx);
        } else {
            self.refuse(place, reason, true, cx);
        }
    }

    fn refuse(&mut self, place: usize, reason: String, is_kept: bool, cx: &mut StepContext<Self>) {
        let Replacement { asker, old, new, .. } = self.replacements.remove(place);
        let error = ReplaceError::NotHealthy { allocation: old, with: new, reason, is_kept };
        cx.reply(asker, AgentAnswer::Replace(Err(error)));
    }

    /// The allocation to stop is not stopped, since volumes of the plugin are in use: both continue (V13).
    pub(super) fn replaces_no_more(
        &mut self,
        allocation: &AllocationId,
        error: &StopAllocationError,
        cx: &mut StepContext<Self>,
    ) {
        let Some(place) = self.replacements.iter().position(|one| one.leaver() == Some(allocation)) else {
            return;
        };
        if let Stage::RollingBack(reason) = &self.replacements[place].stage {
            let reason = format!("{reason}; {error}");
            return self.refuse(place, reason, true, cx);
        }
        let Replacement { asker, old, new, .. } = self.replacements.remove(place);
        let error = ReplaceError::NotStopped { allocation: old, with: new, reason: error.clone() };
        cx.reply(asker, AgentAnswer::Replace(Err(error)));
    }

    /// Advances the replacements in progress by the present phases of their tasks.
    pub(super) fn advance_replacements(&mut self, cx: &mut StepContext<Self>) {
        for place in (0..self.replacements.len()).rev() {
            let Replacement { asker, old, new, stage, .. } = &self.replacements[place];
            let (Ok(old), Ok(new)) = (self.known(old), self.known(new)) else { continue };
            match stage {
                // It was stopped or given up.
                Stage::Gate { .. } | Stage::Looking(_) if new.phase.is_quiet() => {
                    let reason = new.last_event.clone();
                    self.refuse(place, reason, false, cx);
                }
                Stage::Leaving if old.phase.is_quiet() => {
                    let stopped = TaskStopped { steps: old.steps.clone() };
                    cx.reply(*asker, AgentAnswer::Replace(Ok(stopped)));
                    self.replacements.remove(place);
                }
                Stage::RollingBack(reason) if new.phase.is_quiet() => {
                    let reason = reason.clone();
                    self.refuse(place, reason, false, cx);
                }
                Stage::Gate { .. } | Stage::Looking(_) if matches!(self.life, Life::Leaving(_)) => {
                    let (allocation, with) = (old.config.name.clone(), new.config.name.clone());
                    let error = ReplaceError::HostStopping { allocation, with };
                    cx.reply(*asker, AgentAnswer::Replace(Err(error)));
                    self.replacements.remove(place);
                }
                Stage::Gate { .. } | Stage::Looking(_) | Stage::Leaving | Stage::RollingBack(_) => {}
            }
        }
    }
}
