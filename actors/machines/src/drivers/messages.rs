//! The messages of the owner of the drivers.

use std::fmt;
use std::time::Duration;

use super::DriverSummary;
use crate::conversation;
use crate::driver::{DriverHealth, DriverReport, DriverSpec, Folded, TaskKey};
use crate::eventor::{EventorNews, JournalId};
use crate::lease::LeasedCalls;
use crate::process::MalformedProcessName;
use crate::vocabulary::{Attempt, DriverName, Generation, told_wait};

/// Adds a driver: a process of it that an earlier run left is found again, else it is launched. A process that was launched from another
/// [spec](DriverSpec::process) is ended first, with the reason among the troubles of the driver. An equal spec changes nothing; another
/// spec for the same name ends the present driver and starts it again.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct AddDriver {
    /// The specification of the driver.
    pub spec: DriverSpec,
}

/// The result of an [`AddDriver`]. The state of the driver is in its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Added {
    /// It is new.
    New,
    /// It exists with the same spec.
    Unchanged,
    /// The present driver of this name is ended first.
    Replacing,
}

/// Why a driver is not added.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AddDriverError {
    /// The host does not allow it. If it still runs from an earlier run, its process is proven, then ended.
    #[error("driver {driver} is blocked; take it off the block list, or put it on the allow list")]
    Blocked {
        /// The driver.
        driver: DriverName,
    },
    /// Its name cannot be part of a process name.
    #[error("driver {driver}: {fault}")]
    Name {
        /// The driver.
        driver: DriverName,
        /// The fault of the name.
        fault: MalformedProcessName,
    },
    /// The limit of drivers is reached.
    #[error("limit of {count} drivers reached; remove one first")]
    TooMany {
        /// The number of drivers.
        count: usize,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot start driver {driver}: the host is stopping")]
    Stopping {
        /// The driver.
        driver: DriverName,
    },
}

impl AddDriverError {
    /// Whether a retry may succeed in this run of the host, without a change by an operator.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::TooMany { .. } => true,
            Self::Blocked { .. } | Self::Name { .. } | Self::Stopping { .. } => false,
        }
    }
}

/// Ends a driver: in order, then its process by force. Answered when it has ended. A driver that is unknown in this run, and still
/// runs from an earlier run, is proven, then ended. Its tasks are forgotten, and the event streams of their handlers end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoveDriver {
    /// The driver.
    pub name: DriverName,
}

/// Reports that an expected driver does not come, and why. No caller waits for it then; a driver that was added is not affected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GiveUpDriver {
    /// The driver.
    pub name: DriverName,
    /// The reason.
    pub reason: String,
}

/// The result of a [`RemoveDriver`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Removed {
    /// A process of it ran, or may have run.
    Ended {
        /// How it ended, or why that is unknown.
        ending: String,
    },
    /// No process of it ran.
    NothingRan,
    /// Its actor ended without a report. Processes that may still run are ended by the owner of the processes when the host stops.
    Untold,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended { ending } => ending,
            Self::NothingRan => "no process of it ran",
            Self::Untold => "it is unknown how its process ended",
        })
    }
}

/// Why a driver is not removed, restarted or described.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoSuchDriver {
    /// There is no driver of this name.
    #[error("there is no driver {driver}; add it first")]
    Unknown {
        /// The requested driver.
        driver: DriverName,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for drivers; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
    /// It is being removed, or the host is stopping; nothing new starts (I6).
    #[error("driver {driver} is being ended: it is being removed, or the host is stopping")]
    Stopping {
        /// The driver.
        driver: DriverName,
    },
    /// Its process is not ended for a restart, since no other process would be launched.
    #[error("driver {driver} is not restarted, since no other process of it would be launched: {reason}")]
    NotLaunched {
        /// The driver.
        driver: DriverName,
        /// The reason.
        reason: String,
    },
}

/// Ends a driver's process and launches it again, now and without a pause; also a process that an earlier run left and that is still
/// being recalled. Answered when the request is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RestartDriver {
    /// The driver.
    pub name: DriverName,
}

/// Asks for the report of every driver, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListDrivers;

/// Asks for one driver in full.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DescribeDriver {
    /// The driver.
    pub name: DriverName,
}

/// One driver in full.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct DriverStatus {
    /// Its last report.
    pub report: DriverReport,
    /// The latest troubles: the first cause, and the latest that differ (EVT-04).
    pub troubles: Vec<Folded>,
    /// How many of its tasks are watched.
    pub tasks_watched: usize,
    /// How often its actor was restarted after it ended unexpectedly.
    pub restarts: u64,
    /// Its leases, and the calls in flight.
    pub calls: LeasedCalls,
}

/// Asks for the latest events of a task, with repeats folded (EVT-04).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecentTaskEvents {
    /// The driver.
    pub driver: DriverName,
    /// The task.
    pub task: TaskKey,
}

/// Waits until it is known, of every driver that was added before this or is expected, whether it serves, or until a timeout; then
/// returns them grouped by state (N2, HLT-04). A driver that fails is known, so its success is not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AwaitDrivers {
    /// The timeout.
    pub within: Duration,
}

/// The required state of a driver that is to be dispensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// It serves: for new tasks.
    Healthy,
    /// It can be called: for existing tasks, which have to be stopped even if their driver is not healthy.
    Reachable,
}

