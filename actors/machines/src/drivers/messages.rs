//! What can be said to the owner of the drivers, and what it says.

use std::fmt;
use std::time::Duration;

use super::DriverSummary;
use crate::conversation;
use crate::driver::{DriverHealth, DriverReport, DriverSpec, Folded, TaskKey};
use crate::eventor::{EventorNews, JournalId};
use crate::lease::LeasedCalls;
use crate::process::MalformedProcessName;
use crate::vocabulary::{Attempt, DriverName, Generation, told_wait};

/// Brings a driver: a process of it that an earlier run left is found again, else one is launched. One that was launched from another
/// [spec](DriverSpec::process) is ended first, with the reason among the troubles of the driver. An equal spec changes nothing; another
/// one for the same name ends the driver that there is and begins anew.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct AddDriver {
    /// What it is to be.
    pub spec: DriverSpec,
}

/// What became of an [`AddDriver`]. The state of the driver is in its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Added {
    /// It is new.
    New,
    /// It was there just so.
    Unchanged,
    /// Another one of this name makes room for it.
    Replacing,
}

/// Why a driver is not brought.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AddDriverError {
    /// The host does not allow it. If it still runs from an earlier run, its process is proven, then ended.
    #[error("driver {driver} is blocked; take it off the block list, or put it on the allow list")]
    Blocked {
        /// Which driver.
        driver: DriverName,
    },
    /// Its process could not have a name.
    #[error("driver {driver}: {fault}")]
    Name {
        /// Which driver.
        driver: DriverName,
        /// What is wrong with the name.
        fault: MalformedProcessName,
    },
    /// There are too many.
    #[error("limit of {count} drivers reached; remove one first")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot start driver {driver}: the host is stopping")]
    Stopping {
        /// Which driver.
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

/// Ends a driver: in order, then its process by force. Answered when it is over. One that is unknown in this run, and still runs
/// from an earlier run, is proven, then ended. Its tasks are forgotten, and the event streams of their handlers end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoveDriver {
    /// Which driver.
    pub name: DriverName,
}

/// Says that a driver which is expected does not come, and why. No caller waits for it then; one that was added is not affected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GiveUpDriver {
    /// Which driver.
    pub name: DriverName,
    /// Why.
    pub reason: String,
}

/// What became of a [`RemoveDriver`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Removed {
    /// A process of it ran, or may have run, and this became of it.
    Ended {
        /// How it ended, or why that is unknown.
        ending: String,
    },
    /// No process of it ran.
    NothingRan,
    /// Its actor ended without a report. What may still run is ended by the owner of the processes when the host stops.
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
    /// There is none of this name.
    #[error("there is no driver {driver}; add it first")]
    Unknown {
        /// Which driver was asked for.
        driver: DriverName,
    },
    /// Too many wait already.
    #[error("{waiting} callers already wait for drivers; try again later")]
    TooMany {
        /// How many wait.
        waiting: usize,
    },
    /// It is being removed, or the host is stopping; nothing new starts (I6).
    #[error("driver {driver} is being ended: it is being removed, or the host is stopping")]
    Stopping {
        /// Which driver.
        driver: DriverName,
    },
    /// Its process is not ended for a restart, since no other one would be launched.
    #[error("driver {driver} is not restarted, since no other process of it would be launched: {reason}")]
    NotLaunched {
        /// Which driver.
        driver: DriverName,
        /// Why not.
        reason: String,
    },
}

/// Ends a driver's process and brings it anew, now and without a pause; also one that an earlier run left and that is still looked for.
/// Answered when the order is taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RestartDriver {
    /// Which driver.
    pub name: DriverName,
}

/// Asks for the report of every driver, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListDrivers;

/// Asks for one driver in full.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DescribeDriver {
    /// Which driver.
    pub name: DriverName,
}

/// One driver in full.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct DriverStatus {
    /// What is known of it.
    pub report: DriverReport,
    /// What went wrong lately: the first cause, and the latest that differ (EVT-04).
    pub troubles: Vec<Folded>,
    /// How many of its tasks are watched.
    pub tasks_watched: usize,
    /// How often its actor was started again after it ended unexpectedly.
    pub restarts: u64,
    /// Its leases, and the calls in flight.
    pub calls: LeasedCalls,
}

/// Asks for the latest events of a task, with repeats folded (EVT-04).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecentTaskEvents {
    /// Which driver.
    pub driver: DriverName,
    /// Which task.
    pub task: TaskKey,
}

