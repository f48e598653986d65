//! The effects of the tasks: writes, calls and timers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::config::TaskConfig;
use super::handle::KeptHandle;
use super::kept::KeptDriver;
use super::log::EventLog;
use super::state::{DurableState, RunEvidence};
use crate::driver::{EventPosition, TaskEventItem, TaskExit, TaskId};
use crate::leftovers::Traces;
use crate::vocabulary::{AllocationId, DriverName};

/// One atomic write.
#[derive(Debug, Clone, PartialEq)]
pub enum TasksChange {
    /// The durable state of a task.
    State(AllocationId, Box<DurableState>),
    /// The events of its driver, with the position up to which they were read.
    Log(AllocationId, Box<EventLog>),
    /// A task is stopped only because the actor leaves: its next incarnation in this run of the host starts it again. Not on disk, since
    /// the next run of the host decides by its configuration.
    Returns(AllocationId),
    /// Removes everything about a task that is no longer configured.
    Forget(AllocationId),
    /// The settings with which a driver is run.
    KeepDriver(DriverName, Box<KeptDriver>),
    /// Removes everything about a driver that is no longer configured.
    ForgetDriver(DriverName),
}

/// The state on disk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TasksImage {
    /// The durable states.
    pub states: BTreeMap<AllocationId, DurableState>,
    /// The events of drivers.
    pub logs: BTreeMap<AllocationId, EventLog>,
    /// How drivers were run.
    pub drivers: BTreeMap<DriverName, KeptDriver>,
    /// The tasks that the last incarnation of the actor stopped only because it had to leave.
    pub returning: BTreeSet<AllocationId>,
    /// Whether an earlier run of the host wrote this state.
    pub is_of_earlier_run: bool,
}

/// A run of a task, as calls refer to it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunKey {
    /// The task.
    pub name: AllocationId,
    /// The driver.
    pub driver: DriverName,
    /// The driver's id of the run.
    pub id: TaskId,
}

/// The calls that run beside the mailbox.
#[derive(Debug, Clone, PartialEq)]
pub enum TasksCall {
    /// Resolves the plugin of a driver and adds the driver to the host.
    SetUp(DriverName),
    /// Adds a driver that is no longer configured to the host, with its former settings, so that its tasks can be stopped.
    SetUpUnconfigured(DriverName, Box<KeptDriver>),
    /// Ends a driver that is no longer configured, even if another run of the host started its process.
    Dismiss {
        /// The driver.
        driver: DriverName,
        /// Its tasks that could not be ended.
        left: Vec<AllocationId>,
    },
    /// Subscribes to the events of a task. Events that were delivered but not taken are delivered again.
    Watch {
        /// The task.
        name: AllocationId,
        /// The driver.
        driver: DriverName,
        /// The position of the last event taken.
        after: Option<EventPosition>,
        /// The number of items taken so far.
        taken: u64,
    },
    /// Waits for events of a task after those that were taken.
    ReadEvents {
        /// The task.
        name: AllocationId,
        /// The number of items taken so far; they are not delivered again.
        taken: u64,
    },
    /// Unsubscribes from the events of a task, and removes the task's resources.
    Forget {
        /// The task.
        name: AllocationId,
        /// The driver whose events are read, if any.
        driver: Option<DriverName>,
    },
    /// Starts a run.
    Start(RunKey, Arc<TaskConfig>),
    /// Calls off a start that still waits for its driver. A start that was sent continues.
    CallOff(RunKey),
    /// Waits until everything that was written before is on disk.
    AwaitDisk {
        /// The run that waits.
        run: RunKey,
        /// Distinguishes the waits of a task.
        number: u64,
    },
    /// Waits until a start is sent to its driver, or no longer waits for it.
    AwaitSent(RunKey),
    /// Recovers a run after a restart of the driver or of the host. A stored handle lacks the environment of its task, which
    /// is in the configuration.
    Recover(RunKey, Box<KeptHandle>, Arc<TaskConfig>),
    /// Queries the state of a run.
    Inspect(RunKey),
    /// Replaces the process of the driver, unless it was replaced after the start of the run was sent: a process that never
    /// received the start cannot have one in progress.
    ReplaceDriver(RunKey),
    /// Waits for the end of a run.
    Wait(RunKey),
    /// Stops a run.
    Stop {
        /// The run.
        run: RunKey,
        /// The grace period before it is killed.
        grace: Duration,
        /// The signal; empty for the driver's default (T145).
        signal: String,
    },
    /// Destroys a run: kills it if it is not over, and makes the driver forget it.
    Destroy(RunKey),
    /// Locates the processes of a run, while its driver still has it (TH052).
    Locate {
        /// The run.
        run: RunKey,
        /// The driver's handle of the run.
        handle: Option<Box<KeptHandle>>,
        /// The evidence about its processes so far.
        evidence: Box<RunEvidence>,
    },
    /// Kills whatever is left of a run, found by evidence that does not come from its driver (TH040, TH041).
    Sweep {
        /// The run.
        run: RunKey,
        /// The driver's handle of the run, if it was started.
        handle: Option<Box<KeptHandle>>,
        /// The evidence about its processes.
        evidence: Box<RunEvidence>,
        /// The driver's answer.
        driver: Heard,
    },
}

