//! What the tasks have done for them: writes, calls and timers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::client::{TaskExit, TaskHandle, TaskId};
use callboard_actors::driver::{EventPosition, TaskEventItem};
use callboard_actors::leftovers::Traces;
use callboard_actors::vocabulary::{AllocationId, DriverName};

use super::kept::KeptDriver;
use super::log::EventLog;
use super::state::{Course, RunEvidence};
use crate::config::TaskConfig;

/// What is written in one piece.
#[derive(Debug, Clone, PartialEq)]
pub enum TasksChange {
    /// The course of a task.
    Course(AllocationId, Box<Course>),
    /// What its driver told of it, with the position up to which that is.
    Log(AllocationId, Box<EventLog>),
    /// All of a task that the configuration has no more.
    Forget(AllocationId),
    /// How a driver is run.
    KeepDriver(DriverName, Box<KeptDriver>),
    /// All of a driver that the configuration has no more.
    ForgetDriver(DriverName),
}

/// What is on disk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TasksImage {
    /// The courses.
    pub courses: BTreeMap<AllocationId, Course>,
    /// What drivers told.
    pub logs: BTreeMap<AllocationId, EventLog>,
    /// How drivers were run.
    pub drivers: BTreeMap<DriverName, KeptDriver>,
    /// Whether an earlier run of the host wrote this, and not this one.
    pub is_of_earlier_run: bool,
}

/// A run of a task, as calls speak of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunKey {
    /// Which task.
    pub name: AllocationId,
    /// Of which driver.
    pub driver: DriverName,
    /// By what the driver knows it.
    pub id: TaskId,
}

/// What is done beside the mailbox.
#[derive(Debug, Clone, PartialEq)]
pub enum TasksCall {
    /// Looks for the plugin of a driver and adds the driver to those of the host.
    Bring(DriverName),
    /// Adds a driver that the configuration has no more, and that was run in this way, to those of the host, so that what is
    /// left of its tasks can be stopped.
    BringBack(DriverName, Box<KeptDriver>),
    /// Ends a driver that the configuration has no more, whatever run of the host its process is of.
    Dismiss {
        /// Which driver.
        driver: DriverName,
        /// The tasks that it leaves, which nobody can end.
        left: Vec<AllocationId>,
    },
    /// Has the events of a task read from now on. Those that were handed over and not taken yet are handed over again.
    Watch {
        /// Which task.
        name: AllocationId,
        /// At which driver.
        driver: DriverName,
        /// What has been had.
        after: Option<EventPosition>,
        /// How many items were taken so far.
        taken: u64,
    },
    /// Waits for events of a task beyond those that were taken.
    ReadEvents {
        /// Which task.
        name: AllocationId,
        /// How many items were taken so far; they are not handed over again.
        taken: u64,
    },
    /// Has no more events of a task read, and what belongs to the task removed.
    Forget {
        /// Which task.
        name: AllocationId,
        /// At which driver its events are read, if they are.
        driver: Option<DriverName>,
    },
    /// Starts a run.
    Start(RunKey, Arc<TaskConfig>),
    /// Has a run taken up again.
    Recover(RunKey, Box<TaskHandle>),
    /// Asks what a run is at.
    Inspect(RunKey),
    /// Has the process of its driver replaced, unless that has happened since a start of the run was asked for: a process that
    /// was never asked can have no start of it under way.
    ReplaceDriver(RunKey),
    /// Waits for the end of a run.
    Wait(RunKey),
    /// Has a run stopped.
    Stop {
        /// Which one.
        run: RunKey,
        /// How long it may take before it is killed.
        grace: Duration,
        /// By which signal it is asked to end; empty leaves that to its driver (T145).
        signal: String,
    },
    /// Has a run ended by force if it is not over, and forgotten.
    Destroy(RunKey),
    /// Looks where the processes of a run are, while its driver has it (TH052).
    Locate {
        /// Of which run.
        run: RunKey,
        /// What its driver finds it by.
        handle: Option<Box<TaskHandle>>,
        /// What is known of its processes so far.
        evidence: Box<RunEvidence>,
    },
    /// Ends whatever is left of a run, by evidence that does not come from its driver (TH040, TH041).
    Sweep {
        /// Of which run.
        run: RunKey,
        /// What its driver found it by, if it was started.
        handle: Option<Box<TaskHandle>>,
        /// What is known of its processes.
        evidence: Box<RunEvidence>,
        /// What is known of its driver.
        driver: Heard,
    },
}

