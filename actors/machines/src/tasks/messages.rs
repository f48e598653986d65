//! The messages and notifications of the tasks.

use crate::agent::{StopBound, TaskStopped};
use crate::conversation;
use crate::driver::{Folded, TaskExit, TaskId};
use crate::kernel::StopStep;
use crate::vocabulary::{AllocationId, Attempt, DriverName, Timestamp};

/// Starts a task. A task that failed, or that waits for a restart, gets its whole restart budget again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartTask {
    /// A task of the configuration.
    pub name: AllocationId,
}

/// Stops a task through its driver. Answered when it has ended and its driver has forgotten it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopTask {
    /// A task of the configuration.
    pub name: AllocationId,
}

/// Lists all tasks, in the order of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListTasks;

/// Sets up a driver whose plugin could not be used, now instead of at its next retry. Answered with its progress. A driver that was
/// set up before, or is no longer configured, stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUpDriver {
    /// The driver.
    pub name: DriverName,
}

/// There is no driver of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host has no driver {name}; {}", told_known(known))]
pub struct UnknownDriver {
    /// The requested name.
    pub name: DriverName,
    /// The existing drivers.
    pub known: Vec<DriverName>,
}

fn told_known(known: &[DriverName]) -> String {
    let names: Vec<_> = known.iter().map(ToString::to_string).collect();
    if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) }
}

/// The text for a run that ended, with cleanup unconfirmed.
pub const HAS_ENDED: &str = "has ended, but its cleanup is not confirmed";

/// Why a task is neither started nor stopped. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The configuration has no such task.
    #[error("the configuration has neither an allocation nor a task {name:?}")]
    Unknown {
        /// The requested name.
        name: AllocationId,
    },
    /// It is no longer configured; it can only be stopped.
    #[error("task {name} is not in the configuration any more; it is only being stopped")]
    Removed {
        /// The task.
        name: AllocationId,
    },
    /// A start of a task that is already starting or running.
    #[error("task {name} is {phase} already")]
    Started {
        /// The task.
        name: AllocationId,
        /// Its phase.
        phase: TaskPhase,
    },
    /// A start of a task that is being stopped.
    #[error("task {name} is being stopped; start it when it has stopped")]
    Stopping {
        /// The task.
        name: AllocationId,
    },
    /// A stop of a task that does not run.
    #[error("task {name} does not run: it is {phase}")]
    NotRunning {
        /// The task.
        name: AllocationId,
        /// Its phase.
        phase: TaskPhase,
    },
    /// The driver could not stop it in time. It may still run.
    #[error("task {name} is not stopped: {reason}; it may still run; `start` or `stop` checks again")]
    OutOfReach {
        /// The task.
        name: AllocationId,
        /// The reason.
        reason: String,
    },
    /// It has ended, and it is unknown whether something of it is left.
    #[error("task {name} {}: {reason}; `start` or `stop` checks again", HAS_ENDED)]
    Remains {
        /// The task.
        name: AllocationId,
        /// How it ended, and why it is unknown whether something is left.
        reason: String,
    },
    /// The host is stopping.
    #[error("task {name} is not started: the host is stopping")]
    HostStopping {
        /// The task.
        name: AllocationId,
    },
}

impl TaskError {
    /// Whether a retry may succeed in this run of the host, without a change by an operator.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Stopping { .. } | Self::OutOfReach { .. } | Self::Remains { .. } => true,
            Self::Unknown { .. }
            | Self::Removed { .. }
            | Self::Started { .. }
            | Self::NotRunning { .. }
            | Self::HostStopping { .. } => false,
        }
    }
}

/// The phase of a task, as reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPhase {
    /// It does not run, and is not meant to.
    Stopped,
    /// It is about to be started, or its driver is starting it.
    Starting,
    /// It runs, as far as is known, and its driver is recovering it.
    Recovering,
    /// It runs.
    Running,
    /// It is being stopped, or its driver is forgetting it.
    Stopping,
    /// It will be started: by a restart after a pause, or when its driver is available.
    Waiting,
    /// It has ended by itself and is not restarted.
    Ended,
    /// It failed permanently, or exceeded its restart budget; only an operator starts it again.
    Failed,
    /// Its driver is unavailable to stop it. It may still run.
    OutOfReach,
}

impl TaskPhase {
    /// Its name in text.
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

/// The state of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// Its name.
    pub name: AllocationId,
    /// The driver that runs it, or will.
    pub driver: DriverName,
    /// Its phase.
    pub phase: TaskPhase,
    /// The start of the phase.
    pub since: Timestamp,
    /// The number of its latest start.
    pub attempt: Attempt,
    /// The driver's id of the present run, if there is one.
    pub id: Option<TaskId>,
    /// How its last run ended, and when this became known.
    pub exit: Option<(TaskExit, Timestamp)>,
    /// The number of restarts after it had ended by itself.
    pub restarts: u64,
    /// Its last action, in words.
    pub note: String,
    /// The events of its driver: the first, and the latest distinct ones (EVT-04).
    pub events: Vec<Folded>,
    /// The number of events received, across all runs of the host.
    pub events_told: u64,
    /// The number of events known to be missing.
    pub events_missed: u64,
    /// Whether it is still configured.
    pub is_configured: bool,
    /// The time of its next start, while it waits for that.
    pub due: Option<Timestamp>,
    /// Its stop, while it is in progress.
    pub stopping: Option<StopBound>,
    /// The result of its latest stop, if it has ended.
    pub ended: Vec<StopStep>,
}

/// The progress of the setup of a driver. Its later health is in its own reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverProgress {
    /// Its plugin is being resolved.
    Asking,
    /// It could not be set up, for this reason; a retry follows after a pause.
    Pausing(String),
    /// The host has added it.
    Added,
    /// It cannot be set up, for this reason, until the configuration or the plugin changes.
    Refused(String),
    /// It is no longer configured and no longer needed; it is being ended.
    Leaving,
}

/// A configured driver, or a departed one that still has remains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverEntry {
    /// Its name.
    pub name: DriverName,
    /// Its progress.
    pub progress: DriverProgress,
}

conversation! {
    /// The requests to the tasks.
    #[derive(Clone)]
    pub enum TasksAsk -> TasksAnswer {
        StartTask => Result<(), TaskError>,
        StopTask => Stopped,
        ListTasks => Vec<TaskReport>,
        SetUpDriver => Result<DriverProgress, UnknownDriver>,
    }
}

/// Notifications to subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TasksNews {
    /// The state of a task changed.
    TaskChanged(Box<TaskReport>),
    /// A task that is no longer configured was stopped and forgotten.
    TaskForgotten(AllocationId),
    /// The progress of a driver changed.
    DriverChanged(DriverEntry),
    /// A driver that is no longer configured was ended and forgotten.
    DriverForgotten(DriverName),
}

/// The snapshot for subscribers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TasksView {
    /// The tasks, in the order of the configuration, followed by those that are no longer configured.
    pub tasks: Vec<TaskReport>,
    /// The drivers by name: the configured ones, and the departed ones that still have remains.
    pub drivers: Vec<DriverEntry>,
}

/// The answer to [`StopTask`].
pub type Stopped = Result<TaskStopped, TaskError>;

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
