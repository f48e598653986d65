//! Decisions for a task that stops: its driver stops it, in a bounded time.

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::departed::ADVICE;
use super::messages::{TaskError, TasksAnswer};
use super::reach::Later;
use super::state::*;
use super::sweeping::SWEEP_TIMEOUT;
use crate::agent::{StopBound, TaskStopped};
use crate::kernel::{AskId, StepContext, StopStep};
use crate::vocabulary::Moment;

/// The time to stop a task beyond its grace; it includes the recovery of its driver.
const STOP_MARGIN: Duration = Duration::from_secs(30);
/// The timeout of the driver's answer beyond the grace, longer than that of the client call, whose error has to arrive.
const ANSWER_MARGIN: Duration = Duration::from_secs(25);

impl Task {
    /// The result of its stop, for a caller that requests a stop after the stop of the host has already ended the task.
    pub(super) fn stopped_already(&self, scene: &Scene<'_>) -> Option<TaskStopped> {
        let has_ended = self.phase.is_down() && self.ended.is_some();
        let is_told =
            has_ended && matches!(scene.shutdown, ShutdownState::Leaving(_) | ShutdownState::Closed(_));
        is_told.then(|| TaskStopped { steps: self.stop_steps(true) })
    }

    /// Its stop, if one is in progress.
    pub(super) fn stop_under_way(&self) -> Option<StopBound> {
        if self.durable.wanted != Some(Wanted::Stopped) || self.phase.is_let_be() {
            return None;
        }
        // Its driver may have received it later, as after a restart.
        let asked_at = self.since.max(self.stop_began + self.config.shutdown_delay);
        let kill = (self.phase == Phase::Stopping).then(|| asked_at + self.config.stop_grace);
        Some(StopBound { by: self.stop_began + self.stop_bound(), kill })
    }

    /// Stops it for a caller that waits.
    pub(super) fn stop_for(
        &mut self,
        asker: AskId,
        scene: &Scene<'_>,
        cx: &mut StepContext<Tasks>,
    ) -> Result<(), TaskError> {
        if self.phase.is_down() {
            return Err(TaskError::NotRunning { name: self.config.name.clone(), phase: self.phase.told() });
        }
        self.askers.push(asker);
        self.stop(scene, cx);
        Ok(())
    }

    /// Stops it. Calls in flight return and then find it stopped; a task out of reach is tried once more.
    pub(super) fn stop(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        self.starts_after_stop = false;
        let is_told = self.durable.wanted == Some(Wanted::Stopped) && self.phase != Phase::OutOfReach;
        if self.phase.is_down() || is_told {
            return;
        }
        self.durable.wanted = Some(Wanted::Stopped);
        self.stop_began = cx.now();
        match self.phase {
            Phase::Waiting => {
                cx.cancel_timer(TasksTimer::Start(self.config.name.clone()));
                self.arrive(Phase::Stopped, "stopped while it waited to be started again", cx);
            }
            // Its driver has not received the start.
            Phase::Readying(Next::Start | Next::StartAtLast) => self.not_started(String::new(), cx),
            Phase::Readying(Next::Settle | Next::Recover | Next::Clear)
            | Phase::Starting
            | Phase::Settling
            | Phase::Recovering
            | Phase::Clearing
            | Phase::Sweeping(_) => {
                self.remember(cx);
                self.call_off(cx);
                self.start_give_up(cx);
                if self.phase == Phase::Clearing && std::mem::take(&mut self.awaits_disk) {
                    self.say_destroy(cx);
                }
                if self.may_stop_alone() && self.stops_alone(cx.now()) {
                    return self.stop_alone(&self.note.clone(), cx);
                }
                self.note("to be stopped", cx);
            }
            Phase::Running | Phase::Stopping => {
                self.remember(cx);
                self.start_give_up(cx);
                self.order_stop(cx);
            }
            Phase::OutOfReach => {
                self.remember(cx);
                self.out_of_reach.reset();
                self.take_up_again(scene, cx);
            }
            // Nothing runs.
            Phase::Stopped | Phase::Ended | Phase::Failed => {}
        }
    }

    /// The longest time until nothing is in progress for it: the time of its stop, and a last search for remains. A
    /// start that takes longer is searched for by the next run of the host.
    pub(super) fn stop_bound(&self) -> Duration {
        if self.phase.is_let_be() {
            return Duration::ZERO;
        }
        self.config.shutdown_delay + self.config.stop_grace + STOP_MARGIN + SWEEP_TIMEOUT
    }

    pub(super) fn start_give_up(&self, cx: &mut StepContext<Tasks>) {
        let at = cx.now() + self.config.shutdown_delay + self.config.stop_grace + STOP_MARGIN;
        cx.start_timer(TasksTimer::GiveUp(self.config.name.clone()), at);
    }

