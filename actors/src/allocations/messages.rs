//! What a host says of the workloads that carry its plugins, and what it is told and asked.

use super::state::Allocations;
use crate::allocation::AllocationNews;
pub use crate::allocation::{
    AllocationPhase, AllocationSpec, AllocationStatus, AllocationStopped, Isolation, Mount, PrepareError,
    Propagation, TaskContext, TaskEvent, TaskEventKind,
};
use crate::conversation;
use crate::shell::Vitals;
use crate::vocabulary::{AllocationId, Attempt, TaskName};

/// Asks, before every start of the task, for what it needs. The first one brings the allocation's supervisor into being; a
/// dead socket of a former run is removed, a live one is refused (SEC-02).
///
/// When the first one fails, the allocation is let go of, unless that is since its supervisor was given up after too many crashes:
/// then it stays known until it is prepared again or stopped. If its task was said to have started without waiting for the answer, it
/// is seen out as by [`StopAllocation`], since it may be registered by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareAllocation {
    /// The workload.
    pub spec: AllocationSpec,
}

/// Asks the same for a task that outlived its host: after a restart of the host in detached mode it runs already, so whoever
/// listens on its socket is welcome. [`TaskStarted`] follows as after a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptAllocation {
    /// The workload.
    pub spec: AllocationSpec,
}

/// Says that the task's process has started, or runs already after a restart of the host. The supervisor now waits for the
/// socket and the first ready answer (A2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStarted {
    /// Which allocation; it was prepared before.
    pub allocation: AllocationId,
}

/// Says that the task's process has ended. Its registration leaves at once; a restart begins with [`PrepareAllocation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskExited {
    /// Which allocation.
    pub allocation: AllocationId,
    /// How it ended, for the events: "exit code 1", "signal 9".
    pub how: String,
}

/// Ends an allocation's supervisor in order (A4): deregister, wait for calls in flight, then remove the socket directory.
/// Stop routing first, then the process: send this, wait for its answer, then stop the task; or the other way round when the
/// task is gone already. The socket stays until the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopAllocation {
    /// Which allocation.
    pub allocation: AllocationId,
}

/// The allocation is not known; nothing was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("allocation {allocation} is not known here; prepare it first")]
pub struct UnknownAllocation {
    /// Which allocation.
    pub allocation: AllocationId,
}

/// Asks for all allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListAllocations;

/// Asks for all allocations as their owner sees them, for the tree of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescribeAllocations;

/// One allocation as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationDescription {
    /// What its supervisor told last.
    pub status: AllocationStatus,
    /// How often its supervisor crashed or was ended by force.
    pub crashes: u64,
    /// Why its supervisor was given up after too many crashes, if it was. The next message for the allocation starts
    /// another one.
    pub given_up: Option<String>,
    /// What can be seen of its supervisor; `None` while there is none.
    pub vitals: Option<Vitals>,
}

/// Says what a supervisor tells. Said by the supervisors themselves; from anyone else it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationReported {
    /// Of which allocation.
    pub allocation: AllocationId,
    /// Which life of its supervisor: what an earlier one says late changes nothing.
    pub life: Attempt,
    /// What it tells.
    pub news: AllocationNews,
}

conversation! {
    /// What is said to the owner of the allocations.
    #[derive(Clone)]
    pub enum AllocationsAsk -> AllocationsAnswer for Allocations {
        PrepareAllocation => Result<TaskContext, PrepareError>,
        AdoptAllocation => Result<TaskContext, PrepareError>,
        TaskStarted => Result<(), UnknownAllocation>,
        TaskExited => Result<(), UnknownAllocation>,
        StopAllocation => Result<AllocationStopped, UnknownAllocation>,
        ListAllocations => Vec<AllocationStatus>,
        DescribeAllocations => Vec<AllocationDescription>,
        AllocationReported => (),
    }
}

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationsNews {
    /// An allocation came, or its phase or health changed.
    Changed(AllocationStatus),
    /// An allocation is gone.
    Gone(AllocationId),
    /// An event of a task.
    Task(TaskEvent),
    /// The host is asked to restart a task, once per start (A2, HLT-02). Whether and when is the host's restart policy.
    RestartRequested {
        /// Which allocation.
        allocation: AllocationId,
        /// Which task.
        task: TaskName,
        /// Why.
        reason: String,
    },
}

/// Everything subscribers may know of the allocations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllocationsView {
    /// All of them, by id.
    pub allocations: Vec<AllocationStatus>,
}
