//! The state of the owner of the drivers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::driver::{
    DriverConfig, DriverHealth, DriverLimits, DriverMode, DriverReport, DriverSpec, DriverStage, Folded,
    RESTARTED, TaskKey,
};
use crate::eventor::{EventorOptions, JournalId};
use crate::kernel::{AskId, Ending, StopMode, StopStep};
use crate::lease::LeasedCalls;
use crate::supervisor::{ChildState, DynamicChild};
use crate::vocabulary::{Attempt, Backoff, DriverName, Generation, RestartBudget, Timestamp};

use super::messages::Wanted;

/// The options of the owner of the drivers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DriversOptions {
    /// The limits of each driver.
    pub limits: DriverLimits,
    /// The options of each eventor.
    pub eventor: EventorOptions,
    /// The allowed drivers; `None` allows all that are not blocked.
    pub allowed: Option<BTreeSet<DriverName>>,
    /// The blocked drivers. A blocked driver that still runs from an earlier run is proven, then ended.
    pub blocked: BTreeSet<DriverName>,
    /// The expected drivers: [`AwaitDrivers`](super::AwaitDrivers) waits for them too, until they are added or given up. None by
    /// default.
    pub expected: BTreeSet<DriverName>,
    /// The limit of drivers. 256 by default.
    pub drivers_max: usize,
    /// The limit of watched tasks, of all drivers together. 65,536 by default.
    pub tasks_max: usize,
    /// The limit of waiting callers, of all drivers together. 4,096 by default.
    pub waiting_max: usize,
    /// How often the actor of one driver is restarted after it ended unexpectedly.
    pub restart_budget: RestartBudget,
    /// The backoff before a restart.
    pub restart_backoff: Backoff,
}

impl Default for DriversOptions {
    fn default() -> Self {
        Self {
            limits: DriverLimits::default(),
            eventor: EventorOptions::default(),
            allowed: None,
            blocked: BTreeSet::new(),
            expected: BTreeSet::new(),
            drivers_max: 256,
            tasks_max: 65_536,
            waiting_max: 4_096,
            restart_budget: RestartBudget::default(),
            restart_backoff: Backoff::default(),
        }
    }
}

impl DriversOptions {
    /// Whether a driver may run.
    #[must_use]
    pub fn allows(&self, driver: &DriverName) -> bool {
        !self.blocked.contains(driver) && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(driver))
    }
}

/// The data that survives a crash of the machine: requests that the host does not repeat.
#[doc(hidden)]
#[derive(Debug, Clone, Hash, Default)]
pub struct DriversImage {
    pub(super) specs: BTreeMap<DriverName, DriverSpec>,
    /// Drivers whose restart was acknowledged and was not observed yet.
    pub(super) restarts: BTreeSet<DriverName>,
    /// The watched tasks, and the journals of their events.
    pub(super) tasks: BTreeMap<DriverName, BTreeMap<TaskKey, JournalId>>,
    /// The number of the latest journal for a future handler.
    pub(super) parked: u64,
}

impl DriversImage {
    /// The journals of the watched tasks.
    pub fn journals(&self) -> impl Iterator<Item = JournalId> {
        self.tasks.values().flat_map(|tasks| tasks.values().copied())
    }

    /// Applies a change.
    pub fn apply(&mut self, change: DriversChange) {
        match change {
            DriversChange::Keep(spec) => {
                self.restarts.remove(&spec.name);
                self.specs.insert(spec.name.clone(), *spec);
            }
            DriversChange::Drop(driver) => {
                self.restarts.remove(&driver);
                self.specs.remove(&driver);
            }
            DriversChange::Restart(driver) => {
                self.restarts.insert(driver);
            }
            DriversChange::Restarted(driver) => {
                self.restarts.remove(&driver);
            }
            DriversChange::Watch(driver, task, journal) => {
                if let JournalId::Parked(number) = journal {
                    self.parked = number;
                }
                self.tasks.entry(driver).or_default().insert(task, journal);
            }
            DriversChange::Forget(driver, task) => {
                if let Some(tasks) = self.tasks.get_mut(&driver) {
                    tasks.remove(&task);
                    if tasks.is_empty() {
                        self.tasks.remove(&driver);
                    }
                }
            }
        }
    }
}

