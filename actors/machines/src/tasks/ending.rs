//! Decisions for a task whose run is over: its driver has to forget the run, then the task is restarted or not.

use std::time::Duration;

use super::behaviour::Scene;
use super::calls::*;
use super::config::TaskRestart;
use super::running::ASK_TIMEOUT;
use super::state::*;
use crate::agent::RestartPolicy;
use crate::driver::TaskExit;
use crate::kernel::Effects;
use crate::vocabulary::{Moment, RestartBudget};

/// How often a driver is asked to forget a run that is over, before this is given up.
const FORGET_TRIES: u32 = 6;
/// How often the pause before a restart is doubled at most.
const DOUBLINGS_MAX: u32 = 20;

impl Task {
    /// Records that its run is over, or has to end. That a task has ended by itself is on disk before its driver forgets it: it
    /// would run once more after a crash. Without an exit the task is started again, since that run was never used.
    pub(super) fn over(
        &mut self,
        moment: Moment,
        exit: Option<TaskExit>,
        note: String,
        effects: &mut Effects<Tasks>,
    ) {
        self.is_driver_absent = false;
        let Some(run) = &mut self.course.run else { return };
        let handle = match std::mem::replace(&mut run.state, RunState::Intended) {
            RunState::Started(handle) => Some(handle),
            RunState::Over { handle, .. } => handle,
            RunState::Intended => None,
        };
        // The handle may identify remains of the run, also for the next run of the host.
        run.state = RunState::Over { exit: exit.clone(), handle };
        let has_ended =
            exit.as_ref().is_some_and(TaskExit::is_certain) && self.course.wanted == Some(Wanted::Running);
        // An unknown exit is reported when nothing is left of the run.
        if let Some(exit) = exit.filter(TaskExit::is_certain) {
            self.course.exit = Some((exit, moment.now));
        }
        self.remember(effects);
        self.troubles.reset();
        self.cause = note;
        self.awaits_disk = false;
        if has_ended {
            self.enter(moment, Phase::Clearing, self.cause.clone(), effects);
            self.await_disk(effects);
        } else {
            self.clear(moment, effects);
        }
    }

    /// Makes its driver forget a run that is over.
    pub(super) fn clear(&mut self, moment: Moment, effects: &mut Effects<Tasks>) {
        self.enter(moment, Phase::Clearing, self.cause.clone(), effects);
        self.say_destroy(effects);
    }

    pub(super) fn say_destroy(&self, effects: &mut Effects<Tasks>) {
        if let Some(key) = self.run_key() {
            self.call(ASK_TIMEOUT, TasksCall::Destroy(key), effects);
        }
    }

    pub(super) fn destroyed(
        &mut self,
        moment: Moment,
        answer: &Result<(), Trouble>,
        effects: &mut Effects<Tasks>,
    ) {
        if self.phase != Phase::Clearing {
            return;
        }
        let Some(RunState::Over { exit, .. }) = self.course.run.as_ref().map(|run| run.state.clone()) else {
            return;
        };
        let is_over = exit.as_ref().is_some_and(TaskExit::is_certain);
        match answer {
            Ok(()) => {}
            // A run that is over does not wait for its driver forever; one that may still run must not be replaced.
            Err(trouble) if trouble.is_transient && (!is_over || self.troubles.failures() < FORGET_TRIES) => {
                let what = if is_over { "its driver is to forget it" } else { "it is to be ended" };
                let note = format!("{}; {what}: {trouble}", self.cause);
                return self.not_answered(moment, trouble, note, effects);
            }
            Err(trouble) if is_over => {
                self.cause = format!("{}; its driver has not forgotten it: {trouble}", self.cause);
            }
            Err(trouble) => self.refusal = Some(trouble.to_string()),
        }
        self.troubles.reset();
        self.sweep(moment, Word::Had, effects);
    }

