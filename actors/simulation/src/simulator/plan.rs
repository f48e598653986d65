//! Plans the life of a host at random.
//!
//! Each event that can happen by itself is planned for a later instant, and events happen in the order of their instants: so
//! messages overtake each other as between threads, answers arrive late, and hosts die at any instant.

mod agenda;

mod breakage;
mod database;
mod disk;
mod drivers;
mod processes;
mod questions;
mod supervision;
mod volumes;
mod workloads;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use callboard_actors::vocabulary::Timestamp;

use self::agenda::{Once, Planned, once_of};
use self::drivers::DriverTurn;
use super::super::writes::Outcome;
use super::database::DatabaseDoing;
use super::disk::DiskTrouble;
use super::event::{DriverDoing, Event, EventKind};
use super::faults::{Fault, Faults};
use super::host_model::{HostModel, Signal};
use super::processes::ProcessesDoing;
use super::volumes::VolumeDoing;
use crate::random::Random;

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// The planned events, in order of time and, within an instant, of planning.
#[derive(Debug)]
pub(super) struct Plan {
    random: Random,
    faults: Faults,
    heap: BinaryHeap<Reverse<(Timestamp, u64, Planned)>>,
    planned: u64,
    latest_taken: u64,
    /// The events that are planned only once at a time, with their instants.
    once: BTreeMap<Once, Timestamp>,
    /// The present fault of the disk, and its end.
    disk: Option<(DiskTrouble, Timestamp)>,
    /// How often each fault happened, by its place.
    pub(super) done: [u64; Fault::ALL.len()],
    /// How often an event overtook an event with an earlier start.
    pub(super) overtaken: u64,
}

impl Plan {
    pub(super) fn new(seed: u64, faults: Faults, host_model: &HostModel) -> Self {
        let mut plan = Self {
            random: Random::from_seed(seed),
            faults,
            heap: BinaryHeap::new(),
            planned: 0,
            latest_taken: 0,
            once: BTreeMap::new(),
            disk: None,
            done: [0; Fault::ALL.len()],
            overtaken: 0,
        };
        let now = host_model.now;
        for who in 0..host_model.names.allocations() {
            let within = plan.random.below(5_000_000);
            plan.add(now + micros(within), Planned::Act(who));
        }
        plan.begin_drivers(host_model);
        plan.begin_processes(host_model);
        plan.begin_volumes(host_model);
        plan.begin_family(host_model);
        plan.add(now, Planned::Question);
        plan.add(now + Duration::from_secs(1), Planned::Break);
        plan
    }

