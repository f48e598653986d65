//! What the agent knows, and what it has done for it.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use crate::allocations::{
    AllocationSpec, AllocationStopped, AllocationsNews, AllocationsView, PrepareError, TaskContext,
    UnknownAllocation,
};
use crate::instances::{AwaitHealthy, AwaitHealthyError};
use crate::kernel::{AskId, StopMode, StopStep};
use crate::vocabulary::{AllocationId, Attempt, BackoffState, RestartHistory, Timestamp};
use crate::{AskError, FeedItem};

use super::behaviour::AgentAsk;
use super::config::{AllocationConfig, RestartPolicy};
use super::messages::{LastExit, TaskPhase, TaskReport};
use super::replace::Replacement;
use crate::process::ProcessExit;

/// The options of the agent.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The allocations that it runs.
    pub allocations: Vec<AllocationConfig>,
    /// How their tasks are restarted.
    pub restart: RestartPolicy,
    /// What every process has in its environment.
    pub environment: BTreeMap<String, String>,
}

/// The machine that runs the tasks of a configuration.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(super) options: AgentOptions,
    /// In the order of the configuration.
    pub(super) tasks: Vec<Task>,
    pub(super) life: Life,
    /// The replacements that are under way.
    pub(super) replacements: Vec<Replacement>,
    /// The number of the latest one. Starts at random, to differ from those before a rebuild.
    pub(super) replacement: Attempt,
}

/// What the agent as a whole is at.
#[derive(Debug, Clone, Hash)]
pub(super) enum Life {
    /// It finds out which processes live; what is asked of it meanwhile waits.
    Surveying {
        asked: VecDeque<(AskId, AgentAsk)>,
        /// In which way it is to end when it knows them.
        leave: Option<StopMode>,
    },
    /// It runs tasks.
    Serving,
    /// It stops everything, starts nothing, and ends.
    Leaving,
}

/// What one allocation's task is at, what for, and since when.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) config: AllocationConfig,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) last_event: String,
    pub(super) memory: Memory,
    /// Who waits until it has stopped.
    pub(super) askers: Vec<AskId>,
    /// What of it has been stopped so far.
    pub(super) steps: Vec<StopStep>,
    /// When the step that is under way began.
    pub(super) step_began: Timestamp,
}

/// What must not be forgotten when the machine is rebuilt after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Memory {
    /// The last decision; `None` if there was none.
    pub(super) wanted: Option<Wanted>,
    /// The number of its latest start.
    pub(super) attempt: Attempt,
    /// How often it was restarted in all.
    pub(super) restarts: u64,
    /// The end of its last process.
    pub(super) exit: Option<LastExit>,
    pub(super) history: RestartHistory,
    pub(super) backoff: BackoffState,
}

impl Memory {
    /// Begins the next life of the agent: what the last one left runs again.
    pub fn begin_life(&mut self) {
        if self.wanted == Some(Wanted::Left) {
            self.wanted = Some(Wanted::Returning);
        }
    }
}

/// What is to become of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// It is to run.
    Running,
    /// It is to be stopped in order.
    Stopped,
    /// Its registration is to stay for the next start of the host. Its process is to end, unless it survives.
    Left,
    /// It was left by the last life of the agent, and is to run in this one.
    Returning,
    /// It was given up.
    Failed,
}

/// Where a task has got to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Stopped,
    Failed,
    /// Until the timer for its start.
    Waiting,
    /// Until its directories are made.
    Preparing,
    /// Until its process is started.
    Launching,
    Running {
        pid: u32,
    },
    /// Until its plugin is deregistered; its process may live meanwhile.
    Withdrawing {
        pid: Option<u32>,
        then: Goal,
    },
    /// Until its process has ended, as it was asked to.
    Ending {
        pid: u32,
        then: Goal,
    },
    /// Until the allocations know that its process has ended.
    Reporting {
        how: String,
    },
}

/// What comes after the phase that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Goal {
    /// It will have stopped.
    Stop,
    /// It will have failed, for this reason.
    Fail(String),
    /// It will be started again, for this reason.
    Restart(String),
}

/// Its options never change.
impl Hash for Agent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { options: _, tasks, life, replacements, replacement } = self;
        (tasks, life, replacements, replacement).hash(state);
    }
}

/// Its configuration never changes.
impl Hash for Task {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { config: _, phase, since, last_event, memory, askers, steps, step_began } = self;
        (phase, since, last_event, memory, askers, steps, step_began).hash(state);
    }
}

impl Phase {
    /// The phase as it is published.
    pub(super) const fn told(&self) -> TaskPhase {
        match self {
            Self::Stopped => TaskPhase::Stopped,
            Self::Failed => TaskPhase::Failed,
            Self::Waiting | Self::Reporting { .. } => TaskPhase::Waiting,
            Self::Preparing | Self::Launching => TaskPhase::Starting,
            Self::Running { .. } => TaskPhase::Running,
            Self::Withdrawing { .. } | Self::Ending { .. } => TaskPhase::Stopping,
        }
    }

    /// The process, if there is one.
    pub(super) const fn pid(&self) -> Option<u32> {
        match self {
            Self::Running { pid } | Self::Ending { pid, .. } => Some(*pid),
            Self::Withdrawing { pid, .. } => *pid,
            Self::Stopped
            | Self::Failed
            | Self::Waiting
            | Self::Preparing
            | Self::Launching
            | Self::Reporting { .. } => None,
        }
    }

    /// Whether nothing is under way.
    pub(super) const fn is_quiet(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed)
    }
}

impl Task {
    /// Whether it is meant to run; without a decision it is if its configuration starts it.
    fn is_wanted(&self) -> bool {
        match self.memory.wanted {
            Some(Wanted::Running | Wanted::Returning | Wanted::Failed) => true,
            Some(Wanted::Stopped | Wanted::Left) => false,
            None => self.config.start,
        }
    }

    pub(super) fn report(&self) -> TaskReport {
        TaskReport {
            allocation: self.config.name.clone(),
            plugin: self.config.plugin.clone(),
            role: self.config.role,
            phase: self.phase.told(),
            since: self.since,
            pid: self.phase.pid(),
            restarts: self.memory.restarts,
            last_event: self.last_event.clone(),
            is_wanted: self.is_wanted(),
            attempt: self.memory.attempt,
            restart_when: self.config.restart_when,
            probing: self.config.probing,
            survives: self.config.survives,
            exit: self.memory.exit.clone(),
        }
    }
}

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
    /// Starts a process.
    Launch(LaunchOrder),
    /// Says that the process of an allocation runs.
    Announce(AllocationId),
    /// Has an allocation deregistered and its directories removed.
    Withdraw(AllocationId),
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
    /// The process was started with this PID, or was not, for this reason.
    Launched(Result<u32, String>),
    /// The allocations know that the process runs.
    Announced(Answered<Result<(), UnknownAllocation>>),
    /// The allocation is deregistered.
    Withdrawn(Answered<Result<AllocationStopped, UnknownAllocation>>),
    /// The allocation has been healthy for a while, or why not.
    AwaitedHealthy(Answered<Result<(), AwaitHealthyError>>),
    /// The process was asked to end.
    EndAsked,
    /// The allocations know that the process has ended.
    Reported(Answered<Result<(), UnknownAllocation>>),
}

/// What the agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentTimer {
    /// The time to start a task again.
    Start(AllocationId),
    /// The retry of a message that was not answered.
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
