//! What is known of tasks, and what is done for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::driver::client::{TaskExit, TaskHandle, TaskId};
use callboard_actors::leftovers::{Begun, BootClock, Traces};
use callboard_actors::shell::{AskId, StopMode};
use callboard_actors::vocabulary::{Attempt, BackoffState, DriverName, Timestamp};

use super::identity::TaskIdentities;
use super::kept::KeptDriver;
use super::log::EventLog;
use super::messages::{DriverCourse, TaskPhase, TaskReport};
use crate::agent::StopStep;
use crate::config::{RestartPolicy, TaskConfig};

/// What the tasks are born with.
#[derive(Debug, Clone)]
pub struct TasksOptions {
    /// The tasks of the configuration.
    pub tasks: Vec<Arc<TaskConfig>>,
    /// The drivers of the configuration.
    pub drivers: BTreeMap<DriverName, KeptDriver>,
    /// How tasks are restarted.
    pub restart: RestartPolicy,
    /// By which ids drivers know them.
    pub identities: TaskIdentities,
    /// How the clock of the machine that runs the tasks is tied to the present boot; `None` if the system does not tell its boot.
    pub boot: Option<BootClock>,
}

/// The machine that runs the tasks of a configuration through their drivers.
#[derive(Debug, Clone)]
pub struct Tasks {
    pub(super) options: TasksOptions,
    pub(super) drivers: BTreeMap<DriverName, Bringing>,
    /// In the order of the configuration, and after them those that it has no more.
    pub(super) tasks: Vec<Task>,
    pub(super) life: Life,
    /// Who waits until everything has stopped, or can be left.
    pub(super) stop_askers: Vec<(AskId, StopMode)>,
}

/// A driver on its way to the host.
#[derive(Debug, Clone)]
pub(super) struct Bringing {
    pub(super) course: DriverCourse,
    pub(super) backoff: BackoffState,
    pub(super) standing: Standing,
    /// How it is run; `None` for a departed one of which nothing is known.
    pub(super) kept: Option<KeptDriver>,
    /// Whether that is on disk.
    pub(super) is_on_disk: bool,
}

/// How a driver stands with the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The configuration has it.
    Configured,
    /// The configuration has it no more.
    Departed {
        /// Whether it was ended although tasks of it are left, which may still run.
        is_ended: bool,
    },
}

/// What the tasks as a whole are at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Tasks are run.
    Serving,
    /// Everything stops in this way and nothing starts; it remains to be asked.
    Closing(StopMode),
    /// Everything stops in this way, and then it ends.
    Leaving(StopMode),
}

/// One task: what it is at, what for, and since when.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) config: Arc<TaskConfig>,
    pub(super) is_configured: bool,
    /// Whether it is started anew once nothing is left of a run that was stopped, or failed, in an earlier run of the host.
    pub(super) starts_after_stop: bool,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) note: String,
    pub(super) course: Course,
    pub(super) log: EventLog,
    pub(super) watch: Watch,
    /// How often it was tried in vain to speak to its driver.
    pub(super) troubles: BackoffState,
    /// Since when it is not known whether its driver is busy with a start of it.
    pub(super) unsure_since: Timestamp,
    /// Whether its driver had started other tasks as well when it was asked about a run of this one.
    pub(super) shares_driver: bool,
    /// Why its run is over, or why nobody knows whether it is one; empty as long as neither is so.
    pub(super) cause: String,
    /// How often its processes were to be located since it runs.
    pub(super) looks: usize,
    /// How many looks for what is left of it are under way.
    pub(super) sweeps: u32,
    /// Why its driver refused to end it, until it is known whether something is left of it.
    pub(super) refusal: Option<String>,
    /// Whether its driver was not there when it was last spoken to.
    pub(super) is_driver_absent: bool,
    /// Who waits until it has stopped.
    pub(super) askers: Vec<AskId>,
    /// How its last stop went.
    pub(super) steps: Vec<StopStep>,
    /// When its stop began.
    pub(super) stop_began: Timestamp,
}

/// Whether a task's events are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Watch {
    No,
    /// It is being asked for at this driver.
    Asked(DriverName),
    /// They are read from this driver.
    On(DriverName),
}

/// What must not be forgotten of a task. It is on disk before anybody outside sees what follows from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Course {
    /// What somebody has decided; `None` as long as nobody has.
    pub wanted: Option<Wanted>,
    /// The number of its latest start.
    pub attempt: Attempt,
    /// The run that there is, or may be.
    pub run: Option<Run>,
    /// How the last run ended, and when that was heard.
    pub exit: Option<(TaskExit, Timestamp)>,
    /// How often it was restarted in all.
    pub restarts: u64,
    /// When the restarts were that still count.
    pub restarted_at: Vec<Timestamp>,
}

/// What is to become of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It is to run.
    Running,
    /// It is to be stopped.
    Stopped,
    /// It has ended by itself and is not started again.
    Ended,
    /// It was given up.
    Failed,
}