/// One change of the kept data.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum DriversChange {
    /// This driver is wanted.
    Keep(Box<DriverSpec>),
    /// This driver is no longer wanted.
    Drop(DriverName),
    /// This driver is to be restarted.
    Restart(DriverName),
    /// The restart of this driver is done.
    Restarted(DriverName),
    /// This task is watched, and its events go to this journal.
    Watch(DriverName, TaskKey, JournalId),
    /// This task is no longer watched.
    Forget(DriverName, TaskKey),
}

/// The kind of a child.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildKind {
    /// A driver.
    Driver,
    /// An eventor.
    Eventor,
}

/// The calls of the owner of the drivers.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum DriversCall {
    /// Wait until children have ended.
    AwaitEndings,
    /// Kill every existing child: none of them is known to this life of the machine.
    Sweep,
    /// Start a driver.
    StartDriver(Attempt, Box<DriverConfig>),
    /// Start an eventor.
    StartEventor(Attempt, DriverName),
    /// Ask a child to stop.
    Stop(Attempt, StopMode),
    /// Kill a child.
    Kill(Attempt),
    /// Have a driver restarted, as the request with this number.
    RestartNow(Attempt, Attempt),
    /// Ask a driver for its latest troubles.
    AskTroubles(Attempt, DriverName, AskId),
    /// Ask an eventor for the latest events of a task.
    AskRecent(Attempt, TaskKey, AskId),
    /// Send an eventor the generation whose events it reads.
    SubscribeTo(Attempt, Generation),
    /// Send an eventor the watched tasks, and whether they were watched before.
    Watch(Attempt, Vec<(TaskKey, JournalId)>, bool),
    /// Notify an eventor that a task is no longer watched.
    Forget(Attempt, TaskKey),
    /// Move the items of the first journal to the second, and redirect all later items.
    HandOver(JournalId, JournalId),
    /// End a journal: its reader gets no more events.
    End(JournalId),
}

/// The outcome of a [`DriversCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum DriversOutcome {
    /// These children have ended; at least one.
    Ended(Vec<ChildEnded>),
    /// The latest troubles of a driver, and its leases and calls; empty if it could not be asked.
    Described(Vec<Folded>, LeasedCalls),
    /// The answer of an eventor; empty if it could not be asked.
    Told(Vec<Folded>),
    /// A driver crashed on the request for its restart, or could not take it.
    NotTaken,
    /// It was done.
    Done,
}

/// A child has ended.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildEnded {
    /// The driver.
    pub driver: DriverName,
    /// The kind of child.
    pub kind: ChildKind,
    /// Its life.
    pub life: Attempt,
    /// How it ended.
    pub ending: Ending,
}

/// The timers of the owner of the drivers.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DriversTimer {
    /// The next wait for endings of children.
    AwaitEndings,
    /// The stop timeout of this driver.
    Stop(DriverName),
    /// The next start of this driver's actor.
    Restart(DriverName),
    /// The next request for the restart of this number to this driver's actor.
    AskForRestart(DriverName, Attempt),
    /// The next start of this driver's eventor.
    RestartEventor(DriverName),
    /// The timeout of a caller that waits for this driver.
    Dispense(DriverName, AskId),
    /// The timeout of a caller that waits for the state of the drivers.
    AwaitDrivers(AskId),
}

/// The progress of a requested restart. Until it is done, each next life of the driver's actor is asked for it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Restarting {
    /// No restart is due.
    No,
    /// Its actor has not received it yet: earlier reports of the actor say nothing about the restarted driver.
    Asked,
    /// Its actor has received it, and has not reported that it is done.
    Taken,
}

/// One driver.
#[derive(Debug, Clone, Hash)]
pub(super) struct Entry {
    pub(super) config: DriverConfig,
    pub(super) child: DynamicChild,
    pub(super) report: DriverReport,
    /// Its generation, while leases of it can be had.
    pub(super) lendable: Option<Generation>,
    /// The number of the last restart that was requested of its present life.
    pub(super) restart: Attempt,
    /// The progress of that restart.
    pub(super) restarting: Restarting,
    /// The successor after its end, if any.
    pub(super) next: Option<DriverSpec>,
    /// The callers that wait for its end.
    pub(super) leaving: Vec<AskId>,
}

impl Entry {
    pub(super) fn serves(&self) -> bool {
        self.config.mode == DriverMode::Serve
    }

    /// Why no process is launched, of this driver or of its successor.
    pub(super) fn not_launched(&self) -> Option<String> {
        self.next.as_ref().unwrap_or(&self.config.spec).not_launched.clone()
    }

