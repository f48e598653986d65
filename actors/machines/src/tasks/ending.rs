//! Decisions for a task whose run is over: its driver has to forget the run, then the task is restarted or not.

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::config::TaskRestart;
use super::running::ASK_TIMEOUT;
use super::state::*;
use crate::agent::RestartPolicy;
use crate::driver::TaskExit;
use crate::kernel::StepContext;
use crate::vocabulary::RestartBudget;

/// The number of requests to a driver to forget a run that is over, before this is given up.
const FORGET_TRIES: u32 = 6;
/// The maximum number of doublings of the pause before a restart.
const DOUBLINGS_MAX: u32 = 20;

impl Task {
    /// Records that its run is over, or has to end. If a task has ended by itself, this is on disk before its driver forgets it: else it
    /// would run once more after a crash. Without an exit the task is started again, since that run was never used.
    pub(super) fn over(&mut self, exit: Option<TaskExit>, note: String, cx: &mut StepContext<Tasks>) {
        self.is_driver_absent = false;
        let Some(run) = &mut self.durable.run else { return };
        let handle = match std::mem::replace(&mut run.state, RunState::Intended) {
            RunState::Started(handle) => Some(handle),
            RunState::Over { handle, .. } => handle,
            RunState::Intended => None,
        };
        // The handle may identify remains of the run, also for the next run of the host.
        run.state = RunState::Over { exit: exit.clone(), handle };
        let has_ended =
            exit.as_ref().is_some_and(TaskExit::is_certain) && self.durable.wanted == Some(Wanted::Running);
        // An unknown exit is reported when nothing is left of the run.
        if let Some(exit) = exit.filter(TaskExit::is_certain) {
            self.durable.exit = Some((exit, cx.now()));
        }
        self.remember(cx);
        self.troubles.reset();
        self.cause = note;
        self.awaits_disk = false;
        if has_ended {
            self.enter(Phase::Clearing, self.cause.clone(), cx);
            self.await_disk(cx);
        } else {
            self.clear(cx);
        }
    }

    /// Makes its driver forget a run that is over.
    pub(super) fn clear(&mut self, cx: &mut StepContext<Tasks>) {
        self.enter(Phase::Clearing, self.cause.clone(), cx);
        self.say_destroy(cx);
    }

    pub(super) fn say_destroy(&self, cx: &mut StepContext<Tasks>) {
        if let Some(key) = self.run_key() {
            self.call(ASK_TIMEOUT, TasksCall::Destroy(key), cx);
        }
    }

    pub(super) fn destroyed(&mut self, answer: &Result<(), Trouble>, cx: &mut StepContext<Tasks>) {
        if self.phase != Phase::Clearing {
            return;
        }
        let Some(RunState::Over { exit, .. }) = self.durable.run.as_ref().map(|run| run.state.clone()) else {
            return;
        };
        let is_over = exit.as_ref().is_some_and(TaskExit::is_certain);
        match answer {
            Ok(()) => {}
            // A run that is over does not wait for its driver forever; a run that may still be active must not be replaced.
            Err(trouble) if trouble.is_transient && (!is_over || self.troubles.failures() < FORGET_TRIES) => {
                let what = if is_over { "its driver is to forget it" } else { "it is to be ended" };
                let note = format!("{}; {what}: {trouble}", self.cause);
                return self.not_answered(trouble, note, cx);
            }
            Err(trouble) if is_over => {
                self.cause = format!("{}; its driver has not forgotten it: {trouble}", self.cause);
            }
            Err(trouble) => self.refusal = Some(trouble.to_string()),
        }
        self.troubles.reset();
        self.sweep(DriverReply::Received, cx);
    }

    /// Continues after a run of which nothing is left, depending on the wanted state and on how the run ended.
    pub(super) fn after_run(
        &mut self,
        scene: &Scene<'_>,
        exit: Option<TaskExit>,
        cx: &mut StepContext<Tasks>,
    ) {
        self.durable.run = None;
        cx.cancel_timer(TasksTimer::GiveUp(self.config.name.clone()));
        let note = self.note.clone();
        match (self.durable.wanted, exit) {
            (Some(Wanted::Stopped | Wanted::Failed), _)
                if self.starts_after_stop && scene.shutdown == ShutdownState::Serving =>
            {
                self.starts_after_stop = false;
                self.begin(scene, cx);
            }
            (Some(Wanted::Stopped), _) => self.arrive(Phase::Stopped, note, cx),
            (Some(Wanted::Failed), _) => self.arrive(Phase::Failed, note, cx),
            (Some(Wanted::Ended), _) => self.arrive(Phase::Ended, note, cx),
            (None | Some(Wanted::Running), None) if self.is_unsent => {
                self.remember(cx);
                self.start_after(scene.options.restart.backoff.first, &note, cx);
            }
            (None | Some(Wanted::Running), None) => self.restart(scene, note, cx),
            (None | Some(Wanted::Running), Some(exit)) => {
                if exit.is_success() || self.config.restart == TaskRestart::None {
                    self.durable.wanted = Some(Wanted::Ended);
                    self.arrive(Phase::Ended, note, cx);
                } else {
                    self.restart(scene, note, cx);
                }
            }
        }
    }

    /// Restarts it after a pause, or gives it up if its restart budget is spent. A task that is no longer wanted stays down.
    pub(super) fn restart(&mut self, scene: &Scene<'_>, reason: String, cx: &mut StepContext<Tasks>) {
        match self.durable.wanted {
            None | Some(Wanted::Running) => {}
            Some(Wanted::Stopped | Wanted::Ended | Wanted::Failed) => {
                return self.not_started(reason, cx);
            }
        }
        let policy = &scene.options.restart;
        let durable = &mut self.durable;
        let window = policy.budget.map_or(RestartPolicy::WINDOW, |budget| budget.window);
        durable.restarted_at.retain(|at| cx.now().since(*at) <= window);
        let before = u32::try_from(durable.restarted_at.len()).unwrap_or(u32::MAX);
        match policy.budget {
            Some(RestartBudget { limit, .. }) if before >= limit => {
                durable.wanted = Some(Wanted::Failed);
                let note = format!("{reason}; given up after {limit} restarts within {window:?}");
                return self.arrive(Phase::Failed, note, cx);
            }
            // More restarts do not make the pause longer.
            None if before > DOUBLINGS_MAX => drop(durable.restarted_at.remove(0)),
            Some(_) | None => {}
        }
        durable.restarted_at.push(cx.now());
        durable.restarts += 1;
        self.remember(cx);
        let pause =
            policy.backoff.first.saturating_mul(1 << before.min(DOUBLINGS_MAX)).min(policy.backoff.longest);
        let pause = cx.moment().spread(pause, policy.backoff.jitter_percent);
        self.start_after(pause, &reason, cx);
    }

    fn start_after(&mut self, pause: Duration, reason: &str, cx: &mut StepContext<Tasks>) {
        let note = format!("{reason}; starts again");
        self.due = Some(cx.now() + pause);
        self.enter(Phase::Waiting, note, cx);
        cx.start_timer(TasksTimer::Start(self.config.name.clone()), cx.now() + pause);
    }

    /// It was not started, and a retry does not help; or it is no longer wanted.
    pub(super) fn not_started(&mut self, reason: String, cx: &mut StepContext<Tasks>) {
        self.durable.run = None;
        if self.durable.wanted == Some(Wanted::Stopped) {
            return self.arrive(Phase::Stopped, "stopped before it was started".to_owned(), cx);
        }
        self.durable.wanted = Some(Wanted::Failed);
        self.arrive(Phase::Failed, reason, cx);
    }
}
