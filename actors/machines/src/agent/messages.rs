//! What can be said to the agent, and what it says.

use std::time::Duration;

use crate::allocations::{RestartWhen, StopAllocationError};
use crate::conversation;
use crate::kernel::StopStep;
use crate::vocabulary::{AllocationId, Attempt, Health, PluginName, Probing, Role, Timestamp};

use crate::process::ProcessExit;

/// Starts the task of an allocation. One that failed, or that waits to be started again, begins anew with its whole budget of
/// restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StartTask {
    /// Which allocation of the configuration.
    pub allocation: AllocationId,
}

/// Stops the task of an allocation in order (SHD-04): its plugin is deregistered first, then its process is ended, then its volumes
/// are released. Answered when all are done. While volumes of its plugin are in use, and no other allocation carries on for it, it is
/// not stopped: the answer waits some seconds for their release, and then refuses the stop (V13).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StopTask {
    /// Which allocation of the configuration.
    pub allocation: AllocationId,
    /// Whether it is stopped although volumes of its plugin may be in use. What of them is up can be undone only when the plugin is
    /// back. It also ends the wait of a stop that was asked for before.
    pub even_if_used: bool,
}

/// Replaces an allocation by another one of the same plugin, behind a gate (F16): starts the new one beside the old one, and stops the
/// old one when the new one has been healthy for a while. Otherwise the new one is stopped, and the old one stays. Answered when one of
/// them has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Replace {
    /// Which allocation is to leave.
    pub allocation: AllocationId,
    /// Which allocation is to take its place.
    pub with: AllocationId,
    /// How long the new one must have been healthy.
    pub healthy_for: Duration,
    /// The timeout for that.
    pub within: Duration,
}

/// Why an allocation was not replaced. It goes on as if nothing had been asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReplaceError {
    /// One of the two cannot be started or stopped.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Both are the same.
    #[error("allocation {allocation} cannot be replaced with itself; name another one of its plugin")]
    Itself {
        /// Which allocation.
        allocation: AllocationId,
    },
    /// The new one serves another plugin, or in another role.
    #[error("allocation {allocation} serves {old}, and {with} serves {new}; name one that serves the same")]
    OtherPlugin {
        /// Which allocation was to leave.
        allocation: AllocationId,
        /// Which was to take its place.
        with: AllocationId,
        /// The plugin and the role of the former.
        old: String,
        /// Those of the latter.
        new: String,
    },
    /// One of the two is being replaced already.
    #[error("allocation {allocation} is being replaced with {with} already; wait for the end of that")]
    UnderWay {
        /// Which allocation is to leave.
        allocation: AllocationId,
        /// Which is to take its place.
        with: AllocationId,
    },
    /// The timeout is shorter than the time for which the new one must have been healthy.
    #[error(
        "the new allocation cannot have been healthy for {healthy_for:?} within {within:?}; give it more time"
    )]
    NeverInTime {
        /// How long it must have been healthy.
        healthy_for: Duration,
        /// The timeout.
        within: Duration,
    },
    /// Volumes of the plugin are in use, and it is not known that the new one carries on for them (V13).
    #[error("allocation {allocation} was not replaced with {with}, and both keep running: {reason}")]
    NotStopped {
        /// Which allocation was to leave.
        allocation: AllocationId,
        /// Which was to take its place.
        with: AllocationId,
        /// Why the former is not stopped.
        reason: StopAllocationError,
    },
    /// The host is stopping; both are stopped.
    #[error("allocation {allocation} was not replaced with {with}: the host is stopping")]
    HostStopping {
        /// Which allocation was to leave.
        allocation: AllocationId,
        /// Which was to take its place.
        with: AllocationId,
    },
    /// The new one was not healthy for long enough.
    #[error(
        "allocation {allocation} was not replaced with {with}: {reason}; {}",
        if *.is_kept { "the new one goes on" } else { "the new one has stopped" }
    )]
    NotHealthy {
        /// Which allocation was to leave.
        allocation: AllocationId,
        /// Which was to take its place.
        with: AllocationId,
        /// What it lacked at the end.
        reason: String,
        /// Whether the new one still runs: it did before, or the old one has ended meanwhile or is not healthy itself.
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
        /// What was asked for.
        allocation: AllocationId,
    },
    /// It is to be started and is on its way already.
    #[error("allocation {allocation} is {phase} already")]
    Started {
        /// Which allocation.
        allocation: AllocationId,
        /// Where its task has got to.
        phase: TaskPhase,
    },
    /// It is to be started while it is being stopped.
    #[error("allocation {allocation} is being stopped; start it when it has stopped")]
    Stopping {
        /// Which allocation.
        allocation: AllocationId,
    },
    /// It is to be stopped and does not run.
    #[error("allocation {allocation} does not run: it is {phase}")]
    NotRunning {
        /// Which allocation.
        allocation: AllocationId,
        /// Where its task has got to.
        phase: TaskPhase,
    },
    /// It is to be stopped, and volumes of its plugin are in use.
    #[error(transparent)]
    NotStopped(#[from] StopAllocationError),
    /// The host is stopping.
    #[error("allocation {allocation} is not started: the host is stopping")]
    HostStopping {
        /// Which allocation.
        allocation: AllocationId,
    },
}

/// Where a task has got to.
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
    /// Whose task.
    pub allocation: AllocationId,
    /// The plugin it serves.
    pub plugin: PluginName,
    /// Which halves of it.
    pub role: Role,
    /// Where it has got to.
    pub phase: TaskPhase,
    /// Since when it has been there.
    pub since: Timestamp,
    /// Its process, if it has one.
    pub pid: Option<u32>,
    /// How often it was started again after it had ended by itself.
    pub restarts: u64,
    /// The last thing that happened to it, in words.
    pub last_event: String,
    /// Whether it is meant to run: it was started, and not stopped. One that was given up still is.
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
    /// When it is started again, while it waits for that.
    pub due: Option<Timestamp>,
    /// Its stop, while it is under way.
    pub stopping: Option<StopBound>,
    /// What its latest stop has ended so far.
    pub ended: Vec<StopStep>,
}

/// The health of what does not serve and is about to do so again.
pub const RESTARTING: &str = "restarting";

impl TaskReport {
    /// Whether its process is there or will be.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.is_wanted && self.phase != TaskPhase::Failed
    }

    /// The health of its plugin in a word, as long as nothing is known of a process of it: the log and the status say the same.
    #[must_use]
    pub fn health_without_process(&self) -> &'static str {
        match (self.is_expected(), &self.exit) {
            (true, Some(_)) => RESTARTING,
            (true, None) => Health::Starting.as_str(),
            (false, _) => Health::Gone.as_str(),
        }
    }
}

/// A stop that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StopBound {
    /// When it has come to an end at the latest, all its limits included.
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
    /// When.
    pub at: Timestamp,
}

conversation! {
    /// What is said to the agent.
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
    /// Something about a task is not as it was.
    TaskChanged(TaskReport),
}

/// A task has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskStopped {
    /// What was stopped, in the order in which it ended: `allocation/NAME` is its registration, `process/NAME` its process,
    /// `volumes/NAME` its claims to volumes. `users/NAME` are the users of its volumes that a host that stops has not waited for any longer.
    pub steps: Vec<StopStep>,
}
