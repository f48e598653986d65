//! Decides for one task that stops: it is deregistered first, then its process ends (SHD-04), then its volumes are released.

use std::time::Duration;

use crate::allocations::{AllocationStopped, StopAllocationError};
use crate::kernel::{AskId, CallLost, StepContext, StopStep};
use crate::vocabulary::{Attempt, Moment};

use super::calls::{AgentCall, AgentTimer, Answered, Ended};
use super::messages::{AgentAnswer, LastExit, StopBound, TaskError, TaskStopped};
use super::state::{Agent, Goal, Phase, Task, Wanted};
use super::task::UNDER_WAY_TIMEOUT;

/// The timeout of a deregistration, which waits for calls in flight.
pub(super) const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout for asking a process to end, which takes no time.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process may exist after SIGKILL; a process that exists longer hangs in the kernel.
pub const AFTER_KILL: Duration = Duration::from_secs(5);

impl Task {
    /// The result of its stop, for a caller that requests a stop when the stop of the host has ended it already.
    pub(super) fn stopped_already(&self) -> Option<TaskStopped> {
        let has_ended = self.phase.is_quiet() && !self.steps.is_empty();
        has_ended.then(|| TaskStopped { steps: self.steps.clone() })
    }

    /// Stops for a caller that waits for it.
    pub(super) fn stop_for(
        &mut self,
        asker: AskId,
        even_if_used: bool,
        cx: &mut StepContext<Agent>,
    ) -> Result<(), TaskError> {
        if self.phase.is_quiet() {
            let allocation = self.config.name.clone();
            return Err(TaskError::NotRunning { allocation, phase: self.phase.told() });
        }
        self.askers.push(asker);
        if even_if_used && !self.even_if_used {
            self.even_if_used = true;
            self.withdraw_at_once(cx);
        }
        self.stop(Wanted::Stopped, cx);
        Ok(())
    }

    /// The longest time until nothing of it is in progress: pending calls return, then it is deregistered, its process is ended and its
    /// volumes are released.
    pub(super) fn stop_bound(&self) -> Duration {
        UNDER_WAY_TIMEOUT + WITHDRAW_TIMEOUT + self.config.stop_grace + AFTER_KILL + self.release_bound()
    }

    /// Its stop, if one is in progress.
    pub(super) fn stop_under_way(&self) -> Option<StopBound> {
        let ends_within = self.config.stop_grace + AFTER_KILL;
        let (within, kill) = match &self.phase {
            Phase::Withdrawing { pid, .. } => {
                let ends_within = pid.map_or(Duration::ZERO, |_| ends_within);
                (WITHDRAW_TIMEOUT + ends_within + self.release_bound(), None)
            }
            Phase::Ending { then, .. } => {
                let rest = match then {
                    Goal::Stop | Goal::Fail(_) => self.release_bound(),
                    Goal::Restart(_) if self.memory.wanted == Some(Wanted::Running) => Duration::ZERO,
                    // It is deregistered after the end of its process.
                    Goal::Restart(_) => UNDER_WAY_TIMEOUT + WITHDRAW_TIMEOUT + self.release_bound(),
                };
                (ends_within + rest, Some(self.step_began + self.config.stop_grace))
            }
            Phase::Releasing { until, .. } => return Some(StopBound { by: *until, kill: None }),
            Phase::Preparing | Phase::Claiming { .. } | Phase::Launching | Phase::Reporting { .. }
                if matches!(self.memory.wanted, Some(Wanted::Stopped | Wanted::Left)) =>
            {
                (self.stop_bound(), None)
            }
            Phase::Preparing | Phase::Claiming { .. } | Phase::Launching | Phase::Reporting { .. } => {
                return None;
            }
            Phase::Stopped | Phase::Failed | Phase::Waiting { .. } | Phase::Running { .. } => return None,
        };
        Some(StopBound { by: self.step_began + within, kill })
    }

    /// Stops, in the order that `wanted` requires.
    pub(super) fn stop(&mut self, wanted: Wanted, cx: &mut StepContext<Agent>) {
        if self.phase.is_quiet() {
            return;
        }
        // A task that was stopped or given up is not started again because the agent leaves.
        let is_decided = matches!(self.memory.wanted, Some(Wanted::Stopped | Wanted::Failed));
        if wanted != Wanted::Left || !is_decided {
            self.memory.wanted = Some(wanted);
        }
        self.remember(cx);
        match self.phase {
            Phase::Running { pid } => self.wind_down(Some(pid), cx),
            Phase::Waiting { .. } => {
                cx.cancel_timer(AgentTimer::Start(self.config.name.clone()));
                self.wind_down(None, cx);
            }
            // The pending call returns, and its handler then reads the present decision.
            Phase::Preparing | Phase::Claiming { .. } | Phase::Launching | Phase::Reporting { .. } => {
                if !is_decided {
                    self.step_began = cx.now();
                }
                if matches!(self.phase, Phase::Claiming { .. }) {
                    self.call_off(cx);
                }
            }
            Phase::Withdrawing { .. } | Phase::Ending { .. } | Phase::Releasing { .. } => {}
            Phase::Stopped | Phase::Failed => {}
        }
    }