impl TasksCall {
    /// The run that it starts, queries or ends; `None` for other calls.
    #[must_use]
    pub const fn run(&self) -> Option<&RunKey> {
        match self {
            Self::Start(run, _)
            | Self::Recover(run, ..)
            | Self::Inspect(run)
            | Self::ReplaceDriver(run)
            | Self::Wait(run)
            | Self::Stop { run, .. }
            | Self::Destroy(run)
            | Self::Sweep { run, .. } => Some(run),
            Self::SetUp(_)
            | Self::SetUpUnconfigured(..)
            | Self::Dismiss { .. }
            | Self::Watch { .. }
            | Self::ReadEvents { .. }
            | Self::Forget { .. }
            | Self::CallOff(_)
            | Self::AwaitDisk { .. }
            | Self::AwaitSent(_)
            | Self::Locate { .. } => None,
        }
    }
}

/// The answer of the driver of a swept run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It reported how the run ended, and is certain.
    End,
    /// It answered, but its answer does not prove the end of the run.
    Answer,
    /// It did not answer, and can no longer begin anything: it started the run before.
    Nothing,
    /// It received the start and did not answer: it may still begin the run.
    NothingOfStart,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Trouble {
    /// Whether a retry may succeed.
    pub is_transient: bool,
    /// Whether the driver is absent, according to the last request.
    pub is_absent: bool,
    /// The attempted operation, its object, and the error.
    pub reason: String,
}

impl Trouble {
    /// A transient error.
    #[must_use]
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { is_transient: true, is_absent: false, reason: reason.into() }
    }

    /// The driver is absent.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { is_absent: true, ..Self::passing(reason) }
    }

    /// A permanent error.
    #[must_use]
    pub fn lasting(reason: impl Into<String>) -> Self {
        Self { is_transient: false, is_absent: false, reason: reason.into() }
    }
}

/// The result of a sweep: nothing is left of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Whether processes were left and had to be killed.
    pub has_killed: bool,
    /// The findings in words.
    pub words: String,
    /// Why its volumes are not released yet, if they are not. Their release continues without the task.
    pub unreleased: Option<String>,
}

/// The result of a start.
#[derive(Debug, Clone, PartialEq)]
pub enum Started {
    /// It runs.
    Runs(Box<KeptHandle>),
    /// The driver did not receive the start.
    NotAsked(Trouble),
    /// The driver reports that it does not run, and that a retry may help. Remains of this run have to be removed first.
    Retry(String),
    /// The driver refuses, but this does not prove that nothing was started; a retry does not help.
    Refused(String),
    /// The driver reports that it does not run and never will.
    Fatal(String),
    /// The driver received the start, but its result is unknown.
    Unclear(Trouble),
    /// The driver did not receive the start, and it is not recorded that the volumes of the run are released: it is not over yet.
    Unreleased(Trouble),
}

/// A driver's report about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It runs, or the driver does not know.
    Running,
    /// It has ended.
    Exited(TaskExit),
    /// The driver does not know the run.
    Nothing {
        /// The driver's answer.
        words: String,
        /// Whether this proves that no start is under way: the driver has answered it, or this process never received it.
        is_proof: bool,
    },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum TasksOutcome {
    /// Whether the driver was added to the host.
    SetUp(Result<(), Trouble>),
    /// Whether the driver has ended.
    Dismissed(Result<(), Trouble>),
    /// Whether the subscription succeeded.
    Watched(Result<(), Trouble>),
    /// The next items after those that were taken; empty if no more will come.
    Events(Vec<TaskEventItem>),
    /// The task is forgotten: its events are no longer read, and its resources are removed.
    Forgotten,
    /// The earlier writes are on disk.
    OnDisk,
    /// Whether the start was sent to its driver.
    Sent(bool),
    /// The result of a start.
    Started(Started),
    /// Whether the driver has recovered it.
    Recovered(Result<(), Trouble>),
    /// The driver's report.
    Inspected(Result<Found, Trouble>),
    /// Whether the driver's process is being replaced, or was replaced before.
    DriverReplaced(Result<(), Trouble>),
    /// How it ended.
    Waited(Result<Waited, Trouble>),
    /// Whether the driver has stopped it.
    StopTaken(Result<(), Trouble>),
    /// Whether the driver has forgotten it.
    Destroyed(Result<(), Trouble>),
    /// The traces of its processes; empty if its processes could not be distinguished from others.
    Located(Result<Traces, Trouble>),
    /// Whether nothing is left of it.
    Swept(Result<Swept, Trouble>),
}

/// The result of the wait for the end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited {
    /// How it ended, according to the wait. An error of the wait is [`TaskEnd::Unknown`](crate::driver::TaskEnd).
    pub exit: TaskExit,
    /// The driver's record of the end, if the wait does not know how it ended.
    pub recorded: Option<TaskExit>,
}

impl Waited {
    /// How the run ended. If the wait has failed, a record of success proves nothing: Go drivers record an error as code 0 (EVT-05). But
    /// in a stop, Nomad's `raw_exec` ends the process through which it waits as soon as it has recorded the exit, and the wait may break
    /// off first.
    #[must_use]
    pub fn end(&self, is_stopped: bool) -> &TaskExit {
        let is_believed = |exit: &&TaskExit| exit.is_certain() && (is_stopped || !exit.is_success());
        let recorded = self.recorded.as_ref().filter(is_believed);
        recorded.filter(|_| !self.exit.is_certain()).unwrap_or(&self.exit)
    }
}

/// The timers of the tasks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TasksTimer {
    /// Sets up a driver again, or ends it again.
    SetUp(DriverName),
    /// Starts a task again.
    Start(AllocationId),
    /// Retries a request to a task's driver.
    Again(AllocationId),
    /// Subscribes to a task's events again.
    Watch(AllocationId),
    /// Locates the processes of a task again.
    Locate(AllocationId),
    /// Gives up stopping a task.
    GiveUp(AllocationId),
    /// Checks again a task that is out of reach.
    LookAgain(AllocationId),
}
