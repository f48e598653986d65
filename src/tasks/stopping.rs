//! What is decided for one task on its way down: its driver stops it, and all of it takes a bounded time.

use std::time::Duration;

use callboard_actors::shell::{AskId, Effects};
use callboard_actors::vocabulary::Moment;

use super::behaviour::{Scene, TasksAnswer};
use super::calls::*;
use super::departed::ADVICE;
use super::messages::TaskError;
use super::state::*;
use crate::agent::{StopStep, TaskStopped};

/// How much longer than its grace a task may take to stop, with a driver that has to be recovered meanwhile.
const STOP_MARGIN: Duration = Duration::from_secs(30);
/// How much longer than the grace the answer of its driver may take: longer than whoever asks it waits, so that its own words
/// are heard.
const ANSWER_MARGIN: Duration = Duration::from_secs(25);

impl Task {
    /// Stops for somebody who waits for it.
    pub(super) fn stop_for(
        &mut self,
        moment: Moment,
        asker: AskId,
        scene: &Scene<'_>,
        effects: &mut Effects<Tasks>,
    ) -> Result<(), TaskError> {
        if self.phase.is_down() {
            return Err(TaskError::NotRunning { name: self.config.name.clone(), phase: self.phase.told() });
        }
        self.askers.push(asker);
        self.stop(moment, scene, effects);
        Ok(())
    }

    /// Stops. What is under way comes back, and then finds out what is wanted now; what was out of reach is tried once more.
    pub(super) fn stop(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        self.starts_after_stop = false;
        let is_told = self.course.wanted == Some(Wanted::Stopped) && self.phase != Phase::OutOfReach;
        if self.phase.is_down() || is_told {
            return;
        }
        self.course.wanted = Some(Wanted::Stopped);
        self.stop_began = moment.now;
        match self.phase {
            Phase::Waiting => {
                effects.cancel_timer(TasksTimer::Start(self.config.name.clone()));
                self.arrive(moment, Phase::Stopped, "stopped while it waited to be started again", effects);
            }
            // Its driver has not heard of it yet.
            Phase::Readying(Next::Start | Next::StartAtLast) => {
                self.not_started(moment, String::new(), effects)
            }
            Phase::Readying(Next::Settle | Next::Recover | Next::Clear)
            | Phase::Starting
            | Phase::Settling
            | Phase::Recovering
            | Phase::Clearing
            | Phase::Sweeping(_) => {
                self.remember(effects);
                self.start_give_up(moment, effects);
                if self.may_stop_alone() && self.stops_alone(moment.now) {
                    return self.stop_alone(moment, &self.note.clone(), effects);
                }
                self.note("to be stopped", effects);
            }
            Phase::Running | Phase::Stopping => {
                self.remember(effects);
                self.start_give_up(moment, effects);
                self.order_stop(moment, effects);
            }
            Phase::OutOfReach => {
                self.remember(effects);
                self.pick_up(moment, scene, effects);
            }
            // Nothing runs.
            Phase::Stopped | Phase::Ended | Phase::Failed => {}
        }
    }

    pub(super) fn start_give_up(&self, moment: Moment, effects: &mut Effects<Tasks>) {
        let at = moment.now + self.config.shutdown_delay + self.config.stop_grace + STOP_MARGIN;
        effects.start_timer(TasksTimer::GiveUp(self.config.name.clone()), at);
    }

    /// Has its driver stop it.
    pub(super) fn order_stop(&mut self, moment: Moment, effects: &mut Effects<Tasks>) {
        let (delay, grace) = (self.config.shutdown_delay, self.config.stop_grace);
        let note = if delay.is_zero() {
            format!("stopping, within {grace:?}")
        } else {
            format!("stopping, within {grace:?} after a shutdown delay of {delay:?}")
        };
        self.enter(moment, Phase::Stopping, note, effects);
        self.say_stop(moment, effects);
    }

    /// Tells its driver to stop it, not before the shutdown delay is over: until then it serves those that still
    /// have its address (T144).
    pub(super) fn say_stop(&self, moment: Moment, effects: &mut Effects<Tasks>) {
        let (Phase::Stopping, Some(run)) = (self.phase, self.run_key()) else { return };
        let asked_at = self.stop_began + self.config.shutdown_delay;
        if moment.now < asked_at {
            return effects.start_timer(TasksTimer::Again(self.config.name.clone()), asked_at);
        }
        let (grace, signal) = (self.config.stop_grace, self.config.kill_signal.clone());
        self.call(grace + ANSWER_MARGIN, TasksCall::Stop { run, grace, signal }, effects);
    }

