//! What happens when: chance plans the life of a company.
//!
//! Whatever can happen of itself is planned at some later instant, and what was planned for an earlier one happens first: so
//! messages overtake each other as they would between threads, answers come late, and hosts die at any instant.

mod drivers;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::super::instances::Behaviour;
use super::super::registry::Outcome;
use super::chance::Chance;
use super::company::{Company, Curtain, Signal};
use super::event::{DriverDoing, Event, Happening};
use super::faults::{Fault, Faults};
use crate::vocabulary::Timestamp;

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// What is planned, in order of time and, within an instant, of when it was planned.
#[derive(Debug)]
pub(super) struct Plan {
    chance: Chance,
    faults: Faults,
    heap: BinaryHeap<Reverse<(Timestamp, u64, Planned)>>,
    planned: u64,
    latest_taken: u64,
    /// What is planned only once at a time, with its instant.
    once: BTreeMap<Once, Timestamp>,
    /// Until when the disk is full.
    full_until: Timestamp,
    /// How often each fault was done, by its place.
    pub(super) done: [u64; Fault::ALL.len()],
    /// How often something came before what had set out earlier.
    pub(super) overtaken: u64,
}

/// Something that is planned. What exactly comes of it is decided when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Planned {
    /// An allocation does something.
    Act(u32),
    /// Somebody asks something.
    Question,
    /// Something breaks.
    Break,
    Of(Once),
    Report(u32),
    Checked,
    Answer(u32),
    /// The host says something about a driver.
    Order(u32),
    /// Something happens to a task of a driver.
    Happen(u32),
    /// Handlers of tasks read.
    Read(u32),
    /// What an actor of a driver said arrives.
    Mail(u32, DriverDoing),
}

/// What is planned once at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Once {
    Settle,
    Load,
    Feed,
    Endings,
    InventoryFeed,
    Wake,
    Registry,
    Instances,
    Inventory,
    Instance(u32),
    Driver(u32, DriverDoing),
    DriversEndings,
    Drivers,
    Start,
}

impl Plan {
    pub(super) fn new(seed: u64, faults: Faults, company: &Company) -> Self {
        let mut plan = Self {
            chance: Chance::from_seed(seed),
            faults,
            heap: BinaryHeap::new(),
            planned: 0,
            latest_taken: 0,
            once: BTreeMap::new(),
            full_until: Timestamp::default(),
            done: [0; Fault::ALL.len()],
            overtaken: 0,
        };
        let now = company.now;
        for who in 0..company.cast.allocations() {
            let within = plan.chance.below(5_000_000);
            plan.add(now + micros(within), Planned::Act(who));
        }
        for driver in 0..company.depot.drivers() {
            for planned in [Planned::Order(driver), Planned::Happen(driver), Planned::Read(driver)] {
                let within = plan.chance.below(1_000_000);
                plan.add(now + micros(within), planned);
            }
        }
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

    /// What happens next.
    pub(super) fn next(&mut self, company: &Company) -> Option<Event> {
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
            if let Some(what) = self.decide(at, what, company) {
                return Some(Event { at, what });
            }
        }
    }