    /// Stops from a phase in which nothing is in progress except perhaps its process.
    pub(super) fn wind_down(&mut self, pid: Option<u32>, cx: &mut StepContext<Agent>) {
        match (self.memory.wanted, pid) {
            (Some(Wanted::Left), Some(pid)) if self.config.survives => {
                self.step_began = cx.now();
                self.finish_step(cx.moment(), "process", left_running(pid), false);
                self.arrive(Goal::Stop, cx);
            }
            (Some(Wanted::Left), Some(pid)) => self.end(pid, Goal::Stop, cx),
            (Some(Wanted::Left), None) => self.arrive(Goal::Stop, cx),
            (None | Some(Wanted::Running | Wanted::Returning | Wanted::Stopped | Wanted::Failed), pid) => {
                self.withdraw(pid, Goal::Stop, cx);
            }
        }
    }

    pub(super) fn withdraw(&mut self, pid: Option<u32>, then: Goal, cx: &mut StepContext<Agent>) {
        self.step_began = cx.now();
        self.enter(Phase::Withdrawing { pid, then }, "deregistering", cx);
        let (allocation, even_if_used) = (self.config.name.clone(), self.even_if_used);
        self.call(WITHDRAW_TIMEOUT, AgentCall::Withdraw { allocation, even_if_used }, cx);
    }

    /// Ends the wait of a deregistration in progress. The same end answers both questions.
    fn withdraw_at_once(&self, cx: &mut StepContext<Agent>) {
        if matches!(self.phase, Phase::Withdrawing { .. }) {
            let allocation = self.config.name.clone();
            self.call(WITHDRAW_TIMEOUT, AgentCall::Withdraw { allocation, even_if_used: true }, cx);
        }
    }

    pub(super) fn withdrawn(
        &mut self,
        answer: Result<&Answered<Result<AllocationStopped, StopAllocationError>>, &CallLost>,
        cx: &mut StepContext<Agent>,
    ) {
        let Phase::Withdrawing { pid, then } = self.phase.clone() else { return };
        let ending = match answer {
            Ok(Ok(Ok(stopped))) => told(stopped),
            Ok(Ok(Err(StopAllocationError::Unknown(_)))) => "was not registered".to_owned(),
            Ok(Ok(Err(error))) => format!("may still be registered: {error}"),
            // Waiting longer would keep the process running without any benefit.
            Ok(Err(error)) => format!("may still be registered: {error}"),
            Err(lost) => format!("may still be registered: {lost}"),
        };
        self.finish_step(cx.moment(), "allocation", ending, false);
        match pid {
            Some(pid) => self.end(pid, then, cx),
            None => self.release(then, cx),
        }
    }

    pub(super) fn end(&mut self, pid: u32, then: Goal, cx: &mut StepContext<Agent>) {
        let event = match &then {
            Goal::Restart(reason) => format!("ending process {pid} to start it again: {reason}"),
            Goal::Stop | Goal::Fail(_) => format!("ending process {pid}"),
        };
        self.step_began = cx.now();
        self.enter(Phase::Ending { pid, then }, event, cx);
        self.end_again(cx);
        let limit = self.config.stop_grace + AFTER_KILL;
        cx.start_timer(AgentTimer::GiveUp(self.config.name.clone()), cx.now() + limit);
    }

    /// Asks the process to end, if it is to end.
    pub(super) fn end_again(&self, cx: &mut StepContext<Agent>) {
        if matches!(self.phase, Phase::Ending { .. }) {
            let (allocation, grace) = (self.config.name.clone(), self.config.stop_grace);
            self.call(END_TIMEOUT, AgentCall::End { allocation, grace }, cx);
        }
    }