impl TasksCall {
    /// The run that it starts, asks about or ends; `None` if it does none of these.
    #[must_use]
    pub const fn run(&self) -> Option<&RunKey> {
        match self {
            Self::Start(run, _)
            | Self::Recover(run, _)
            | Self::Inspect(run)
            | Self::ReplaceDriver(run)
            | Self::Wait(run)
            | Self::Stop { run, .. }
            | Self::Destroy(run)
            | Self::Sweep { run, .. } => Some(run),
            Self::Bring(_)
            | Self::BringBack(..)
            | Self::Dismiss { .. }
            | Self::Watch { .. }
            | Self::ReadEvents { .. }
            | Self::Forget { .. }
            | Self::Locate { .. } => None,
        }
    }
}

/// What is known of a driver whose run is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It has said how the run ended, which it knows.
    End,
    /// It has said what it had to say of the run, and that proves no end.
    Word,
    /// It has said nothing, and can begin nothing any more: it has started the run before.
    Nothing,
    /// It was told to start the run and has not said what came of that: it may still begin.
    NothingOfStart,
}

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Trouble {
    /// Whether the same may succeed later.
    pub is_transient: bool,
    /// Whether the driver is not there to answer, as far as is known.
    pub is_absent: bool,
    /// What was tried on what, and what came back.
    pub reason: String,
}

impl Trouble {
    /// One that may pass.
    #[must_use]
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { is_transient: true, is_absent: false, reason: reason.into() }
    }

    /// The driver is not there to answer.
    #[must_use]
    pub fn absent(reason: impl Into<String>) -> Self {
        Self { is_absent: true, ..Self::passing(reason) }
    }

    /// One that stays.
    #[must_use]
    pub fn lasting(reason: impl Into<String>) -> Self {
        Self { is_transient: false, is_absent: false, reason: reason.into() }
    }
}

/// Nothing is left of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Whether something was left and had to be killed.
    pub has_killed: bool,
    /// What was found, in words.
    pub words: String,
}

/// What came of a start.
#[derive(Debug, Clone, PartialEq)]
pub enum Started {
    /// It runs.
    Runs(Box<TaskHandle>),
    /// The driver was not asked.
    NotAsked(Trouble),
    /// It does not run, as its driver says, and may if it is tried again. What may be left of this run has to go first.
    Retry(String),
    /// Its driver says no, in words that do not prove that nothing was started; trying again does not help.
    Refused(String),
    /// It does not run, as its driver says, and never will.
    Fatal(String),
    /// The driver was asked, and nobody knows what it did.
    Unclear(Trouble),
}

/// What a driver says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It runs, or the driver cannot tell.
    Running,
    /// It has ended.
    Exited(TaskExit),
    /// The driver knows of no such run.
    Nothing {
        /// Its words.
        words: String,
        /// Whether it can have no start of this run under way: it has answered that, or its process was never asked.
        is_proof: bool,
    },
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum TasksOutcome {
    /// The driver is among those of the host, or is not.
    Brought(Result<(), Trouble>),
    /// The driver has ended, or has not.
    Dismissed(Result<(), Trouble>),
    /// The events are read, or are not.
    Watched(Result<(), Trouble>),
    /// The next items, beginning behind those that were taken; empty if none comes any more.
    Events(Vec<TaskEventItem>),
    /// No more events are read.
    Forgotten,
    /// What came of a start.
    Started(Started),
    /// The driver has it again, or has not.
    Recovered(Result<(), Trouble>),
    /// What the driver says.
    Inspected(Result<Found, Trouble>),
    /// The process of the driver is being replaced, or was already, or could not be.
    DriverReplaced(Result<(), Trouble>),
    /// It has ended in this way.
    Waited(Result<TaskExit, Trouble>),
    /// The driver has stopped it, or has not.
    StopTaken(Result<(), Trouble>),
    /// The driver has forgotten it, or has not.
    Destroyed(Result<(), Trouble>),
    /// Where its processes are; nowhere if none could be told from others.
    Located(Result<Traces, Trouble>),
    /// Nothing is left of it, or that is not known.
    Swept(Result<Swept, Trouble>),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TasksTimer {
    /// The time to bring a driver again, or to end it again.
    Bring(DriverName),
    /// The time to start a task again.
    Start(AllocationId),
    /// The time to speak to a task's driver again.
    Again(AllocationId),
    /// The time to have a task's events read again.
    Watch(AllocationId),
    /// The time to locate the processes of a task again.
    Locate(AllocationId),
    /// The time at which a task that is to stop is left as it is.
    GiveUp(AllocationId),
}
