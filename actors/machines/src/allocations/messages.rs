//! The messages and the news about plugin workloads, between a host and their owner.

use crate::allocation::AllocationNews;
pub use crate::allocation::{
    AllocationPhase, AllocationSpec, AllocationStatus, AllocationStopped, Isolation, Mount, PrepareError,
    Propagation, RestartWhen, TaskContext, TaskEvent, TaskEventKind,
};
use crate::conversation;
use crate::kernel::Vitals;
use crate::vocabulary::{AllocationId, Attempt, TaskName};
use crate::volumes::AwaitUnusedError;

/// Prepares the task before each of its starts. The first preparation starts the allocation's supervisor; a dead socket of a former
/// run is removed, a live socket is refused (SEC-02).
///
/// If the first preparation fails, the allocation is removed, unless its supervisor was given up after too many crashes: then it
/// stays known until it is prepared again or stopped. If its task was reported as started before the answer, it is stopped
/// as by [`StopAllocation`], since it may be registered by then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PrepareAllocation {
    /// The workload.
    pub spec: AllocationSpec,
}

/// Prepares a task that has survived its host: after a restart of the host in detached mode it runs already, so a listener
/// on its socket is welcome. [`TaskStarted`] follows as after a start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AdoptAllocation {
    /// The workload.
    pub spec: AllocationSpec,
}

/// The task's process has started, or runs already after a restart of the host. The supervisor now waits for the socket and
/// the first ready answer (A2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskStarted {
    /// The allocation; it must be prepared.
    pub allocation: AllocationId,
}

/// The task's process has ended. Its registration is removed at once; a restart begins with [`PrepareAllocation`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskExited {
    /// The allocation.
    pub allocation: AllocationId,
    /// How it ended, for the events: "exit code 1", "signal 9".
    pub how: String,
}

/// Ends an allocation's supervisor gracefully (A4): deregister, wait for calls in flight, then remove the socket directory.
/// Stop routing before the process: send this, wait for its answer, then stop the task; or in reverse order if the task has
/// ended already. The socket stays until the answer.
///
/// A registered allocation is not stopped while volumes of its plugin are in use on this node (V13): the answer waits for their
/// release, and then refuses the stop. It does not wait if another allocation of the plugin is registered and healthy, or if the
/// task has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StopAllocation {
    /// The allocation.
    pub allocation: AllocationId,
    /// Whether it is stopped although volumes of its plugin may be in use, for example because its process ends anyway. Steps that
    /// are up can then be undone only when the plugin is back.
    pub even_if_used: bool,
}

/// Why an allocation is not stopped. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StopAllocationError {
    /// It is not known.
    #[error(transparent)]
    Unknown(#[from] UnknownAllocation),
    /// Volumes of its plugin are in use, and no other allocation serves the plugin instead (V13).
    #[error(
        "allocation {allocation} was not stopped: {in_use}, or replace it with another allocation of the plugin, or stop it \
        even if it is used"
    )]
    Used {
        /// The allocation.
        allocation: AllocationId,
        /// The volumes, and their users.
        in_use: AwaitUnusedError,
    },
    /// It is not known whether volumes of its plugin are in use.
    #[error(
        "allocation {allocation} was not stopped: cannot tell whether volumes use it: {reason}; try again later, or stop it \
        even if it is used"
    )]
    Unclear {
        /// The allocation.
        allocation: AllocationId,
        /// The reason.
        reason: String,
    },
}

/// The allocation is not known; nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("allocation {allocation} is not known here; prepare it first")]
pub struct UnknownAllocation {
    /// The allocation.
    pub allocation: AllocationId,
}

/// Lists all allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListAllocations;

/// Queries all allocations as their owner sees them, for the tree of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribeAllocations;

/// One allocation as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationDescription {
    /// The last status of its supervisor.
    pub status: AllocationStatus,
    /// How often its supervisor crashed or was killed.
    pub crashes: u64,
    /// Why its supervisor was given up after too many crashes, if so. The next message for the allocation restarts it.
    pub given_up: Option<String>,
    /// The counters of its supervisor; `None` while there is none.
    pub vitals: Option<Vitals>,
}

/// The news of a supervisor for its owner. Without effect from any other sender.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllocationReported {
    /// The allocation.
    pub allocation: AllocationId,
    /// The life of its supervisor; late news of an earlier life are ignored.
    pub life: Attempt,
    /// The news.
    pub news: AllocationNews,
}

conversation! {
    /// The messages of the owner of the allocations.
    #[derive(Clone, Hash)]
    pub enum AllocationsAsk -> #[derive(Hash)] AllocationsAnswer {
        PrepareAllocation => Result<TaskContext, PrepareError>,
        AdoptAllocation => Result<TaskContext, PrepareError>,
        TaskStarted => Result<(), UnknownAllocation>,
        TaskExited => Result<(), UnknownAllocation>,
        StopAllocation => Result<AllocationStopped, StopAllocationError>,
        ListAllocations => Vec<AllocationStatus>,
        DescribeAllocations => Vec<AllocationDescription>,
        AllocationReported => (),
    }
}

/// The news of the owner of the allocations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AllocationsNews {
    /// An allocation was added, or its phase or health changed.
    Changed(AllocationStatus),
    /// An allocation was removed.
    Gone(AllocationId),
    /// A preparation was refused, and there is no such allocation.
    Refused {
        /// The allocation.
        allocation: AllocationId,
        /// The reason.
        reason: String,
    },
    /// An event of a task.
    Task(TaskEvent),
    /// The host is asked to restart a task, once per start (A2, HLT-02). The host's restart policy decides.
    RestartRequested {
        /// The allocation.
        allocation: AllocationId,
        /// The task.
        task: TaskName,
        /// The reason.
        reason: String,
    },
}

/// The view that subscribers get as snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AllocationsView {
    /// All allocations, ordered by id.
    pub allocations: Vec<AllocationStatus>,
}
