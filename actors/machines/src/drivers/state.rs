//! What the owner of the drivers is made of, and what it remembers.

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

/// How the owner of the drivers is set up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DriversOptions {
    /// The limits of each driver.
    pub limits: DriverLimits,
    /// How each eventor is set up.
    pub eventor: EventorOptions,
    /// Only these drivers are allowed; `None` allows all that are not blocked.
    pub allowed: Option<BTreeSet<DriverName>>,
    /// These drivers are not allowed. One that still runs from an earlier run is proven, then ended.
    pub blocked: BTreeSet<DriverName>,
    /// These drivers are expected: [`AwaitDrivers`](super::AwaitDrivers) waits for them too, until they are added or given up. None by
    /// default.
    pub expected: BTreeSet<DriverName>,
    /// How many drivers there may be. 256 by default.
    pub drivers_max: usize,
    /// How many tasks may be watched, of all drivers together. 65,536 by default.
    pub tasks_max: usize,
    /// How many questions may wait for drivers, all together. 4,096 by default.
    pub waiting_max: usize,
    /// How often the actor of one driver is started again after it ended unexpectedly.
    pub restart_budget: RestartBudget,
    /// How soon it is started again.
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

/// What outlives a crash of the machine: what the host said and does not say again.
#[doc(hidden)]
#[derive(Debug, Clone, Hash, Default)]
pub struct DriversImage {
    pub(super) specs: BTreeMap<DriverName, DriverSpec>,
    /// Those whose restart was acknowledged and has not been seen to be done.
    pub(super) restarts: BTreeSet<DriverName>,
    /// The tasks that are watched, and the journals that their events go to.
    pub(super) tasks: BTreeMap<DriverName, BTreeMap<TaskKey, JournalId>>,
    /// The number of the latest journal for a handler to come.
    pub(super) parked: u64,
}

impl DriversImage {
    /// Where the events of the tasks go that are watched.
    pub fn journals(&self) -> impl Iterator<Item = JournalId> {
        self.tasks.values().flat_map(|tasks| tasks.values().copied())
    }

    /// Takes a change in.
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

/// One change of that.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum DriversChange {
    /// This driver is wanted.
    Keep(Box<DriverSpec>),
    /// This one is not any more.
    Drop(DriverName),
    /// This driver is to be restarted.
    Restart(DriverName),
    /// That is done.
    Restarted(DriverName),
    /// This task is watched, and its events go to this journal.
    Watch(DriverName, TaskKey, JournalId),
    /// This one is not any more.
    Forget(DriverName, TaskKey),
}

/// Which kind of child it is.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildKind {
    /// A driver.
    Driver,
    /// An eventor.
    Eventor,
}

/// What the owner of the drivers has done for it.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum DriversCall {
    /// Wait until children have ended.
    AwaitEndings,
    /// End every child that there is, by force: none of them is known to this life of the machine.
    Sweep,
    /// Start a driver.
    StartDriver(Attempt, Box<DriverConfig>),
    /// Start an eventor.
    StartEventor(Attempt, DriverName),
    /// Ask a child to stop.
    Stop(Attempt, StopMode),
    /// End a child by force.
    Kill(Attempt),
    /// Have a driver brought anew, as the request with this number.
    RestartNow(Attempt, Attempt),
    /// Ask a driver what went wrong lately.
    AskTroubles(Attempt, DriverName, AskId),
    /// Ask an eventor for the latest events of a task.
    AskRecent(Attempt, TaskKey, AskId),
    /// Tell an eventor which generation to read events of.
    SubscribeTo(Attempt, Generation),
    /// Tell an eventor which tasks are watched, and whether they were before.
    Watch(Attempt, Vec<(TaskKey, JournalId)>, bool),
    /// Tell an eventor that a task is not watched any more.
    Forget(Attempt, TaskKey),
    /// Give what waits in the first journal to the second, and all that comes for it later.
    HandOver(JournalId, JournalId),
    /// End a journal: its reader gets no more events.
    End(JournalId),
}

