//! The calls that the agent makes beside its mailbox, and their results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::allocations::{
    AllocationSpec, AllocationStopped, AllocationsNews, AllocationsView, PrepareError, StopAllocationError,
    TaskContext, UnknownAllocation,
};
use crate::instances::{AwaitHealthy, AwaitHealthyError};
use crate::process::{LaunchError, ProcessExit};
use crate::vocabulary::{AllocationId, Attempt, Timestamp};
use crate::volume::{ObservedEnd, VolumeKey};
use crate::{AskError, FeedItem};

use super::config::AllocationVolume;

/// A process to be started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaunchOrder {
    /// The allocation that it belongs to.
    pub allocation: AllocationId,
    /// The number of this start.
    pub attempt: Attempt,
    /// The program.
    pub program: PathBuf,
    /// Its arguments, with the endpoint filled in.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Whether it survives the host.
    pub survives: bool,
    /// How long it may take to end before it is killed.
    pub stop_grace: Duration,
}

/// A call that the agent makes beside its mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentCall {
    /// Finds the living processes.
    Survey,
    /// Waits until processes have ended.
    AwaitEndings,
    /// Waits for news of the allocations.
    Follow {
        /// Whether to begin with a snapshot.
        afresh: bool,
    },
    /// Asks to prepare an allocation.
    Prepare(AllocationSpec),
    /// Asks to adopt an allocation whose process runs.
    Adopt(AllocationSpec),
    /// Claims the volumes of an allocation.
    Claim {
        /// The allocation.
        allocation: AllocationId,
        /// Its volumes.
        volumes: Vec<AllocationVolume>,
        /// How long the claim waits for them.
        within: Duration,
    },
    /// Cancels the claim of an allocation that is in progress: it returns at once.
    CallOff(AllocationId),
    /// Starts a process.
    Launch(LaunchOrder),
    /// Reports that the process of an allocation runs.
    Announce(AllocationId),
    /// Asks to deregister an allocation and to remove its directories.
    Withdraw {
        /// The allocation.
        allocation: AllocationId,
        /// Whether the allocation is withdrawn even while volumes of its plugin are in use (V13).
        even_if_used: bool,
    },
    /// Asks a process to end.
    End {
        /// The allocation of the process.
        allocation: AllocationId,
        /// How long it may take before it is killed.
        grace: Duration,
    },
    /// Waits until an allocation has been healthy for a while.
    AwaitHealthy(AwaitHealthy),
    /// Reports that the process of an allocation has ended.
    Report {
        /// The allocation of the process.
        allocation: AllocationId,
        /// How it ended.
        how: String,
    },
    /// Releases the volumes of an allocation.
    Release {
        /// The allocation.
        allocation: AllocationId,
        /// Why no process uses them (V8).
        observed: ObservedEnd,
        /// How long the release waits for its confirmation.
        within: Duration,
    },
}

impl AgentCall {
    /// The allocation that the call is made for, if any.
    pub(super) fn allocation(&self) -> Option<&AllocationId> {
        match self {
            Self::Survey | Self::AwaitEndings | Self::Follow { .. } | Self::AwaitHealthy(_) => None,
            Self::Prepare(spec) | Self::Adopt(spec) => Some(&spec.allocation),
            Self::Launch(order) => Some(&order.allocation),
            Self::Announce(allocation)
            | Self::CallOff(allocation)
            | Self::Withdraw { allocation, .. }
            | Self::End { allocation, .. }
            | Self::Claim { allocation, .. }
            | Self::Report { allocation, .. }
            | Self::Release { allocation, .. } => Some(allocation),
        }
    }
}

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Living {
    /// The allocation of the process.
    pub allocation: AllocationId,
    /// The number of this start.
    pub attempt: Attempt,
    /// Its number.
    pub pid: u32,
    /// When it was started.
    pub started_at: Timestamp,
}

/// A process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The allocation of the process.
    pub allocation: AllocationId,
    /// The number of this start.
    pub attempt: Attempt,
    /// Its exit status; `None` if it was not observed.
    pub exit: Option<ProcessExit>,
    /// How it ended, in words.
    pub how: String,
}

