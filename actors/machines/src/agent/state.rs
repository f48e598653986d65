//! The state of the agent.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use crate::allocations::TaskContext;
use crate::kernel::{AskId, StopMode, StopStep};
use crate::vocabulary::{Attempt, BackoffState, RestartHistory, Timestamp};

use super::config::{AllocationConfig, RestartPolicy};
use super::messages::{AgentAsk, LastExit, TaskPhase, TaskReport};
use super::replace::{Decided, Replacement};
use super::volumes::Claims;

/// The options of the agent.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The allocations that it runs.
    pub allocations: Vec<AllocationConfig>,
    /// How their tasks are restarted.
    pub restart: RestartPolicy,
    /// The environment of every process.
    pub environment: BTreeMap<String, String>,
}

/// The machine that runs the tasks of a configuration.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(super) options: AgentOptions,
    /// In the order of the configuration.
    pub(super) tasks: Vec<Task>,
    pub(super) life: Life,
    /// The replacements in progress.
    pub(super) replacements: Vec<Replacement>,
    /// The number of the latest replacement. Starts at random, to differ from the numbers before a rebuild.
    pub(super) replacement: Attempt,
}

/// The state of the agent as a whole.
#[derive(Debug, Clone, Hash)]
pub(super) enum Life {
    /// It surveys the living processes; requests wait meanwhile.
    Surveying {
        asked: VecDeque<(AskId, AgentAsk)>,
        /// How it is to stop after the survey, if a stop was requested.
        leave: Option<StopMode>,
    },
    /// It runs tasks.
    Serving,
    /// It stops everything in this way, the tasks that use volumes first; it starts nothing, and ends.
    Leaving(Wanted),
}

/// The task of one allocation: its phase, the goal, and when the phase began.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) config: AllocationConfig,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) last_event: String,
    pub(super) memory: Memory,
    /// The callers that wait until it has stopped.
    pub(super) askers: Vec<AskId>,
    /// Whether one of them wants it to stop although volumes of its plugin may be in use.
    pub(super) even_if_used: bool,
    /// The steps that have been stopped so far.
    pub(super) steps: Vec<StopStep>,
    /// When the step in progress began.
    pub(super) step_began: Timestamp,
}

/// The data that survives a rebuild of the machine after a crash.
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
    /// The pauses before it is started again on a disk that is sick.
    pub(super) sick_disk: BackoffState,
    pub(super) claims: Claims,
    /// The replacement for which it is being stopped.
    pub(super) replacement: Option<Decided>,
    pub(super) unended: Unended,
}

/// The processes of a task that do not end, not even by SIGKILL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Unended {
    /// The process of each such start.
    pub(super) processes: BTreeMap<Attempt, u32>,
    /// Whether the task waits for their end before it is started again.
    pub(super) is_awaited: bool,
}

impl Memory {
    /// Begins the next life of the agent: the tasks that the last one left run again. Callers of its replacements have received an error.
    pub fn begin_life(&mut self) {
        self.replacement = None;
        if self.wanted == Some(Wanted::Left) {
            self.wanted = Some(Wanted::Returning);
        }
    }
}

/// The decision about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// It is to run.
    Running,
    /// It is to be stopped in order.
    Stopped,
    /// Its registration is to stay for the next start of the host. Its process is to end, unless it survives.
    Left,
    /// It was left by the last life of the agent, and is to run in this life.
    Returning,
    /// It was given up.
    Failed,
}

/// The phase of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Stopped,
    Failed,
    /// Until the timer for its start, or without a timer until the process of an earlier start has ended.
    Waiting {
        due: Option<Timestamp>,
    },
    /// Until its directories are made.
    Preparing,
    /// Until its volumes are claimed; then its process is started with this context.
    Claiming {
        context: TaskContext,
    },
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
    /// Until its process, which was asked to end, has ended.
    Ending {
        pid: u32,
        then: Goal,
    },
    /// Until the allocations know that its process has ended.
    Reporting {
        how: String,
    },
    /// Until its volumes are released, or until this time.
    Releasing {
        then: Goal,
        until: Timestamp,
    },
}

/// The goal after the phase in progress.
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
        let Self { config: _, phase, since, last_event, memory, askers, even_if_used, steps, step_began } =
            self;
        (phase, since, last_event, memory, askers, even_if_used, steps, step_began).hash(state);
    }
}

impl Phase {
    /// The phase as it is published.
    pub(super) const fn told(&self) -> TaskPhase {
        match self {
            Self::Stopped => TaskPhase::Stopped,
            Self::Failed => TaskPhase::Failed,
            Self::Waiting { .. } | Self::Reporting { .. } => TaskPhase::Waiting,
            Self::Preparing | Self::Claiming { .. } | Self::Launching => TaskPhase::Starting,
            Self::Running { .. } => TaskPhase::Running,
            Self::Withdrawing { .. } | Self::Ending { .. } | Self::Releasing { .. } => TaskPhase::Stopping,
        }
    }

    /// The process, if there is one.
    pub(super) const fn pid(&self) -> Option<u32> {
        match self {
            Self::Running { pid } | Self::Ending { pid, .. } => Some(*pid),
            Self::Withdrawing { pid, .. } => *pid,
            Self::Stopped
            | Self::Failed
            | Self::Waiting { .. }
            | Self::Preparing
            | Self::Claiming { .. }
            | Self::Launching
            | Self::Reporting { .. }
            | Self::Releasing { .. } => None,
        }
    }

    /// When it is started again, if that is known.
    const fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { due } => *due,
            Self::Stopped
            | Self::Failed
            | Self::Preparing
            | Self::Claiming { .. }
            | Self::Launching
            | Self::Running { .. }
            | Self::Withdrawing { .. }
            | Self::Ending { .. }
            | Self::Reporting { .. }
            | Self::Releasing { .. } => None,
        }
    }

    /// Whether nothing is in progress.
    pub(super) const fn is_quiet(&self) -> bool {
        matches!(self, Self::Stopped | Self::Failed)
    }
}

impl Task {
    /// Whether it is meant to run. Without a decision it is, if its configuration starts it.
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
            due: self.phase.due(),
            stopping: self.stop_under_way(),
            ended: self.steps.clone(),
        }
    }
}