    fn add(&mut self, at: Timestamp, what: Planned) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, what)));
    }

    fn add_once(&mut self, at: Timestamp, once: Once) {
        let is_planned = self.once.get(&once).is_some_and(|planned| *planned <= at);
        if !is_planned {
            self.once.insert(once, at);
            self.add(at, Planned::Of(once));
        }
    }

    /// The next event.
    pub(super) fn next(&mut self, host_model: &HostModel) -> Option<Event> {
        loop {
            let Reverse((at, number, what)) = self.heap.pop()?;
            if number < self.latest_taken {
                self.overtaken += 1;
            }
            self.latest_taken = self.latest_taken.max(number);
            if let Planned::Of(once) = what
                && self.once.get(&once) == Some(&at)
            {
                self.once.remove(&once);
            }
            if let Some(what) = self.decide(at, what, host_model) {
                let what = if host_model.database.is_some() { self.in_database(what) } else { what };
                return Some(Event { at, what });
            }
        }
    }

    /// Plans the events that follow from the last one.
    pub(super) fn heed(&mut self, host_model: &mut HostModel) {
        let now = host_model.now;
        for signal in std::mem::take(&mut host_model.signals) {
            match signal {
                Signal::Called(plugin) => self.called(now, plugin),
                Signal::Due(what, at) => {
                    if let Some(once) = once_of(what) {
                        self.add_once(at.max(now), once);
                    }
                }
                Signal::Ready(what) => self.ready(now, what),
            }
        }
    }

    fn ready(&mut self, now: Timestamp, what: EventKind) {
        let pause = match what {
            EventKind::Settle(..) => 500 + self.random.below(4_000) + self.commit_waits(),
            EventKind::Load(_) => 100 + self.random.below(2_000),
            EventKind::Start => 100_000 + self.random.below(3_000_000),
            EventKind::Processes(doing) => self.pause_among_processes(doing),
            EventKind::Volume(_, doing) => self.pause_in_volume(doing),
            _ => 1 + self.random.below(1_500),
        };
        let mut at = now + micros(pause);
        if matches!(
            what,
            EventKind::Load(_)
                | EventKind::Processes(ProcessesDoing::Load(_))
                | EventKind::Volume(_, VolumeDoing::Load)
        ) {
            at = self.read_at(at);
        }
        match what {
            EventKind::Report(plugin) => self.add(at, Planned::Report(plugin)),
            EventKind::Driver(driver, mail @ (DriverDoing::Mail | DriverDoing::EventorMail)) => {
                self.add(at, Planned::Driver(driver, DriverTurn::Mail(mail)));
            }
            EventKind::Checked(_) => self.add(at + micros(20_000), Planned::Checked),
            other => {
                if let Some(once) = once_of(other) {
                    self.add_once(at, once);
                }
            }
        }
    }

    /// A plugin answers soon, or slowly.
    fn called(&mut self, now: Timestamp, plugin: u32) {
        let pause = if self.does(Fault::Slow, 40) {
            1_000_000 + self.random.below(9_000_000)
        } else {
            300 + self.random.below(20_000)
        };
        self.add(now + micros(pause), Planned::Answer(plugin));
    }

    /// Whether a fault happens that happens once in this many times. Counts it.
    fn does(&mut self, fault: Fault, once_in: u64) -> bool {
        let does = self.faults.has(fault) && self.random.once_in(once_in);
        self.done[fault as usize] += u64::from(does);
        does
    }

    /// The behaviour in a call: one of these bad ways, if its fault happens, once in this many times, and otherwise the good way.
    fn meets<T: Copy>(&mut self, ways: &[(Fault, T)], once_in: u64, well: T) -> T {
        let (fault, way) = self.random.one_of(ways);
        if self.does(fault, once_in) { way } else { well }
    }

    // === Decisions ===

    fn decide(&mut self, at: Timestamp, what: Planned, host_model: &HostModel) -> Option<EventKind> {
        match what {
            Planned::Act(who) => {
                let pause = micros(50_000 + self.random.below(4_000_000));
                self.add(at + pause, Planned::Act(who));
                self.act(at, who, host_model)
            }
            Planned::Hurry(who) => self.act(at, who, host_model),
            Planned::Question => {
                let pause =
                    micros(self.random.below(40_000_000) / u64::from(host_model.names.allocations().max(1)));
                self.add(at + pause, Planned::Question);
                Some(self.question(host_model))
            }
            Planned::DiskSound => Some(self.disk_is_sound()),
            Planned::DiskLate => Some(EventKind::DiskLate),
            Planned::Break => {
                let pause = micros(self.random.below(2_000_000));
                self.add(at + pause, Planned::Break);
                self.breakage(at, host_model)
            }
            Planned::Report(plugin) => Some(EventKind::Report(plugin)),
            Planned::Checked => Some(EventKind::Checked(!self.random.once_in(3))),
            Planned::Answer(plugin) => Some(EventKind::Answer(plugin, self.behaviour())),
            Planned::Driver(driver, turn) => Some(self.turn_of_driver(at, driver, turn)),
            Planned::ProcessTurn(process) => Some(self.process_turn(at, process)),
            Planned::Volume(number) => self.turn_of_volume(at, number, host_model),
            Planned::Family(turn) => self.turn_of_family(at, turn, host_model),
            Planned::Of(once) => self.of_itself(once, host_model),
        }
    }

    fn of_itself(&mut self, once: Once, host_model: &HostModel) -> Option<EventKind> {
        match once {
            Once::Settle => self.settle(host_model),
            Once::Load => Some(EventKind::Load(!self.does(Fault::Disk, 8))),
            Once::Feed => Some(EventKind::Feed),
            Once::Endings => Some(EventKind::Endings),
            Once::InventoryFeed => Some(EventKind::InventoryFeed),
            Once::Wake => Some(EventKind::Wake),
            Once::Registry => Some(EventKind::RegistryTimers),
            Once::Instances => Some(EventKind::InstancesTimers),
            Once::Inventory => Some(EventKind::InventoryTimers),
            Once::Instance(plugin) => Some(EventKind::InstanceTimers(plugin)),
            Once::Driver(driver, doing) => Some(EventKind::Driver(driver, self.conduct(doing))),
            Once::Workload(who, doing) => {
                Some(EventKind::Workload(who, self.workload_goes_on(who, doing, host_model)?))
            }
            Once::Workloads(doing) => Some(EventKind::Workloads(doing)),
            Once::DriversEndings => Some(EventKind::DriversEndings),
            Once::Drivers => Some(EventKind::DriversTimers),
            Once::Processes(doing) => self.comes_of(doing, host_model),
            Once::Volume(number, doing) => {
                Some(EventKind::Volume(number, self.comes_of_volume(number, doing, host_model)))
            }
            Once::Family(number, doing) => self.family_goes_on(number, doing, host_model),
            Once::Start => Some(EventKind::Start),
            Once::Tell => Some(EventKind::Database(DatabaseDoing::Tell)),
        }
    }

    fn settle(&mut self, host_model: &HostModel) -> Option<EventKind> {
        let (count, outcome) = self.commit(host_model.registry.store.waiting())?;
        Some(EventKind::Settle(count, outcome))
    }

    /// How many of the waiting writes settle as one commit, and how.
    fn commit(&mut self, waiting: usize) -> Option<(u32, Outcome)> {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        if waiting == 0 {
            return None;
        }
        let outcome = if self.does(Fault::Disk, 60) {
            if self.random.once_in(3) { Outcome::FailedButWritten } else { Outcome::Failed }
        } else {
            Outcome::Written
        };
        let count = if self.random.once_in(3) { 1 + self.random.place(waiting) } else { waiting };
        Some((count, outcome))
    }

    /// The host is gone: events that were planned for its actors will find no actor.
    pub(super) fn forget_the_host(&mut self) {
        self.once.clear();
        self.disk = None;
    }
}