    /// Starts to stop it through its driver.
    pub(super) fn order_stop(&mut self, cx: &mut StepContext<Tasks>) {
        let (delay, grace) = (self.config.shutdown_delay, self.config.stop_grace);
        let note = if delay.is_zero() {
            format!("stopping, within {grace:?}")
        } else {
            format!("stopping, within {grace:?} after a shutdown delay of {delay:?}")
        };
        self.enter(Phase::Stopping, note, cx);
        self.say_stop(cx);
    }

    /// Sends the stop after the shutdown delay, in which the task serves clients that still have its address (T144).
    pub(super) fn say_stop(&self, cx: &mut StepContext<Tasks>) {
        let (Phase::Stopping, Some(run)) = (self.phase, self.run_key()) else { return };
        let asked_at = self.stop_began + self.config.shutdown_delay;
        if cx.now() < asked_at {
            return cx.start_timer(TasksTimer::Again(self.config.name.clone()), asked_at);
        }
        let (grace, signal) = (self.config.stop_grace, self.config.kill_signal.clone());
        self.call(grace + ANSWER_MARGIN, TasksCall::Stop { run, grace, signal }, cx);
    }

    /// Handles the answer to a stop. Its end is reported by the call that waits for it.
    pub(super) fn stop_taken(&mut self, answer: &Result<(), Trouble>, cx: &mut StepContext<Tasks>) {
        if let (Phase::Stopping, Err(trouble)) = (self.phase, answer) {
            self.not_answered(trouble, format!("not stopped yet: {trouble}"), cx);
        }
    }

    /// The timeout of its stop has expired.
    pub(super) fn give_up(&mut self, scene: &Scene<'_>, cx: &mut StepContext<Tasks>) {
        if self.phase.is_let_be() || self.durable.wanted != Some(Wanted::Stopped) {
            return;
        }
        if self.phase == Phase::Starting {
            // From now on its driver counts as one that may be busy with the start.
            self.unsure_since = cx.now();
        }
        let reason = match self.known_end() {
            Some(_) if matches!(self.phase, Phase::Sweeping(_)) => {
                let told = if self.note.starts_with(&self.cause) { &self.note } else { &self.cause };
                format!("{told}; its cleanup was not confirmed in time")
            }
            Some(_) | None => self.note.clone(),
        };
        if scene.is_unconfigured(self.driver()) {
            let reason = format!("{reason}; {ADVICE}");
            self.out_of_reach(scene, (reason, Later::Possible), cx);
        } else if matches!(self.phase, Phase::Sweeping(_)) || self.durable.run.is_none() {
            self.out_of_reach(scene, (reason, Later::Possible), cx);
        } else {
            // Processes that its driver did not stop in time are ended without it (TH080).
            self.cause = match self.known_end() {
                Some(exit) => format!("{exit}; its driver has not forgotten it in time"),
                None => format!("not stopped by its driver in time: {reason}"),
            };
            self.sweep(DriverReply::TimedOut, cx);
        }
    }

    /// Whether it waits for its driver, and for nothing else.
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

    /// Nothing of it is left.
    pub(super) fn arrive(&mut self, phase: Phase, note: impl Into<String>, cx: &mut StepContext<Tasks>) {
        self.remember(cx);
        let note = note.into();
        if self.durable.wanted == Some(Wanted::Stopped) {
            self.finish_step(cx.moment(), note.clone(), false);
        }
        self.enter(phase, note, cx);
        for asker in std::mem::take(&mut self.askers) {
            let stopped = TaskStopped { steps: self.stop_steps(true) };
            cx.reply(asker, TasksAnswer::StopTask(Ok(stopped)));
        }
    }

    /// How it was stopped, or that it was left as it is.
    pub(super) fn told_steps(&self) -> Vec<StopStep> {
        match &self.durable.run {
            Some(run) if self.can_be_left() && !self.phase.is_let_be() => vec![StopStep {
                what: format!("task/{}", self.config.name),
                ending: format!("left {} with driver {}", self.phase.told(), run.driver),
                took: Duration::ZERO,
                is_left: false,
            }],
            // Its volumes stop later, and their own report says what is left of them.
            Some(_) | None => self.stop_steps(false),
        }
    }

    /// The result of its last stop: how it ended, and whether its volumes were not released by then.
    pub(super) fn stop_steps(&self, are_volumes_left: bool) -> Vec<StopStep> {
        let of_volumes = |(of_task, reason): (&StopStep, &String)| StopStep {
            what: format!("volumes/{}", self.config.name),
            ending: format!("not released yet: {reason}"),
            took: of_task.took,
            is_left: are_volumes_left,
        };
        let of_volumes = self.ended.as_ref().zip(self.unreleased.as_ref()).map(of_volumes);
        self.ended.iter().cloned().chain(of_volumes).collect()
    }

    pub(super) fn finish_step(&mut self, moment: Moment, ending: String, is_left: bool) {
        let what = format!("task/{}", self.config.name);
        self.ended = Some(StopStep { what, ending, took: moment.now.since(self.stop_began), is_left });
    }
}
