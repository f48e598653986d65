//! What the agent has done beside its mailbox, and what came of it.

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
    /// For which allocation.
    pub allocation: AllocationId,
    /// Which start of it this is.
    pub attempt: Attempt,
    /// The program.
    pub program: PathBuf,
    /// Its arguments, with the endpoint put in.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Whether it survives the host.
    pub survives: bool,
    /// How long it may take to end before it is killed.
    pub stop_grace: Duration,
}

/// What the agent has done beside its mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentCall {
    /// Finds the processes that live.
    Survey,
    /// Waits until processes have ended.
    AwaitEndings,
    /// Waits for what the allocations say.
    Follow {
        /// Whether to begin with a snapshot.
        afresh: bool,
    },
    /// Has an allocation prepared.
    Prepare(AllocationSpec),
    /// Has an allocation adopted whose process runs.
    Adopt(AllocationSpec),
    /// Claims the volumes of an allocation.
    Claim {
        /// Which allocation.
        allocation: AllocationId,
        /// Its volumes.
        volumes: Vec<AllocationVolume>,
        /// How long the claim waits for them.
        within: Duration,
    },
    /// Calls off the claim that is under way for an allocation: it comes back at once.
    CallOff(AllocationId),
    /// Starts a process.
    Launch(LaunchOrder),
    /// Says that the process of an allocation runs.
    Announce(AllocationId),
    /// Has an allocation deregistered and its directories removed.
    Withdraw {
        /// Which allocation.
        allocation: AllocationId,
        /// Whether also while volumes of its plugin are in use (V13).
        even_if_used: bool,
    },
    /// Asks a process to end.
    End {
        /// Whose process.
        allocation: AllocationId,
        /// How long it may take before it is killed.
        grace: Duration,
    },
    /// Waits until an allocation has been healthy for a while.
    AwaitHealthy(AwaitHealthy),
    /// Says that the process of an allocation has ended.
    Report {
        /// Whose process.
        allocation: AllocationId,
        /// How it ended.
        how: String,
    },
    /// Releases the volumes of an allocation.
    Release {
        /// Which allocation.
        allocation: AllocationId,
        /// Why no process uses them (V8).
        observed: ObservedEnd,
        /// How long the release waits for its confirmation.
        within: Duration,
    },
}

impl AgentCall {
    /// Which allocation it is made for, if for one.
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

/// A process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Living {
    /// Whose process.
    pub allocation: AllocationId,
    /// Which start of it this is.
    pub attempt: Attempt,
    /// Its number.
    pub pid: u32,
    /// When it was started.
    pub started_at: Timestamp,
}

/// A process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Whose process.
    pub allocation: AllocationId,
    /// Which start of it this was.
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
    /// What each volume waits for, or why it was not released.
    pub reason: String,
    /// Whether every release is recorded, so that it goes on without a retry.
    pub goes_on: bool,
}

/// Why no process is known to run after a launch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{reason}")]
pub struct LaunchTrouble {
    /// What was tried, and why it failed.
    pub reason: String,
    /// Whether a process of the allocation may live: it is unknown whether this launch has started one, or one of an earlier launch has
    /// its name.
    pub may_live: bool,
    /// Whether the disk did not let it be launched. That is no fault of the allocation.
    pub is_of_disk: bool,
}

impl LaunchTrouble {
    /// Nothing was started, for certain.
    #[must_use]
    pub fn not_started(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_live: false, is_of_disk: false }
    }
}

/// The owner of processes has answered: of what it did not launch nothing is left, unless there was one before.
impl From<LaunchError> for LaunchTrouble {
    fn from(error: LaunchError) -> Self {
        let may_live = matches!(error, LaunchError::Occupied { .. });
        Self { reason: error.to_string(), may_live, is_of_disk: false }
    }
}

/// The owner of processes has not answered. What it did not accept, or what had no effect, has started nothing.
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

/// The answer of the allocations, or why there is none.
pub type Answered<T> = Result<T, AskError>;

/// What came of a call.
#[derive(Debug)]
pub enum AgentOutcome {
    /// These live.
    Surveyed(Vec<Living>),
    /// These have ended, in this order.
    Endings(Vec<Ended>),
    /// The allocations said this.
    Followed(Answered<Vec<FeedItem<AllocationsNews, AllocationsView>>>),
    /// The allocation is prepared, or cannot be.
    Prepared(Answered<Result<TaskContext, PrepareError>>),
    /// The allocation is adopted, or cannot be.
    Adopted(Answered<Result<TaskContext, PrepareError>>),
    /// The volumes are claimed, each with its proven path, or are not.
    Claimed(Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>),
    /// The claim under way, if there was one, comes back.
    CalledOff,
    /// The process was started with this PID, or it is not known to run, for this reason.
    Launched(Result<u32, LaunchTrouble>),
    /// The allocations know that the process runs.
    Announced(Answered<Result<(), UnknownAllocation>>),
    /// The allocation is deregistered, or is not.
    Withdrawn(Answered<Result<AllocationStopped, StopAllocationError>>),
    /// The allocation has been healthy for a while, or why not.
    AwaitedHealthy(Answered<Result<(), AwaitHealthyError>>),
    /// The process was asked to end.
    EndAsked,
    /// The allocations know that the process has ended.
    Reported(Answered<Result<(), UnknownAllocation>>),
    /// The volumes are released, or why that is not confirmed.
    Released(Result<(), Unreleased>),
}

/// What the agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentTimer {
    /// The time to start a task again.
    Start(AllocationId),
    /// The retry of a message that was not answered, or of a release that was not confirmed or not recorded.
    Retry(AllocationId),
    /// The time at which a process that was killed must have ended.
    GiveUp(AllocationId),
    /// The time to ask again for the health that this replacement depends on.
    AskForHealth(Attempt),
    /// The time to follow the allocations again.
    Follow,
    /// The time to wait for endings again.
    AwaitEndings,
}