    /// Takes what came of having it stopped. That it has ended is told by its end.
    pub(super) fn stop_taken(
        &mut self,
        moment: Moment,
        answer: &Result<(), Trouble>,
        effects: &mut Effects<Tasks>,
    ) {
        if let (Phase::Stopping, Err(trouble)) = (self.phase, answer) {
            self.not_answered(moment, trouble, format!("not stopped yet: {trouble}"), effects);
        }
    }

    /// The time is over within which it should have stopped.
    pub(super) fn give_up(&mut self, moment: Moment, scene: &Scene<'_>, effects: &mut Effects<Tasks>) {
        if self.phase.is_let_be() || self.course.wanted != Some(Wanted::Stopped) {
            return;
        }
        let reason = self.note.clone();
        if scene.has_departed(self.driver()) {
            self.out_of_reach(moment, format!("{reason}; {ADVICE}"), effects);
        } else if matches!(self.phase, Phase::Sweeping(_)) || self.course.run.is_none() {
            self.out_of_reach(moment, reason, effects);
        } else {
            // What its driver did not do in time is done without it (TH080).
            self.cause = format!("not stopped by its driver in time: {reason}");
            self.sweep(moment, Word::Late, effects);
        }
    }

    /// Whether it waits for its driver, to find out or to say something, and for nothing else.
    pub(super) const fn may_stop_alone(&self) -> bool {
        match self.phase {
            Phase::Readying(Next::Settle | Next::Recover | Next::Clear)
            | Phase::Settling
            | Phase::Recovering
            | Phase::Clearing => true,
            Phase::Readying(Next::Start | Next::StartAtLast)
            | Phase::Starting
            | Phase::Running
            | Phase::Stopping
            | Phase::Sweeping(_)
            | Phase::Stopped
            | Phase::Ended
            | Phase::Failed
            | Phase::OutOfReach
            | Phase::Waiting => false,
        }
    }

    /// Leaves it as it is, and keeps its run in mind: it may still run.
    pub(super) fn out_of_reach(&mut self, moment: Moment, reason: String, effects: &mut Effects<Tasks>) {
        effects.cancel_timer(TasksTimer::Again(self.config.name.clone()));
        effects.cancel_timer(TasksTimer::GiveUp(self.config.name.clone()));
        let ending = format!("left as it is, it may still run: {reason}");
        self.finish_step(moment, ending, true);
        let name = self.config.name.clone();
        for asker in std::mem::take(&mut self.askers) {
            let refused = TaskError::OutOfReach { name: name.clone(), reason: reason.clone() };
            effects.reply(asker, TasksAnswer::StopTask(Err(refused)));
        }
        self.enter(moment, Phase::OutOfReach, reason, effects);
    }

    /// Nothing of it is left, which is on disk before whoever waited for that is told.
    pub(super) fn arrive(
        &mut self,
        moment: Moment,
        phase: Phase,
        note: impl Into<String>,
        effects: &mut Effects<Tasks>,
    ) {
        self.remember(effects);
        let note = note.into();
        if self.course.wanted == Some(Wanted::Stopped) {
            self.finish_step(moment, note.clone(), false);
        }
        self.enter(moment, phase, note, effects);
        for asker in std::mem::take(&mut self.askers) {
            let stopped = TaskStopped { steps: self.steps.clone() };
            effects.reply(asker, TasksAnswer::StopTask(Ok(stopped)));
        }
    }

    /// How it was stopped, or that it is left as it is.
    pub(super) fn told_steps(&self) -> Vec<StopStep> {
        match &self.course.run {
            Some(run) if self.phase.can_be_left() && !self.phase.is_let_be() => vec![StopStep {
                what: format!("task/{}", self.config.name),
                ending: format!("left {} with driver {}", self.phase.told(), run.driver),
                took: Duration::ZERO,
                is_left: false,
            }],
            Some(_) | None => self.steps.clone(),
        }
    }

    fn finish_step(&mut self, moment: Moment, ending: String, is_left: bool) {
        let what = format!("task/{}", self.config.name);
        self.steps = vec![StopStep { what, ending, took: moment.now.since(self.stop_began), is_left }];
    }
}