    /// A restart was requested: its result is unknown yet.
    pub(super) fn restarted(&mut self, now: Timestamp) {
        self.restart = self.restart.next();
        self.restarting = Restarting::Asked;
        self.lendable = None;
        let report = &mut self.report;
        if report.health != DriverHealth::NoAnswerYet {
            report.since = now;
        }
        report.health = DriverHealth::NoAnswerYet;
        RESTARTED.clone_into(&mut report.reason);
        // Its actor reports the same when it receives the request; that report is then not news.
        report.restart = self.restart;
        report.stage = if report.pid.is_some() { DriverStage::Stopping } else { DriverStage::Recalling };
    }

    /// The life of its actor that has not yet received the last requested restart, and the number of that restart.
    pub(super) fn awaited_restart(&self) -> Option<(Attempt, Attempt)> {
        match self.child.state() {
            ChildState::Running(life) if self.restarting == Restarting::Asked => Some((life, self.restart)),
            ChildState::Running(_) | ChildState::Pausing | ChildState::Stopping(_) | ChildState::GivenUp => {
                None
            }
        }
    }

    /// Whether this report predates the pending restart request. An actor that had received the request and was rebuilt since has
    /// forgotten it.
    pub(super) fn has_not_heard_of_restart(&self, report: &DriverReport) -> bool {
        let is_running = matches!(self.child.state(), ChildState::Running(_));
        self.restarting != Restarting::No && is_running && report.restart < self.restart
    }

    /// Records that its actor has received the restart. True if its report shows that the restart is done: no process from before the
    /// request runs.
    pub(super) fn note_restart(&mut self, report: &DriverReport) -> bool {
        if self.restarting == Restarting::No {
            return false;
        }
        let is_done = match report.stage {
            DriverStage::Launching
            | DriverStage::Connecting
            | DriverStage::Watching
            | DriverStage::Refused
            | DriverStage::Gone => true,
            DriverStage::Recalling | DriverStage::Stopping | DriverStage::Pausing => false,
        };
        self.restarting = if is_done { Restarting::No } else { Restarting::Taken };
        is_done
    }
}

/// One eventor.
#[derive(Debug, Clone, Hash)]
pub(super) struct EventorEntry {
    pub(super) child: DynamicChild,
    /// Whether it knew its tasks before.
    pub(super) was_equipped: bool,
    /// Whether its tasks were watched before, by it or by another eventor.
    pub(super) is_renewal: bool,
    /// The generation whose events it reads.
    pub(super) attends: Option<Generation>,
    /// Whether it is not started again after its end.
    pub(super) is_closing: bool,
    /// Whether the end of its driver was published.
    pub(super) has_left: bool,
    /// The journals to end when it has ended, and so has delivered everything.
    pub(super) parting: Vec<JournalId>,
}

/// A caller that waits for a driver.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Waiting {
    pub(super) since: Timestamp,
    pub(super) wanted: Wanted,
}

/// A caller that waits until these drivers are known.
#[derive(Debug, Clone, Hash)]
pub(super) struct UntilKnown {
    pub(super) awaited: BTreeSet<DriverName>,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Drivers {
    pub(super) options: DriversOptions,
    pub(super) image: DriversImage,
    pub(super) entries: BTreeMap<DriverName, Entry>,
    pub(super) eventors: BTreeMap<DriverName, EventorEntry>,
    /// Drivers whose tasks were watched by a former life of this machine, and whose eventor was not started since.
    pub(super) served: BTreeSet<DriverName>,
    pub(super) dispensing: BTreeMap<DriverName, BTreeMap<AskId, Waiting>>,
    pub(super) until_known: BTreeMap<AskId, UntilKnown>,
    /// Expected drivers that do not come, and why.
    pub(super) given_up: BTreeMap<DriverName, String>,
    pub(super) stop: Option<StopMode>,
    /// When it was asked to stop.
    pub(super) stop_began: Timestamp,
    /// The end of each driver since then.
    pub(super) steps: Vec<StopStep>,
    /// The number of the latest life of any child. It starts at random, so that lives known to a former life of this machine
    /// have other numbers.
    pub(super) life: Attempt,
}

/// The timeout of calls that only pass something to a child.
pub(super) const HAND_OVER_DEADLINE: Duration = Duration::from_secs(10);
