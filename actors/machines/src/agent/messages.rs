//! The messages of the agent, and its notifications.

use std::time::Duration;

use crate::allocations::{RestartWhen, StopAllocationError};
use crate::conversation;
use crate::kernel::StopStep;
use crate::vocabulary::{AllocationId, Attempt, Health, PluginName, Probing, Role, Timestamp};

use crate::process::ProcessExit;

/// Starts the task of an allocation. A task that failed, or that waits for a restart, starts again with its whole restart budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StartTask {
    /// The allocation of the configuration.
    pub allocation: AllocationId,
}

/// Stops the task of an allocation in order (SHD-04): its plugin is deregistered first, then its process is ended, then its volumes
/// are released. Answered when all are done. While volumes of its plugin are in use, and no other allocation serves the plugin instead, it
/// is not stopped: the answer waits some seconds for their release, and then refuses the stop (V13).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StopTask {
    /// The allocation of the configuration.
    pub allocation: AllocationId,
    /// Whether it is stopped although volumes of its plugin may be in use. Steps that are up can then be undone only when the plugin is
    /// back. It also ends the wait of an earlier stop request.
    pub even_if_used: bool,
}

/// Replaces an allocation by another one of the same plugin, behind a gate (F16): starts the new one beside the old one, and stops the
/// old one when the new one has been healthy for a while. Otherwise the new one is stopped, and the old one stays. Answered when one of
/// them has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Replace {
    /// The allocation to stop.
    pub allocation: AllocationId,
    /// The allocation that replaces it.
    pub with: AllocationId,
    /// How long the new one must have been healthy.
    pub healthy_for: Duration,
    /// The timeout for becoming healthy for that long.
    pub within: Duration,
}

/// Why an allocation was not replaced. It continues as if nothing had been requested.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReplaceError {
    /// One of the two cannot be started or stopped.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Both are the same allocation.
    #[error("allocation {allocation} cannot be replaced with itself; name another one of its plugin")]
    Itself {
        /// The allocation.
        allocation: AllocationId,
    },
    /// The new allocation serves another plugin, or has another role.
    #[error("allocation {allocation} serves {old}, and {with} serves {new}; name one that serves the same")]
    OtherPlugin {
        /// The allocation to stop.
        allocation: AllocationId,
        /// The allocation that was to replace it.
        with: AllocationId,
        /// The plugin and the role of the old allocation.
        old: String,
        /// The plugin and the role of the new allocation.
        new: String,
    },
    /// One of the two is already being replaced.
    #[error("allocation {allocation} is being replaced with {with} already; wait for the end of that")]
    UnderWay {
        /// The allocation to stop.
        allocation: AllocationId,
        /// The allocation that replaces it.
        with: AllocationId,
    },
    /// The timeout is shorter than the time for which the new allocation must have been healthy.
    #[error(
        "the new allocation cannot have been healthy for {healthy_for:?} within {within:?}; give it more time"
    )]
    NeverInTime {
        /// How long the new allocation must have been healthy.
        healthy_for: Duration,
        /// The timeout.
        within: Duration,
    },
    /// Volumes of the plugin are in use, and it is not known that the new allocation can serve them (V13).
    #[error("allocation {allocation} was not replaced with {with}, and both keep running: {reason}")]
    NotStopped {
        /// The allocation to stop.
        allocation: AllocationId,
        /// The allocation that was to replace it.
        with: AllocationId,
        /// Why the old allocation is not stopped.
        reason: StopAllocationError,
    },
    /// The host is stopping; both are stopped.
    #[error("allocation {allocation} was not replaced with {with}: the host is stopping")]
    HostStopping {
        /// The allocation to stop.
        allocation: AllocationId,
        /// The allocation that was to replace it.
        with: AllocationId,
    },
    /// The new allocation was not healthy for long enough.
    #[error(
        "allocation {allocation} was not replaced with {with}: {reason}; {}",
        if *.is_kept { "the new one goes on" } else { "the new one has stopped" }
    )]
    NotHealthy {
        /// The allocation to stop.
        allocation: AllocationId,
        /// The allocation that was to replace it.
        with: AllocationId,
        /// Why the new allocation was not healthy at the end.
        reason: String,
        /// Whether the new allocation still runs: it did before, or the old one has ended meanwhile or is not healthy itself.
        is_kept: bool,
    },
}

/// Asks for all tasks, in the order of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListTasks;