/// One run of a task by a driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Which driver.
    pub driver: DriverName,
    /// By what the driver knows it. No two runs share one.
    pub id: TaskId,
    /// How far it has got.
    pub state: RunState,
    /// By what its processes can be found without its driver.
    pub evidence: RunEvidence,
}

/// By what the processes of a run can be found without its driver. Nothing of it changes what a task is at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunEvidence {
    /// When it was begun; `None` of one that an older version began, and where the system does not tell its boot.
    pub begun: Option<Begun>,
    /// Where its processes were when they were last located (TH052).
    pub traces: Traces,
}

/// How far a run has got, as far as is on disk.
#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    /// The driver is told to start it, or was, or was not: nobody knows before the driver is asked.
    Intended,
    /// It runs, and by this its driver finds it again.
    Started(Box<TaskHandle>),
    /// It is over, or is to be: its driver is still to end it if it is not, and to forget it, and then nothing may be left of
    /// it.
    Over {
        /// How it ended; `None` if it is to be started anew whatever its end was.
        exit: Option<TaskExit>,
        /// By what its driver found it, if it was started: it may name what is left of it.
        handle: Option<Box<TaskHandle>>,
    },
}

/// Where a task has got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Stopped,
    Ended,
    Failed,
    /// It was given up to stop it; its run is kept in mind.
    OutOfReach,
    /// Until the timer for its start.
    Waiting,
    /// Until its driver is brought and its events are read.
    Readying(Next),
    /// Until its driver has started it.
    Starting,
    /// Until its driver has said whether an intended run is one.
    Settling,
    /// Until its driver has taken it up again.
    Recovering,
    /// Until it ends.
    Running,
    /// Until it ends, as its driver was told to make it.
    Stopping,
    /// Until its driver has forgotten it.
    Clearing,
    /// Until nothing is left of its run, by evidence that does not come from its driver.
    Sweeping(Word),
}

/// What its driver had to say of a run whose remains are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It has said what it had to say.
    Had,
    /// It is not there, and what is to stop does not wait for it.
    Absent,
    /// The time of the stop is over.
    Late,
}

/// What is asked of a driver as soon as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Start,
    /// The same, of a driver that could not be had so far.
    StartAtLast,
    Settle,
    Recover,
    Clear,
}

impl Phase {
    /// What others are told of it.
    pub(super) const fn told(self) -> TaskPhase {
        match self {
            Self::Stopped => TaskPhase::Stopped,
            Self::Ended => TaskPhase::Ended,
            Self::Failed => TaskPhase::Failed,
            Self::OutOfReach => TaskPhase::OutOfReach,
            Self::Waiting | Self::Readying(Next::StartAtLast) => TaskPhase::Waiting,
            Self::Readying(Next::Start) | Self::Starting => TaskPhase::Starting,
            Self::Readying(Next::Settle | Next::Recover) | Self::Settling | Self::Recovering => {
                TaskPhase::Recovering
            }
            Self::Running => TaskPhase::Running,
            Self::Readying(Next::Clear) | Self::Stopping | Self::Clearing | Self::Sweeping(_) => {
                TaskPhase::Stopping
            }
        }
    }

    /// Whether nothing of it runs.
    pub(super) const fn is_down(self) -> bool {
        matches!(self, Self::Stopped | Self::Ended | Self::Failed)
    }

    /// Whether nothing is under way for it: it is down, or nothing more can be done, and then it may run all the same.
    pub(super) const fn is_let_be(self) -> bool {
        self.is_down() || matches!(self, Self::OutOfReach)
    }

    /// Whether the next run of the host finds it as it is, without anything having been cut short.
    pub(super) const fn can_be_left(self) -> bool {
        match self {
            Self::Stopped
            | Self::Ended
            | Self::Failed
            | Self::OutOfReach
            | Self::Waiting
            | Self::Readying(_)
            | Self::Settling
            | Self::Recovering
            | Self::Running => true,
            Self::Starting | Self::Stopping | Self::Clearing | Self::Sweeping(_) => false,
        }
    }
}

impl Task {
    /// The driver that has its run, or is to have the next one.
    pub(super) fn driver(&self) -> &DriverName {
        self.course.run.as_ref().map_or(&self.config.driver, |run| &run.driver)
    }

    pub(super) fn report(&self) -> TaskReport {
        TaskReport {
            name: self.config.name.clone(),
            driver: self.driver().clone(),
            phase: self.phase.told(),
            since: self.since,
            id: self.course.run.as_ref().map(|run| run.id.clone()),
            exit: self.course.exit.clone(),
            restarts: self.course.restarts,
            note: self.note.clone(),
            events: self.log.recent.entries().to_vec(),
            events_told: self.log.told,
            events_missed: self.log.missed,
            is_configured: self.is_configured,
        }
    }
}