    /// Plans what comes of what has just happened.
    pub(super) fn heed(&mut self, company: &mut Company) {
        let now = company.now;
        for signal in std::mem::take(&mut company.signals) {
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

    fn ready(&mut self, now: Timestamp, what: Happening) {
        let pause = match what {
            Happening::Settle(..) => 500 + self.chance.below(4_000),
            Happening::Load(_) => 100 + self.chance.below(2_000),
            Happening::Start => 100_000 + self.chance.below(3_000_000),
            _ => 1 + self.chance.below(1_500),
        };
        let at = now + micros(pause);
        match what {
            Happening::Report(plugin) => self.add(at, Planned::Report(plugin)),
            Happening::Driver(driver, mail @ (DriverDoing::Mail | DriverDoing::EventorMail)) => {
                self.add(at, Planned::Mail(driver, mail));
            }
            Happening::Checked(_) => self.add(at + micros(20_000), Planned::Checked),
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
            1_000_000 + self.chance.below(9_000_000)
        } else {
            300 + self.chance.below(20_000)
        };
        self.add(now + micros(pause), Planned::Answer(plugin));
    }

    /// Whether a fault is done that is done once in so many times, and counts it.
    fn does(&mut self, fault: Fault, once_in: u64) -> bool {
        let does = self.faults.has(fault) && self.chance.once_in(once_in);
        self.done[fault as usize] += u64::from(does);
        does
    }

    // === What it comes to ===

    fn decide(&mut self, at: Timestamp, what: Planned, company: &Company) -> Option<Happening> {
        match what {
            Planned::Act(who) => {
                let pause = micros(50_000 + self.chance.below(4_000_000));
                self.add(at + pause, Planned::Act(who));
                Some(self.act(who))
            }
            Planned::Question => {
                let pause =
                    micros(self.chance.below(40_000_000) / u64::from(company.cast.allocations().max(1)));
                self.add(at + pause, Planned::Question);
                Some(self.question(company))
            }
            Planned::Break => {
                let pause = micros(self.chance.below(2_000_000));
                self.add(at + pause, Planned::Break);
                self.breakage(at, company)
            }
            Planned::Report(plugin) => Some(Happening::Report(plugin)),
            Planned::Checked => Some(Happening::Checked(!self.chance.once_in(3))),
            Planned::Answer(plugin) => Some(Happening::Answer(plugin, self.behaviour())),
            Planned::Order(driver) => {
                let pause = micros(500_000 + self.chance.below(6_000_000));
                self.add(at + pause, Planned::Order(driver));
                Some(Happening::Driver(driver, self.order()))
            }
            Planned::Happen(driver) => {
                let pause = micros(5_000 + self.chance.below(300_000));
                self.add(at + pause, Planned::Happen(driver));
                Some(Happening::Driver(driver, DriverDoing::Event(self.task())))
            }
            Planned::Read(driver) => {
                let pause = micros(20_000 + self.chance.below(1_500_000));
                self.add(at + pause, Planned::Read(driver));
                Some(Happening::Driver(driver, DriverDoing::Read))
            }
            Planned::Mail(driver, mail) => Some(Happening::Driver(driver, mail)),
            Planned::Of(once) => self.of_itself(at, once, company),
        }
    }

    fn of_itself(&mut self, at: Timestamp, once: Once, company: &Company) -> Option<Happening> {
        match once {
            Once::Settle => self.settle(at, company),
            Once::Load => Some(Happening::Load(!self.does(Fault::Disk, 8))),
            Once::Feed => Some(Happening::Feed),
            Once::Endings => Some(Happening::Endings),
            Once::InventoryFeed => Some(Happening::InventoryFeed),
            Once::Wake => Some(Happening::Wake),
            Once::Registry => Some(Happening::RegistryTimers),
            Once::Instances => Some(Happening::InstancesTimers),
            Once::Inventory => Some(Happening::InventoryTimers),
            Once::Instance(plugin) => Some(Happening::InstanceTimers(plugin)),
            Once::Driver(driver, doing) => Some(Happening::Driver(driver, self.conduct(doing))),
            Once::DriversEndings => Some(Happening::DriversEndings),
            Once::Drivers => Some(Happening::DriversTimers),
            Once::Start => Some(Happening::Start),
        }
    }

    /// What an allocation says: it comes, changes, comes again, goes, or goes though it is not there.
    fn act(&mut self, who: u32) -> Happening {
        match self.chance.below(10) {
            0..=5 => Happening::Register(who, u8::from(self.chance.once_in(4))),
            _ => Happening::Deregister(who),
        }
    }

    fn question(&mut self, company: &Company) -> Happening {
        let plugin = u32::try_from(self.chance.below(company.cast.halves().into())).unwrap_or(0);
        match self.chance.below(100) {
            0..=29 => Happening::Describe(plugin),
            30..=39 => self.whereabouts(plugin, company),
            40..=59 => Happening::Wait(plugin, u32::try_from(self.chance.below(5_000)).unwrap_or(0)),
            60..=84 => Happening::Dispense(plugin),
            85..=94 => Happening::Check(plugin),
            95..=97 => Happening::AwaitRetired(plugin),
            _ if self.chance.once_in(u64::from(company.cast.allocations()) / 16) => {
                if self.chance.once_in(2) { Happening::List } else { Happening::TakeInventory }
            }
            _ => Happening::Describe(plugin),
        }
    }

    /// Mostly of one that serves the plugin, or did.
    fn whereabouts(&mut self, plugin: u32, company: &Company) -> Happening {
        let who = u32::try_from(self.chance.below(company.cast.allocations().into())).unwrap_or(0);
        let served = company.cast.served_by(who);
        let meant = served.first().filter(|_| !self.chance.once_in(8));
        Happening::RegistrationOf(meant.map_or(plugin, |meant| company.cast.number_of(meant)), who)
    }

    /// How a plugin meets a call. Each way of meeting it badly is a fault of its own.
    fn behaviour(&mut self) -> Behaviour {
        let ways = [
            (Fault::Hang, Behaviour::Hangs),
            (Fault::Die, Behaviour::Dies),
            (Fault::Lie, Behaviour::Lies),
            (Fault::Lie, Behaviour::Mistakes),
            (Fault::Lie, Behaviour::Babbles),
            (Fault::NotReady, Behaviour::NotReady),
            (Fault::Fail, Behaviour::Fails),
            (Fault::Fail, Behaviour::Declines),
        ];
        let (fault, behaviour) = ways[usize::try_from(self.chance.below(8)).unwrap_or(0)];
        if self.does(fault, 12) { behaviour } else { Behaviour::Well }
    }

    fn settle(&mut self, at: Timestamp, company: &Company) -> Option<Happening> {
        let waiting = u32::try_from(company.registry.books.waiting()).unwrap_or(u32::MAX);
        if waiting == 0 {
            return None;
        }
        let is_full = at < self.full_until;
        let outcome = if is_full || self.does(Fault::Disk, 60) {
            if !is_full && self.chance.once_in(3) { Outcome::FailedButWritten } else { Outcome::Failed }
        } else {
            Outcome::Written
        };
        let count = if self.chance.once_in(3) {
            1 + u32::try_from(self.chance.below(waiting.into())).unwrap_or(0)
        } else {
            waiting
        };
        Some(Happening::Settle(count, outcome))
    }

    fn breakage(&mut self, at: Timestamp, company: &Company) -> Option<Happening> {
        if company.curtain != Curtain::Up {
            return None;
        }
        let plugin = u32::try_from(self.chance.below(company.cast.halves().into())).unwrap_or(0);
        let waiting = u64::try_from(company.registry.books.waiting()).unwrap_or(0);
        let drivers = company.depot.drivers();
        let driver = u32::try_from(self.chance.below(drivers.into())).unwrap_or(0);
        if drivers > 0 && self.does(Fault::Exit, 6) {
            return Some(Happening::Driver(driver, DriverDoing::Exit));
        }
        if drivers > 0 && self.does(Fault::Stream, 2) {
            return Some(Happening::Driver(driver, self.broken_stream()));
        }
        if self.does(Fault::FullDisk, 20) {
            self.full_until = at + micros(self.chance.below(3_000_000));
            return Some(Happening::DiskFull);
        }
        if self.does(Fault::Crash, 3) {
            return Some(match self.chance.below(6 + u64::from(drivers.min(5))) {
                0..=1 => Happening::CrashRegistry,
                2 => Happening::CrashInstances,
                3 => Happening::CrashInventory,
                4 => Happening::CrashInstance(plugin),
                5 => Happening::Fall(plugin),
                6 => Happening::CrashDrivers,
                7 => Happening::Driver(driver, DriverDoing::Crash),
                8 => Happening::Driver(driver, DriverDoing::CrashEventor),
                9 => Happening::Driver(driver, DriverDoing::Fall),
                _ => Happening::Driver(driver, DriverDoing::FallEventor),
            });
        }
        if self.does(Fault::KillHost, 30) {
            return Some(Happening::KillHost(u32::try_from(self.chance.below(waiting + 1)).unwrap_or(0)));
        }
        self.does(Fault::Shutdown, 60)
            .then(|| if self.chance.once_in(2) { Happening::Stop } else { Happening::Detach })
    }

    /// The host is gone: what was planned of its actors will find nobody.
    pub(super) fn forget_the_host(&mut self) {
        self.once.clear();
    }
}

fn once_of(what: Happening) -> Option<Once> {
    Some(match what {
        Happening::Settle(..) => Once::Settle,
        Happening::Load(_) => Once::Load,
        Happening::Feed => Once::Feed,
        Happening::Endings => Once::Endings,
        Happening::InventoryFeed => Once::InventoryFeed,
        Happening::Wake => Once::Wake,
        Happening::RegistryTimers => Once::Registry,
        Happening::InstancesTimers => Once::Instances,
        Happening::InventoryTimers => Once::Inventory,
        Happening::InstanceTimers(plugin) => Once::Instance(plugin),
        Happening::Driver(driver, doing) => Once::Driver(driver, doing),
        Happening::DriversEndings => Once::DriversEndings,
        Happening::DriversTimers => Once::Drivers,
        Happening::Start => Once::Start,
        _ => return None,
    })
}