/// Waits until it is known of every driver that was added before this, or is expected, whether it serves, or until a time is over; then gives
/// them grouped by state (N2, HLT-04). A driver that fails is known, so its success is not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AwaitDrivers {
    /// How long at most.
    pub within: Duration,
}

/// What is wanted of a driver that is to be dispensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// It serves: for new tasks.
    Healthy,
    /// It can be spoken to: for tasks that are there already, which have to be stopped also by a driver that is not well.
    Reachable,
}

/// Asks which generation of a driver serves. Three answers (RES-01): it, not yet, no. `DriverLeases` makes a
/// lease of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DispenseDriver {
    /// Which driver.
    pub name: DriverName,
    /// What is wanted of it.
    pub wanted: Wanted,
    /// How long to wait for that; zero asks for the present.
    pub within: Duration,
}

/// A driver that can be had. It is valid for its generation: a later one replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DispensedDriver {
    /// Which driver.
    pub driver: DriverName,
    /// Which generation of it.
    pub generation: Generation,
}

/// Why a driver cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotDispensed {
    /// There is none of this name.
    #[error("there is no driver {driver}; add it first")]
    Unknown {
        /// Which driver.
        driver: DriverName,
    },
    /// The host does not allow it.
    #[error("driver {driver} is blocked; take it off the block list, or put it on the allow list")]
    Blocked {
        /// Which driver.
        driver: DriverName,
    },
    /// It is on its way.
    #[error("driver {driver} is not ready yet{}; wait longer", told_wait(*waited))]
    NotReady {
        /// Which driver.
        driver: DriverName,
        /// How long was waited.
        waited: Duration,
    },
    /// It does not serve. It may again.
    #[error("driver {driver} is {health}{}: {reason}", told_wait(*waited))]
    NotHealthy {
        /// Which driver.
        driver: DriverName,
        /// Undetected or unhealthy.
        health: DriverHealth,
        /// Why.
        reason: String,
        /// How long was waited.
        waited: Duration,
    },
    /// Its program is refused, and no process of it runs. It is launched again when the program has changed, or when a restart of the
    /// driver is requested; until then no caller waits for it (SEC-07).
    #[error("driver {driver} is {reason}; it is launched again when its program has changed")]
    Refused {
        /// Which driver.
        driver: DriverName,
        /// Why, as it is shown: it begins with the word "refused".
        reason: String,
    },
    /// The host is stopping, or the driver is being removed; nothing new starts (I6).
    #[error("cannot provide driver {driver}: it is being stopped")]
    Stopping {
        /// Which driver.
        driver: DriverName,
    },
    /// Too many wait already.
    #[error("{waiting} callers already wait for drivers; try again later")]
    TooMany {
        /// How many wait.
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

/// Says that a task of a driver is known and its handler comes later: its events wait (EVT-02). Say it before the task is
/// started or restored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnnounceTask {
    /// Which driver runs it. It need not be there yet.
    pub driver: DriverName,
    /// Which task.
    pub task: TaskKey,
}

/// Registers the handler of a task's events, in place of the one before. It holds across restarts of the driver, until it is
/// forgotten or the driver is removed (EVT-03).
#[derive(Debug, Clone, Hash)]
pub struct RegisterTaskHandler {
    /// Which driver runs it. It need not be there yet.
    pub driver: DriverName,
    /// Which task.
    pub task: TaskKey,
    /// The journal that the events go to. The handler opens it among the `TaskJournals` of its host, with the position up to which
    /// it has had the task's events, in this run of the host or in an earlier one.
    pub sink: JournalId,
}

/// Forgets a task: the event stream of its handler ends. Idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForgetTaskHandler {
    /// Which driver.
    pub driver: DriverName,
    /// Which task.
    pub task: TaskKey,
}

/// Why a task is not watched.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WatchError {
    /// Too many are watched already.
    #[error("limit of {count} watched tasks reached; forget those that have ended")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("cannot watch task {task}: the host is stopping")]
    Stopping {
        /// Which task.
        task: TaskKey,
    },
}

/// Says what a driver reports. Said by the drivers themselves; from anyone else it changes nothing.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct DriverReported {
    /// Which life of which driver says so: what an earlier one says late changes nothing (REG-08).
    pub life: Attempt,
    /// What it says.
    pub report: DriverReport,
    /// Whether leases of this generation can be had.
    pub may_lend: bool,
}

/// Says what an eventor has to say. Said by the eventors themselves; from anyone else it changes nothing.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventorReported {
    /// Of which driver.
    pub driver: DriverName,
    /// Which life of its eventor.
    pub life: Attempt,
    /// What it says.
    pub news: EventorNews,
}

conversation! {
    /// What is said to the owner of the drivers.
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