/// Why a task is neither started nor stopped. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TaskError {
    /// The configuration has no such allocation.
    #[error("the configuration has no allocation {allocation:?}")]
    Unknown {
        /// The requested allocation.
        allocation: AllocationId,
    },
    /// It is to be started and has been started already.
    #[error("allocation {allocation} is {phase} already")]
    Started {
        /// The allocation.
        allocation: AllocationId,
        /// The phase of its task.
        phase: TaskPhase,
    },
    /// It is to be started while it is being stopped.
    #[error("allocation {allocation} is being stopped; start it when it has stopped")]
    Stopping {
        /// The allocation.
        allocation: AllocationId,
    },
    /// It is to be stopped and does not run.
    #[error("allocation {allocation} does not run: it is {phase}")]
    NotRunning {
        /// The allocation.
        allocation: AllocationId,
        /// The phase of its task.
        phase: TaskPhase,
    },
    /// It is to be stopped, and volumes of its plugin are in use.
    #[error(transparent)]
    NotStopped(#[from] StopAllocationError),
    /// The host is stopping.
    #[error("allocation {allocation} is not started: the host is stopping")]
    HostStopping {
        /// The allocation.
        allocation: AllocationId,
    },
}

/// The phase of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPhase {
    /// It does not run and is not meant to.
    Stopped,
    /// Its directories are being made, its volumes are being claimed or its process is being started.
    Starting,
    /// Its process runs.
    Running,
    /// It is being deregistered, its process is being ended or its volumes are being released.
    Stopping,
    /// It has ended by itself, or its volumes cannot be claimed yet; it will be started again after a pause.
    Waiting,
    /// It has ended by itself more often than its budget allows, or its volumes cannot be claimed; only a person starts it again.
    Failed,
}

impl TaskPhase {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

impl std::fmt::Display for TaskPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskReport {
    /// The allocation of the task.
    pub allocation: AllocationId,
    /// The plugin it serves.
    pub plugin: PluginName,
    /// The halves of the plugin that it serves.
    pub role: Role,
    /// Its phase.
    pub phase: TaskPhase,
    /// When this phase began.
    pub since: Timestamp,
    /// Its process, if it has one.
    pub pid: Option<u32>,
    /// How often it was restarted after it had ended by itself.
    pub restarts: u64,
    /// Its last event, in words.
    pub last_event: String,
    /// Whether it is meant to run: it was started, and not stopped. A task that was given up is still meant to run.
    pub is_wanted: bool,
    /// The number of its latest start.
    pub attempt: Attempt,
    /// When it is restarted after it was ready once.
    pub restart_when: RestartWhen,
    /// How its plugin is probed, where that differs from the rest.
    pub probing: Probing,
    /// Whether its process survives the host.
    pub survives: bool,
    /// The end of its last process, if one has ended.
    pub exit: Option<LastExit>,
    /// When it is started again, while it waits for a restart.
    pub due: Option<Timestamp>,
    /// Its stop, while it is in progress.
    pub stopping: Option<StopBound>,
    /// The steps that its latest stop has ended so far.
    pub ended: Vec<StopStep>,
}

/// The health of a plugin that does not serve and is about to serve again.
pub const RESTARTING: &str = "restarting";

impl TaskReport {
    /// Whether its process exists or will exist.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.is_wanted && self.phase != TaskPhase::Failed
    }

    /// The health of its plugin in a word, while nothing is known of a process of it. The log and the status use the same word.
    #[must_use]
    pub fn health_without_process(&self) -> &'static str {
        match (self.is_expected(), &self.exit) {
            (true, Some(_)) => RESTARTING,
            (true, None) => Health::Starting.as_str(),
            (false, _) => Health::Gone.as_str(),
        }
    }
}

/// A stop that is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StopBound {
    /// The latest time by which it has ended, all its limits included.
    pub by: Timestamp,
    /// When its process gets SIGKILL if it has not ended by then; `None` while it is not being ended.
    pub kill: Option<Timestamp>,
}

/// How the last process of a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LastExit {
    /// Its exit status; `None` if it was not observed.
    pub exit: Option<ProcessExit>,
    /// How it ended, in words.
    pub how: String,
    /// When it ended.
    pub at: Timestamp,
}

conversation! {
    /// The messages of the agent.
    #[derive(Clone, Hash)]
    pub enum AgentAsk -> #[derive(Hash)] AgentAnswer {
        StartTask => Result<(), TaskError>,
        StopTask => Result<TaskStopped, TaskError>,
        Replace => Result<TaskStopped, ReplaceError>,
        ListTasks => Vec<TaskReport>,
    }
}

/// A notification for subscribers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentNews {
    /// The report of a task has changed.
    TaskChanged(TaskReport),
}

/// A task has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskStopped {
    /// The parts that were stopped, in the order in which they ended: `allocation/NAME` is its registration, `process/NAME` its process,
    /// `volumes/NAME` its claims to volumes. `users/NAME` are the users of its volumes that a host that stops no longer waits for.
    pub steps: Vec<StopStep>,
}
