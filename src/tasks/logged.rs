//! Logs the starts, ends, restarts and failures of tasks, and when they are given up, each once and at its level.

use std::collections::BTreeMap;

use callboard_actors::driver::client::TaskEnd;
use callboard_actors::vocabulary::{AllocationId, Timestamp};

use super::{DriverEntry, DriverProgress, TaskPhase, TaskReport, TasksNews};

/// The last logged state of each task.
#[derive(Debug, Default)]
pub(super) struct Logged(BTreeMap<AllocationId, Told>);

#[derive(Debug, PartialEq, Eq)]
struct Told {
    phase: TaskPhase,
    restarts: u64,
    exit_at: Option<Timestamp>,
    /// Why it waits, if it does.
    waits_for: Option<String>,
}

impl Logged {
    pub(super) fn log(&mut self, news: &TasksNews) {
        match news {
            TasksNews::TaskChanged(task) => self.log_task(task),
            TasksNews::TaskForgotten(task) => {
                self.0.remove(task);
                tracing::info!(%task, "forgot a task that is no longer in the configuration");
            }
            TasksNews::DriverChanged(DriverEntry { name: driver, progress }) => match progress {
                DriverProgress::Pausing(error) => {
                    tracing::warn!(%driver, error, "a driver is not available yet")
                }
                DriverProgress::Refused(error) => tracing::error!(%driver, error, "a driver is refused"),
                DriverProgress::Leaving => tracing::info!(%driver, "a driver is ended"),
                DriverProgress::Asking | DriverProgress::Added => {}
            },
            TasksNews::DriverForgotten(driver) => tracing::info!(%driver, "a driver has been ended"),
        }
    }

    fn log_task(&mut self, report: &TaskReport) {
        let TaskReport { name: task, driver, phase, restarts, note: error, .. } = report;
        let (attempt, exit) = (report.attempt.get(), told_exit(report));
        let exit_at = report.exit.as_ref().map(|(_, at)| *at);
        let waits_for = (*phase == TaskPhase::Waiting).then(|| error.clone());
        let told = Told { phase: *phase, restarts: *restarts, exit_at, waits_for };
        let before = self.0.insert(task.clone(), told);
        let is_new = before.as_ref().is_none_or(|before| before.phase != *phase);
        let run_id = report.id.as_ref().map(ToString::to_string);
        if let Some(before) = before.as_ref().filter(|before| before.exit_at != exit_at) {
            log_exit(report, before.phase == TaskPhase::Stopping);
        }
        let is_restarted = before.as_ref().is_some_and(|before| before.restarts < *restarts);
        // Its reason for waiting may become known only later: that its driver is refused.
        let has_another_reason = before.is_some_and(|before| before.waits_for.as_ref() != Some(error));
        if is_restarted {
            tracing::warn!(%task, %driver, attempt, restarts, exit, error, "a task is started again");
        }
        match phase {
            TaskPhase::Running if is_new => {
                tracing::info!(%task, %driver, run_id, attempt, restarts, "a task runs");
            }
            TaskPhase::Failed if is_new => {
                tracing::error!(%task, %driver, attempt, restarts, exit, error, "a task was given up");
            }
            TaskPhase::OutOfReach if is_new => {
                tracing::error!(%task, %driver, run_id, attempt, restarts, error, "the driver of a task is out of reach, so its state is unknown");
            }
            // It no longer waits: it is about to have stopped.
            TaskPhase::Waiting if report.stopping.is_some() => {}
            TaskPhase::Waiting if (is_new || has_another_reason) && !is_restarted => {
                tracing::warn!(%task, %driver, attempt, restarts, exit, error, "a task waits");
            }
            TaskPhase::Stopped if is_new => {
                tracing::info!(%task, %driver, attempt, restarts, exit, "a task is stopped");
            }
            TaskPhase::Stopped
            | TaskPhase::Starting
            | TaskPhase::Recovering
            | TaskPhase::Running
            | TaskPhase::Stopping
            | TaskPhase::Waiting
            | TaskPhase::Ended
            | TaskPhase::Failed
            | TaskPhase::OutOfReach => {}
        }
    }
}

/// How its last run ended; "none" if none has.
fn told_exit(report: &TaskReport) -> String {
    report.exit.as_ref().map_or_else(|| "none".to_owned(), |(exit, _)| exit.to_string())
}

/// Logs an end. An end without success is a warning, unless the task was being stopped.
fn log_exit(report: &TaskReport, is_asked_to: bool) {
    let (TaskReport { name: task, driver, restarts, .. }, Some((end, _))) = (report, &report.exit) else {
        return;
    };
    let (attempt, exit, oom_killed) = (report.attempt.get(), told_exit(report), end.oom_killed);
    let run_id = report.id.as_ref().map(ToString::to_string);
    match &end.end {
        TaskEnd::Exited(0) => {
            tracing::info!(%task, %driver, run_id, attempt, restarts, exit, "a task ended");
        }
        TaskEnd::Exited(_) | TaskEnd::Signalled(_) if is_asked_to => {
            tracing::info!(%task, %driver, run_id, attempt, restarts, exit, oom_killed, "a task ended when asked to");
        }
        TaskEnd::Exited(_) | TaskEnd::Signalled(_) | TaskEnd::Unknown(_) => {
            tracing::warn!(%task, %driver, run_id, attempt, restarts, exit, oom_killed, "a task ended");
        }
    }
}