/// What came of a [`DriversCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum DriversOutcome {
    /// These children have ended; at least one.
    Ended(Vec<ChildEnded>),
    /// What went wrong lately with a driver, and who calls it; nothing if it could not be asked.
    Described(Vec<Folded>, LeasedCalls),
    /// What an eventor answered; nothing if it could not be asked.
    Told(Vec<Folded>),
    /// A driver crashed over the request for its restart, or could not take it.
    NotTaken,
    /// It was done.
    Done,
}

/// A child has ended.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildEnded {
    /// Of which driver.
    pub driver: DriverName,
    /// Which kind of child.
    pub kind: ChildKind,
    /// Which life.
    pub life: Attempt,
    /// How.
    pub ending: Ending,
}

/// What the owner of the drivers waits for.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DriversTimer {
    /// The endings of children are waited for again.
    AwaitEndings,
    /// This driver should have ended by now.
    Stop(DriverName),
    /// The actor of this driver is to be started again.
    Restart(DriverName),
    /// The actor of this driver is asked again for the restart of this number.
    AskForRestart(DriverName, Attempt),
    /// The eventor of this driver is to be started again.
    RestartEventor(DriverName),
    /// The timeout of a caller that waits for this driver.
    Dispense(DriverName, AskId),
    /// The timeout of a caller that waits for the state of the drivers.
    AwaitDrivers(AskId),
}

/// How far a requested restart has got. Until it is done, the next life of the driver's actor is asked for it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Restarting {
    /// None is due.
    No,
    /// Its actor has not heard of it yet: what that reported before says nothing of the driver that is to come.
    Asked,
    /// Its actor has heard of it, and has not reported that it is done.
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
    /// How far that has got.
    pub(super) restarting: Restarting,
    /// What comes after its end, if anything.
    pub(super) next: Option<DriverSpec>,
    /// The callers that wait for its end.
    pub(super) leaving: Vec<AskId>,
}

impl Entry {
    pub(super) fn serves(&self) -> bool {
        self.config.mode == DriverMode::Serve
    }

    /// Why no process of it is launched, nor of the one that is to come in its place.
    pub(super) fn not_launched(&self) -> Option<String> {
        self.next.as_ref().unwrap_or(&self.config.spec).not_launched.clone()
    }

    /// A restart was requested: nothing is known of what comes of it.
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
        // Its actor says the same when it hears of the request, which is no news then.
        report.restart = self.restart;
        report.stage = if report.pid.is_some() { DriverStage::Stopping } else { DriverStage::Recalling };
    }

    /// The life of its actor that has not heard yet of the restart that was requested last, and the number of that.
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

    /// Notes that its actor has heard of the restart. True if its report shows that this is done: nothing runs any more of what ran when
    /// it was requested.
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
    /// Of which generation it has the events.
    pub(super) attends: Option<Generation>,
    /// Whether it is not to come again when it has ended.
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
    /// Drivers whose tasks were watched by a former life of this machine, and whose eventor has not been started since.
    pub(super) served: BTreeSet<DriverName>,
    pub(super) dispensing: BTreeMap<DriverName, BTreeMap<AskId, Waiting>>,
    pub(super) until_known: BTreeMap<AskId, UntilKnown>,
    /// Expected drivers that do not come, and why.
    pub(super) given_up: BTreeMap<DriverName, String>,
    pub(super) stop: Option<StopMode>,
    /// When it was asked to stop.
    pub(super) stop_began: Timestamp,
    /// What became of each driver since.
    pub(super) steps: Vec<StopStep>,
    /// The number of the latest life of any child. It starts at random, so that lives known to a former life of this machine
    /// have other numbers.
    pub(super) life: Attempt,
}

/// How long the calls may take that only hand something to a child.
pub(super) const HAND_OVER_DEADLINE: Duration = Duration::from_secs(10);