/// Why the volumes of an allocation are not claimed. Some of them may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{reason}")]
pub struct ClaimTrouble {
    /// The volume that was refused, and why.
    pub reason: String,
    /// Whether the same claim may succeed later.
    pub is_transient: bool,
}

/// Why it is not confirmed that the volumes of an allocation are released.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{reason}")]
pub struct Unreleased {
    /// For each volume, the condition that it waits for, or why it was not released.
    pub reason: String,
    /// Whether every release is recorded, so that it continues without a retry.
    pub goes_on: bool,
}

/// Why no process is known to run after a launch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{reason}")]
pub struct LaunchTrouble {
    /// The step that failed, and the reason.
    pub reason: String,
    /// Whether a process of the allocation may live: it is unknown whether this launch has started a process, or a process of an earlier
    /// launch has its name.
    pub may_live: bool,
    /// Whether the launch was refused because of the disk. That is not a fault of the allocation.
    pub is_of_disk: bool,
}

impl LaunchTrouble {
    /// Certainly nothing was started.
    #[must_use]
    pub fn not_started(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_live: false, is_of_disk: false }
    }
}

/// The owner of processes has answered: no process of a failed launch is left, unless a process existed before.
impl From<LaunchError> for LaunchTrouble {
    fn from(error: LaunchError) -> Self {
        let may_live = matches!(error, LaunchError::Occupied { .. });
        Self { reason: error.to_string(), may_live, is_of_disk: false }
    }
}

/// The owner of processes has not answered. A message that was not accepted or had no effect has started nothing.
impl From<AskError> for LaunchTrouble {
    fn from(error: AskError) -> Self {
        let may_live = match error {
            AskError::Busy { .. } | AskError::Crashed { .. } => false,
            AskError::NotRunning { .. } | AskError::NotDurable { .. } | AskError::NotWritten { .. } => true,
        };
        let is_of_disk = matches!(error, AskError::NotDurable { .. });
        Self { reason: error.to_string(), may_live, is_of_disk }
    }
}

/// The answer of the allocations, or the reason why there is none.
pub type Answered<T> = Result<T, AskError>;

/// The result of a call.
#[derive(Debug)]
pub enum AgentOutcome {
    /// The living processes.
    Surveyed(Vec<Living>),
    /// The processes that have ended, in this order.
    Endings(Vec<Ended>),
    /// The news of the allocations.
    Followed(Answered<Vec<FeedItem<AllocationsNews, AllocationsView>>>),
    /// The allocation is prepared, or cannot be.
    Prepared(Answered<Result<TaskContext, PrepareError>>),
    /// The allocation is adopted, or cannot be.
    Adopted(Answered<Result<TaskContext, PrepareError>>),
    /// The volumes are claimed, each with its proven path, or they are not.
    Claimed(Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>),
    /// The claim in progress, if there was one, returns.
    CalledOff,
    /// The process was started with this PID, or it is not known whether it runs, for this reason.
    Launched(Result<u32, LaunchTrouble>),
    /// The allocations know that the process runs.
    Announced(Answered<Result<(), UnknownAllocation>>),
    /// The allocation is deregistered, or is not.
    Withdrawn(Answered<Result<AllocationStopped, StopAllocationError>>),
    /// The allocation has been healthy for a while, or the reason why not.
    AwaitedHealthy(Answered<Result<(), AwaitHealthyError>>),
    /// The process was asked to end.
    EndAsked,
    /// The allocations know that the process has ended.
    Reported(Answered<Result<(), UnknownAllocation>>),
    /// The volumes are released, or the reason why that is not confirmed.
    Released(Result<(), Unreleased>),
}

/// The timers of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentTimer {
    /// The time to start a task again.
    Start(AllocationId),
    /// The retry of a message that was not answered, or of a release that was not confirmed or not recorded.
    Retry(AllocationId),
    /// The deadline by which a killed process must have ended.
    GiveUp(AllocationId),
    /// The time to ask again for the health that this replacement depends on.
    AskForHealth(Attempt),
    /// The time to follow the allocations again.
    Follow,
    /// The time to wait for endings again.
    AwaitEndings,
}