    /// Its process has ended.
    pub(super) fn process_ended(&mut self, ended: &Ended, cx: &mut StepContext<Agent>) {
        let how = &ended.how;
        self.memory.exit = Some(LastExit { exit: ended.exit, how: how.clone(), at: cx.now() });
        self.remember(cx);
        match self.phase.clone() {
            Phase::Launching => {
                self.process_started(cx);
                self.report_exit(how.clone(), cx);
            }
            Phase::Running { .. } => self.report_exit(how.clone(), cx),
            Phase::Withdrawing { then, .. } => {
                self.finish_step(cx.moment(), "process", how.clone(), false);
                self.phase = Phase::Withdrawing { pid: None, then };
                self.note(&format!("deregistering; process ended: {how}"), cx);
            }
            Phase::Ending { then, .. } => {
                cx.cancel_timer(AgentTimer::GiveUp(self.config.name.clone()));
                self.ended_as_asked((how, false), then, cx);
            }
            // It was given up before, or was already reported.
            Phase::Stopped | Phase::Failed | Phase::Waiting { .. } | Phase::Reporting { .. } => {}
            Phase::Preparing | Phase::Claiming { .. } | Phase::Releasing { .. } => {}
        }
    }

    /// The process of one of its starts has ended, perhaps a process that was given up before. If it was the last such process, the task
    /// is started again or its volumes are released.
    pub(super) fn end_observed(&mut self, attempt: Attempt, how: &str, cx: &mut StepContext<Agent>) {
        let unended = &mut self.memory.unended;
        let was_awaited = unended.is_awaited;
        if unended.processes.remove(&attempt).is_some() {
            unended.is_awaited &= !unended.processes.is_empty();
            self.remember(cx);
        }
        self.was_observed(attempt, how, cx);
        if was_awaited && !self.memory.unended.is_awaited && matches!(self.phase, Phase::Waiting { .. }) {
            self.begin(cx);
        }
    }

    fn ended_as_asked(&mut self, (how, is_left): (&str, bool), then: Goal, cx: &mut StepContext<Agent>) {
        match then {
            Goal::Restart(reason) => {
                if self.memory.wanted != Some(Wanted::Running) {
                    // The restart has become a stop meanwhile, whose report names the process.
                    self.finish_step(cx.moment(), "process", how.to_owned(), is_left);
                }
                self.report_exit(format!("{how} ({reason})"), cx);
            }
            Goal::Stop | Goal::Fail(_) => {
                self.finish_step(cx.moment(), "process", how.to_owned(), is_left);
                self.release(then, cx);
            }
        }
    }

    /// The deadline by which even a killed process must have ended has passed.
    pub(super) fn give_up(&mut self, cx: &mut StepContext<Agent>) {
        if let Phase::Ending { pid, then } = self.phase.clone() {
            self.memory.unended.processes.insert(self.memory.attempt, pid);
            self.lose_sight(cx);
            self.ended_as_asked((&not_ended(pid), true), then, cx);
        }
    }

    /// Nothing of it is left; the callers that waited for its stop are answered.
    pub(super) fn arrive(&mut self, then: Goal, cx: &mut StepContext<Agent>) {
        let (phase, event) = match then {
            Goal::Fail(reason) => (Phase::Failed, reason),
            Goal::Stop | Goal::Restart(_) => (Phase::Stopped, self.stopped_event()),
        };
        self.even_if_used = false;
        self.enter(phase, event, cx);
        for asker in std::mem::take(&mut self.askers) {
            let stopped = TaskStopped { steps: self.steps.clone() };
            cx.reply(asker, AgentAnswer::StopTask(Ok(stopped)));
        }
    }

    pub(super) fn stopped_event(&self) -> String {
        let of = |kind: &str| self.steps.iter().find(|step| step.what.starts_with(kind));
        let stopped = match of("process/") {
            Some(step) if self.memory.wanted == Some(Wanted::Left) && self.config.survives => {
                step.ending.clone()
            }
            Some(step) => format!("stopped: {}", step.ending),
            None => "stopped".to_owned(),
        };
        match of("volumes/").filter(|step| step.is_left) {
            Some(step) => format!("{stopped}; its volumes are {}", step.ending),
            None => stopped,
        }
    }

    pub(super) fn finish_step(&mut self, moment: Moment, what: &str, ending: String, is_left: bool) {
        let what = format!("{what}/{}", self.config.name);
        self.steps.push(StopStep { what, ending, took: moment.now.since(self.step_began), is_left });
    }
}

/// The report of a process that survives the host.
#[must_use]
pub fn left_running(pid: u32) -> String {
    format!("left running as process {pid}")
}

/// The report of a process that hangs in the kernel.
#[must_use]
pub fn not_ended(pid: u32) -> String {
    format!("process {pid} does not end, not even by SIGKILL")
}

fn told(stopped: &AllocationStopped) -> String {
    let deregistered = if stopped.deregistered { "deregistered" } else { "was not registered" };
    std::iter::once(deregistered)
        .chain(stopped.remarks.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join("; ")
}
