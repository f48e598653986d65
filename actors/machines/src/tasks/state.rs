//! The state of the tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::TaskConfig;
use super::handle::KeptHandle;
use super::identity::TaskIdentities;
use super::kept::KeptDriver;
use super::log::EventLog;
use super::messages::{DriverProgress, TaskPhase, TaskReport};
use crate::agent::RestartPolicy;
use crate::driver::{TaskExit, TaskId};
use crate::kernel::{AskId, StopMode, StopStep};
use crate::leftovers::{Begun, BootClock, Traces};
use crate::vocabulary::{Attempt, BackoffState, DriverName, Timestamp};

/// The initial state of the tasks.
#[derive(Debug, Clone)]
pub struct TasksOptions {
    /// The tasks of the configuration.
    pub tasks: Vec<Arc<TaskConfig>>,
    /// The drivers of the configuration.
    pub drivers: BTreeMap<DriverName, KeptDriver>,
    /// How tasks are restarted.
    pub restart: RestartPolicy,
    /// The ids by which drivers know them.
    pub identities: TaskIdentities,
    /// The relation of the machine's clock to the present boot; `None` if the system does not report its boot.
    pub boot: Option<BootClock>,
}

/// The machine that runs the tasks of a configuration through their drivers.
#[derive(Debug, Clone)]
pub struct Tasks {
    pub(super) options: TasksOptions,
    pub(super) drivers: BTreeMap<DriverName, DriverSetup>,
    /// In the order of the configuration, followed by those that are no longer configured.
    pub(super) tasks: Vec<Task>,
    pub(super) shutdown: ShutdownState,
}

/// A driver that is being set up, or was.
#[derive(Debug, Clone)]
pub(super) struct DriverSetup {
    pub(super) progress: DriverProgress,
    pub(super) backoff: BackoffState,
    pub(super) config_state: ConfigState,
    /// Its settings; `None` for a departed driver without a record.
    pub(super) kept: Option<KeptDriver>,
    /// Whether they are on disk.
    pub(super) is_on_disk: bool,
}

/// Whether a driver is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigState {
    Configured,
    /// It is no longer configured.
    Departed {
        /// Whether it was ended although it left tasks, which may still run.
        is_ended: bool,
    },
}

/// Whether the actor serves, stops, or has stopped everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShutdownState {
    Serving,
    /// Everything stops in this way, nothing starts, and then the actor ends.
    Leaving(StopMode),
    /// All tasks have stopped, or are left as they are. The actor ends as soon as the awaited writes are on disk, and no
    /// input meanwhile changes a task: nothing would end it.
    Closed(StopMode),
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) config: Arc<TaskConfig>,
    pub(super) is_configured: bool,
    /// Whether it is started again once nothing is left of a run that was stopped, or failed, in an earlier run of the host.
    pub(super) starts_after_stop: bool,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    /// The time of its next start, if it waits for that.
    pub(super) due: Option<Timestamp>,
    pub(super) note: String,
    pub(super) durable: DurableState,
    pub(super) log: EventLog,
    pub(super) watch: Watch,
    /// Failed requests to its driver.
    pub(super) troubles: BackoffState,
    /// Whether its driver is known not to have received the start of its run, or a start of an earlier incarnation of the actor
    /// had no effect.
    pub(super) is_unsent: bool,
    /// Whether an earlier incarnation of the actor began its run: its start may never have been sent.
    pub(super) is_inherited: bool,
    /// Since when its driver may be busy with a start of it.
    pub(super) unsure_since: Timestamp,
    /// Whether its driver had started other tasks as well, when it was asked about a run of this one.
    pub(super) shares_driver: bool,
    /// Why its run is over, or why its state is unknown; else empty.
    pub(super) cause: String,
    /// How often its processes have been located in this run.
    pub(super) looks: usize,
    /// The backoff of the checks since it has been out of reach.
    pub(super) out_of_reach: BackoffState,
    /// The number of sweeps in progress.
    pub(super) sweeps: u32,
    /// Why its driver refused to end it, until it is known whether something is left of it.
    pub(super) refusal: Option<String>,
    /// Whether its driver was absent at the last request.
    pub(super) is_driver_absent: bool,
    /// Whether its start waits for a driver that was unavailable at the last attempt: it keeps that state while the start is retried.
    pub(super) awaits_driver: bool,
    /// Whether its next step depends on its last write, and waits for the disk.
    pub(super) awaits_disk: bool,
    /// How often it has waited for the disk.
    pub(super) disk_waits: u64,
    /// The callers that wait until it has stopped.
    pub(super) askers: Vec<AskId>,
    /// How it ended in its last stop.
    pub(super) ended: Option<StopStep>,
    /// Why the volumes of its last run were not released when nothing was left of the run.
    pub(super) unreleased: Option<String>,
    /// When its stop began.
    pub(super) stop_began: Timestamp,
}

/// Whether a task's events are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Watch {
    No,
    /// The subscription at this driver is in progress.
    Asked(DriverName),
    /// They are read from this driver.
    On(DriverName),
}