/// Asks which generation of a driver serves. Three answers (RES-01): the generation, not yet, no. `DriverLeases` makes a
/// lease of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DispenseDriver {
    /// The driver.
    pub name: DriverName,
    /// The required state.
    pub wanted: Wanted,
    /// How long to wait for that state; zero asks for the present.
    pub within: Duration,
}

/// A dispensed driver. It is valid for its generation: a later generation replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DispensedDriver {
    /// The driver.
    pub driver: DriverName,
    /// Its generation.
    pub generation: Generation,
}

/// Why a driver is not dispensed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotDispensed {
    /// There is no driver of this name.
    #[error("there is no driver {driver}; add it first")]
    Unknown {
        /// The driver.
        driver: DriverName,
    },
    /// The host does not allow it.
    #[error("driver {driver} is blocked; take it off the block list, or put it on the allow list")]
    Blocked {
        /// The driver.
        driver: DriverName,
    },
    /// It is starting.
    #[error("driver {driver} is not ready yet{}; wait longer", told_wait(*waited))]
    NotReady {
        /// The driver.
        driver: DriverName,
        /// How long the caller waited.
        waited: Duration,
    },
    /// It does not serve. It may serve again.
    #[error("driver {driver} is {health}{}: {reason}", told_wait(*waited))]
    NotHealthy {
        /// The driver.
        driver: DriverName,
        /// Undetected or unhealthy.
        health: DriverHealth,
        /// The reason.
        reason: String,
        /// How long the caller waited.
        waited: Duration,
    },
    /// Its program is refused, and no process of it runs. It is launched again when the program has changed, or when a restart of the
    /// driver is requested; until then no caller waits for it (SEC-07).
    #[error("driver {driver} is {reason}; it is launched again when its program has changed")]
    Refused {
        /// The driver.
        driver: DriverName,
        /// The reason, as it is shown: it begins with the word "refused".
        reason: String,
    },
    /// The host is stopping, or the driver is being removed; nothing new starts (I6).
    #[error("cannot provide driver {driver}: it is being stopped")]
    Stopping {
        /// The driver.
        driver: DriverName,
    },
    /// Too many callers wait already.
    #[error("{waiting} callers already wait for drivers; try again later")]
    TooMany {
        /// The number of waiting callers.
        waiting: usize,
    },
}

impl NotDispensed {
    /// Whether a retry may succeed in this run of the host, without a change by an operator.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NotReady { .. } | Self::NotHealthy { .. } | Self::TooMany { .. } => true,
            Self::Unknown { .. } | Self::Blocked { .. } | Self::Refused { .. } | Self::Stopping { .. } => {
                false
            }
        }
    }
}

/// Announces a task of a driver, before its handler is registered: its events wait (EVT-02). Send it before the task is
/// started or restored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnnounceTask {
    /// The driver that runs it. It need not exist yet.
    pub driver: DriverName,
    /// The task.
    pub task: TaskKey,
}

/// Registers the handler of a task's events, in place of the former handler. It stays across restarts of the driver, until it is
/// forgotten or the driver is removed (EVT-03).
#[derive(Debug, Clone, Hash)]
pub struct RegisterTaskHandler {
    /// The driver that runs it. It need not exist yet.
    pub driver: DriverName,
    /// The task.
    pub task: TaskKey,
    /// The journal of the events. The handler opens it among the `TaskJournals` of its host, with the position up to which
    /// it has received the task's events, in this run of the host or in an earlier run.
    pub sink: JournalId,
}

/// Forgets a task: the event stream of its handler ends. Idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForgetTaskHandler {
    /// The driver.
    pub driver: DriverName,
    /// The task.
    pub task: TaskKey,
}

/// Why a task is not watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WatchError {
    /// Too many tasks are watched already.
    #[error("limit of {count} watched tasks reached; forget those that have ended")]
    TooMany {
        /// The number of watched tasks.
        count: usize,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot watch task {task}: the host is stopping")]
    Stopping {
        /// The task.
        task: TaskKey,
    },
}

/// A report of a driver. Sent by the drivers themselves; without effect from any other sender.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct DriverReported {
    /// The life of the driver that sends it: late reports of an earlier life have no effect (REG-08).
    pub life: Attempt,
    /// The report.
    pub report: DriverReport,
    /// Whether leases of this generation can be had.
    pub may_lend: bool,
}

/// The news of an eventor. Sent by the eventors themselves; without effect from any other sender.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventorReported {
    /// The driver.
    pub driver: DriverName,
    /// The life of its eventor.
    pub life: Attempt,
    /// The news.
    pub news: EventorNews,
}

conversation! {
    /// The messages of the owner of the drivers.
    #[derive(Clone, Hash)]
    pub enum DriversAsk -> #[derive(Hash)] DriversAnswer {
        AddDriver => Result<Added, AddDriverError>,
        RemoveDriver => Result<Removed, NoSuchDriver>,
        GiveUpDriver => (),
        RestartDriver => Result<(), NoSuchDriver>,
        ListDrivers => Vec<DriverReport>,
        DescribeDriver => Result<DriverStatus, NoSuchDriver>,
        AwaitDrivers => DriverSummary,
        DispenseDriver => Result<DispensedDriver, NotDispensed>,
        AnnounceTask => Result<(), WatchError>,
        RegisterTaskHandler => Result<(), WatchError>,
        ForgetTaskHandler => (),
        RecentTaskEvents => Vec<Folded>,
        DriverReported => (),
        EventorReported => (),
    }
}