    /// Continues after a run of which nothing is left, depending on what is wanted and on how the run ended.
    pub(super) fn after_run(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        exit: Option<TaskExit>,
        effects: &mut Effects<Tasks>,
    ) {
        self.course.run = None;
        effects.cancel_timer(TasksTimer::GiveUp(self.config.name.clone()));
        let note = self.note.clone();
        match (self.course.wanted, exit) {
            (Some(Wanted::Stopped | Wanted::Failed), _)
                if self.starts_after_stop && scene.life == Life::Serving =>
            {
                self.starts_after_stop = false;
                self.begin(moment, scene, effects);
            }
            (Some(Wanted::Stopped), _) => self.arrive(moment, Phase::Stopped, note, effects),
            (Some(Wanted::Failed), _) => self.arrive(moment, Phase::Failed, note, effects),
            (Some(Wanted::Ended), _) => self.arrive(moment, Phase::Ended, note, effects),
            (None | Some(Wanted::Running), None) if self.is_unsent => {
                self.remember(effects);
                self.start_after(moment, scene.options.restart.backoff.first, &note, effects);
            }
            (None | Some(Wanted::Running), None) => self.restart(moment, scene, note, effects),
            (None | Some(Wanted::Running), Some(exit)) => {
                if exit.is_success() || self.config.restart == TaskRestart::None {
                    self.course.wanted = Some(Wanted::Ended);
                    self.arrive(moment, Phase::Ended, note, effects);
                } else {
                    self.restart(moment, scene, note, effects);
                }
            }
        }
    }

    /// Restarts it after a pause, or gives it up if its restart budget is spent. A task that is no longer wanted stays down.
    pub(super) fn restart(
        &mut self,
        moment: Moment,
        scene: &Scene<'_>,
        reason: String,
        effects: &mut Effects<Tasks>,
    ) {
        match self.course.wanted {
            None | Some(Wanted::Running) => {}
            Some(Wanted::Stopped | Wanted::Ended | Wanted::Failed) => {
                return self.not_started(moment, reason, effects);
            }
        }
        let policy = &scene.options.restart;
        let course = &mut self.course;
        let window = policy.budget.map_or(RestartPolicy::WINDOW, |budget| budget.window);
        course.restarted_at.retain(|at| moment.now.since(*at) <= window);
        let before = u32::try_from(course.restarted_at.len()).unwrap_or(u32::MAX);
        match policy.budget {
            Some(RestartBudget { limit, .. }) if before >= limit => {
                course.wanted = Some(Wanted::Failed);
                let note = format!("{reason}; given up after {limit} restarts within {window:?}");
                return self.arrive(moment, Phase::Failed, note, effects);
            }
            // More of them do not make the pause longer.
            None if before > DOUBLINGS_MAX => drop(course.restarted_at.remove(0)),
            Some(_) | None => {}
        }
        course.restarted_at.push(moment.now);
        course.restarts += 1;
        self.remember(effects);
        let pause =
            policy.backoff.first.saturating_mul(1 << before.min(DOUBLINGS_MAX)).min(policy.backoff.longest);
        let pause = moment.spread(pause, policy.backoff.jitter_percent);
        self.start_after(moment, pause, &reason, effects);
    }

    fn start_after(&mut self, moment: Moment, pause: Duration, reason: &str, effects: &mut Effects<Tasks>) {
        let note = format!("{reason}; starts again");
        self.due = Some(moment.now + pause);
        self.enter(moment, Phase::Waiting, note, effects);
        effects.start_timer(TasksTimer::Start(self.config.name.clone()), moment.now + pause);
    }

    /// It was not started, and a retry does not help; or it is no longer wanted.
    pub(super) fn not_started(&mut self, moment: Moment, reason: String, effects: &mut Effects<Tasks>) {
        self.course.run = None;
        if self.course.wanted == Some(Wanted::Stopped) {
            return self.arrive(moment, Phase::Stopped, "stopped before it was started".to_owned(), effects);
        }
        self.course.wanted = Some(Wanted::Failed);
        self.arrive(moment, Phase::Failed, reason, effects);
    }
}