/// The durable state of a task. It is on disk before a run is started, before it is reported as running, and before its driver
/// forgets how it ended; a stop does not wait for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DurableState {
    /// The last decision; `None` before the first.
    pub wanted: Option<Wanted>,
    /// The number of its latest start.
    pub attempt: Attempt,
    /// The run that exists, or may exist.
    pub run: Option<Run>,
    /// How the last run ended, and when this became known.
    pub exit: Option<(TaskExit, Timestamp)>,
    /// The total number of restarts.
    pub restarts: u64,
    /// The times of the restarts that still count towards the budget.
    pub restarted_at: Vec<Timestamp>,
}

/// The wanted state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It has to run.
    Running,
    /// It has to be stopped.
    Stopped,
    /// It has ended by itself and is not restarted.
    Ended,
    /// It was given up.
    Failed,
}

/// One run of a task by a driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its driver.
    pub driver: DriverName,
    /// The driver's id of the run. Unique.
    pub id: TaskId,
    /// Its progress.
    pub state: RunState,
    /// The evidence by which its processes can be found without its driver.
    pub evidence: RunEvidence,
}

/// The evidence by which the processes of a run can be found without its driver. It does not affect the phase of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunEvidence {
    /// When it began; `None` for a run of an older version, or if the system does not report its boot.
    pub begun: Option<Begun>,
    /// The last known traces of its processes (TH052).
    pub traces: Traces,
}

/// The progress of a run, as recorded on disk.
#[derive(Debug, Clone, PartialEq)]
pub enum RunState {
    /// Its start may or may not have been sent: only the driver knows.
    Intended,
    /// It runs; its driver recovers it by this handle.
    Started(Box<KeptHandle>),
    /// It is over, or has to end: its driver has to end it if it still runs, and to forget it; then nothing of it may be left.
    Over {
        /// How it ended; `None` if the task has to start again regardless.
        exit: Option<TaskExit>,
        /// The driver's handle, if it was started: it may identify remains.
        handle: Option<Box<KeptHandle>>,
    },
}

impl Run {
    /// How it ended, if its driver has reported that.
    #[must_use]
    pub fn known_end(&self) -> Option<&TaskExit> {
        match &self.state {
            RunState::Over { exit, .. } => exit.as_ref().filter(|exit| exit.is_certain()),
            RunState::Intended | RunState::Started(_) => None,
        }
    }
}

/// The phase of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Stopped,
    Ended,
    Failed,
    /// Stopping it was given up; its run stays recorded.
    OutOfReach,
    /// Waits for the timer of its start.
    Waiting,
    /// Waits for its driver to be set up, and its events to be read.
    Readying(Next),
    /// Waits for its driver to start it.
    Starting,
    /// Waits for its driver to report whether an intended run was started.
    Settling,
    /// Waits for its driver to recover it.
    Recovering,
    /// Waits for its end.
    Running,
    /// Waits for its end, after its driver was asked to stop it.
    Stopping,
    /// Waits for its driver to forget it.
    Clearing,
    /// Waits for the proof that nothing is left of its run, by evidence that does not come from its driver.
    Sweeping(DriverReply),
}

/// The driver's answer about a run whose remains are being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DriverReply {
    /// It has answered.
    Received,
    /// It is absent, and the stop does not wait for it.
    Unavailable,
    /// The timeout of the stop has expired.
    TimedOut,
}

/// The next request to a driver, as soon as it can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Start,
    /// The same, after the driver was unavailable.
    StartAtLast,
    Settle,
    Recover,
    Clear,
}

impl Phase {
    /// The phase as reported.
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

    pub(super) const fn is_down(self) -> bool {
        matches!(self, Self::Stopped | Self::Ended | Self::Failed)
    }

    /// Whether nothing is in progress for it: it is down, or nothing more can be done, in which case it may still run.
    pub(super) const fn is_let_be(self) -> bool {
        self.is_down() || matches!(self, Self::OutOfReach)
    }

    const fn can_be_left(self) -> bool {
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
    /// The driver of its run, or of the next one.
    pub(super) fn driver(&self) -> &DriverName {
        self.durable.run.as_ref().map_or(&self.config.driver, |run| &run.driver)
    }

    /// How its present run ended, if its driver has reported that.
    pub(super) fn known_end(&self) -> Option<&TaskExit> {
        self.durable.run.as_ref().and_then(Run::known_end)
    }

    /// How it is reported in this phase.
    pub(super) fn told_as(&self, phase: Phase) -> TaskPhase {
        match phase {
            Phase::Starting if self.awaits_driver => TaskPhase::Waiting,
            Phase::Running if self.awaits_disk => TaskPhase::Starting,
            phase => phase.told(),
        }
    }

    /// Whether the next run of the host can continue from here, with nothing interrupted.
    pub(super) fn can_be_left(&self) -> bool {
        self.phase.can_be_left() || self.phase == Phase::Clearing && self.awaits_disk
    }

    pub(super) fn report(&self) -> TaskReport {
        TaskReport {
            name: self.config.name.clone(),
            driver: self.driver().clone(),
            phase: self.told_as(self.phase),
            since: self.since,
            attempt: self.durable.attempt,
            id: self.durable.run.as_ref().map(|run| run.id.clone()),
            exit: self.durable.exit.clone(),
            restarts: self.durable.restarts,
            note: self.note.clone(),
            events: self.log.recent.entries().to_vec(),
            events_told: self.log.told,
            events_missed: self.log.missed,
            is_configured: self.is_configured,
            due: self.due.filter(|_| self.phase == Phase::Waiting),
            stopping: self.stop_under_way(),
            ended: self.stop_steps(true),
        }
    }
}
