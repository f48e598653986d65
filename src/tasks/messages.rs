//! What can be said to the tasks, and what they say.

use callboard_actors::driver::Folded;
use callboard_actors::driver::client::{TaskExit, TaskId};
use callboard_actors::vocabulary::{AllocationId, DriverName, Timestamp};

use crate::agent::{StopStep, TaskStopped};

/// Starts a task. One that failed, or that waits to be started again, begins anew with its whole budget of restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartTask {
    /// Which task of the configuration.
    pub name: AllocationId,
}

/// Stops a task through its driver. Answered when it has ended and its driver has forgotten it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopTask {
    /// Which task of the configuration.
    pub name: AllocationId,
}

/// Stops all tasks, and starts none from then on. Answered when all have stopped, with how each one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopAllTasks;

/// Stops the tasks whose driver ends with its host, and leaves those of a driver that survives it; starts none from then on.
/// Answered when nothing is under way any more: whatever runs can be recovered by the next run of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveTasks;

/// Asks for all tasks, in the order of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListTasks;

/// Why a task is neither started nor stopped. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The configuration has no such task.
    #[error("the configuration has neither an allocation nor a task {name:?}")]
    Unknown {
        /// What was asked for.
        name: AllocationId,
    },
    /// The configuration had it once; it is only stopped.
    #[error("task {name} is not in the configuration any more; it is only being stopped")]
    Removed {
        /// Which task.
        name: AllocationId,
    },
    /// It is to be started and is on its way already.
    #[error("task {name} is {phase} already")]
    Started {
        /// Which task.
        name: AllocationId,
        /// Where it has got to.
        phase: TaskPhase,
    },
    /// It is to be started while it is being stopped.
    #[error("task {name} is being stopped; start it when it has stopped")]
    Stopping {
        /// Which task.
        name: AllocationId,
    },
    /// It is to be stopped and does not run.
    #[error("task {name} does not run: it is {phase}")]
    NotRunning {
        /// Which task.
        name: AllocationId,
        /// Where it has got to.
        phase: TaskPhase,
    },
    /// It was to be stopped, and its driver could not be brought to do it in time. It may still run.
    #[error(
        "task {name} is not stopped: {reason}; it may still run, and is taken up again by `start` or `stop`"
    )]
    OutOfReach {
        /// Which task.
        name: AllocationId,
        /// What keeps it.
        reason: String,
    },
    /// The host is stopping.
    #[error("task {name} is not started: the host is stopping")]
    HostStopping {
        /// Which task.
        name: AllocationId,
    },
}

impl TaskError {
    /// Whether the same may succeed later, with nobody changing anything by hand.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Stopping { .. } | Self::OutOfReach { .. } => true,
            Self::Unknown { .. }
            | Self::Removed { .. }
            | Self::Started { .. }
            | Self::NotRunning { .. }
            | Self::HostStopping { .. } => false,
        }
    }
}

/// Where a task has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPhase {
    /// It does not run and is not meant to.
    Stopped,
    /// It is to be started, or its driver has been told to.
    Starting,
    /// It runs, as far as is known, and its driver is asked to take it up again.
    Recovering,
    /// It runs.
    Running,
    /// It is being stopped, or its driver is being told to forget it.
    Stopping,
    /// It will be started: again, after a pause, since it failed; or once its driver can be had.
    Waiting,
    /// It has ended by itself and is not started again.
    Ended,
    /// It failed for good, or more often than its budget allows; only a person starts it again.
    Failed,
    /// Its driver cannot be reached to stop it. It may still run.
    OutOfReach,
}

impl TaskPhase {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Recovering => "recovering",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::OutOfReach => "out-of-reach",
        }
    }
}

impl std::fmt::Display for TaskPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// Its name.
    pub name: AllocationId,
    /// The driver that runs it, or is to.
    pub driver: DriverName,
    /// Where it has got to.
    pub phase: TaskPhase,
    /// Since when it has been there.
    pub since: Timestamp,
    /// By what its driver knows it, while there is a run of it.
    pub id: Option<TaskId>,
    /// How its last run ended, and when that was heard.
    pub exit: Option<(TaskExit, Timestamp)>,
    /// How often it was started again after it had ended by itself.
    pub restarts: u64,
    /// The last thing that was done about it, in words.
    pub note: String,
    /// What its driver told of it: the first event, and the latest that differ (EVT-04).
    pub events: Vec<Folded>,
    /// How many events its driver told in all, across all runs of the host.
    pub events_told: u64,
    /// How many are known to be missing.
    pub events_missed: u64,
    /// Whether the configuration still has it.
    pub is_configured: bool,
}

/// How far a driver of the configuration has been brought. How it does then is told by its own reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverCourse {
    /// Its plugin is being looked for.
    Asking,
    /// It could not be brought yet; this is why, and it is tried again after a pause.
    Pausing(String),
    /// It is among the drivers of the host.
    Brought,
    /// It cannot be brought, for this reason, until the configuration or the plugin changes.
    Refused(String),
    /// The configuration has it no more, nothing is left for it to do, and it is being ended.
    Leaving,
}

/// One driver of the configuration, or one that it has no more while something of it is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverEntry {
    /// Its name.
    pub name: DriverName,
    /// How far it has been brought.
    pub course: DriverCourse,
}

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TasksNews {
    /// Something about a task is not as it was.
    TaskChanged(Box<TaskReport>),
    /// A task that the configuration has no more is stopped and forgotten.
    TaskForgotten(AllocationId),
    /// A driver has got further, or has not.
    DriverChanged(DriverEntry),
    /// A driver that the configuration has no more is ended and forgotten.
    DriverForgotten(DriverName),
}

/// Everything subscribers may know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TasksView {
    /// The tasks, in the order of the configuration, and after them those that it has no more.
    pub tasks: Vec<TaskReport>,
    /// The drivers of the configuration, and those that it has no more while something of them is left, by name.
    pub drivers: Vec<DriverEntry>,
}

/// What is answered to [`StopTask`].
pub type Stopped = Result<TaskStopped, TaskError>;

/// What is answered to [`StopAllTasks`] and [`LeaveTasks`].
pub type AllStopped = Vec<StopStep>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_again_helps_where_something_is_under_way_or_out_of_reach() {
        let name = || AllocationId::new("web").unwrap();
        let later = [
            TaskError::Stopping { name: name() },
            TaskError::OutOfReach { name: name(), reason: "its driver is gone".to_owned() },
        ];
        assert!(later.iter().all(TaskError::is_transient));
        let never = [
            TaskError::Unknown { name: name() },
            TaskError::Removed { name: name() },
            TaskError::Started { name: name(), phase: TaskPhase::Running },
            TaskError::NotRunning { name: name(), phase: TaskPhase::Stopped },
            TaskError::HostStopping { name: name() },
        ];
        assert!(!never.iter().any(TaskError::is_transient));
    }
}
