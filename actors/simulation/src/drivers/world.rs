//! One driver with its owner, its eventor, its process and the handler of a task: small enough to try every order of events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::{DriverSpec, TaskKey};
use callboard_actors::drivers::{
    AddDriver, AnnounceTask, ChildKind, DispenseDriver, DriversOptions, ForgetTaskHandler, RemoveDriver,
    RestartDriver, Wanted,
};
use callboard_actors::process::{Executable, Lifetime, ProcessSpec};
use callboard_actors::vocabulary::{AllocationId, Attempt, DriverName, Moment, TaskName, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{Violation, found, violation};
use super::super::search::{Play, World};
use super::event::{DriversBounds, DriversEvent, Order};
use super::model::{Conduct, DriversModel, DriversModelOptions, DriversTampers};

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct DriversWorld {
    model: DriversModel,
    now: Timestamp,
    left: DriversBounds,
    lives: u64,
    askers: u64,
    /// The callers that wait for an answer, and whether the driver was wanted before their order.
    unanswered: BTreeMap<u64, bool>,
    is_stopping: bool,
    is_wanted: bool,
    /// Whether a handler registered after the driver was removed.
    is_awaited: bool,
}

impl DriversWorld {
    /// A world with these bounds, with faults in the machines if any are given.
    #[must_use]
    pub fn new(bounds: DriversBounds, tampers: DriversTampers) -> Self {
        let mut process = ProcessSpec::new(Executable::at("/bin/driver"));
        if bounds.survives {
            process.lifetime = Lifetime::Surviving;
        }
        let mut drivers = DriversOptions::default();
        drivers.eventor.journal_items = bounds.journal.0;
        drivers.limits.backoff.jitter_percent = 0;
        drivers.limits.ping_every = drivers.limits.ping_every.filter(|_| bounds.pings);
        drivers.eventor.backoff.jitter_percent = 0;
        drivers.restart_backoff.jitter_percent = 0;
        let options = DriversModelOptions {
            drivers,
            specs: Arc::new([DriverSpec::new(driver(), process)]),
            tasks: Arc::new([task()]),
            unnumbered_every: u32::from(!bounds.keeps_positions),
            journal_items: bounds.journal.0,
            tampers,
        };
        let mut world = Self {
            model: DriversModel::new(options),
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
            lives: 1,
            askers: 0,
            unanswered: BTreeMap::new(),
            is_stopping: false,
            is_wanted: false,
            is_awaited: false,
        };
        world.begin();
        if bounds.is_serving {
            // A machine with a deliberate fault may break a law here; it is found when the first event is played.
            let _: Result<(), Violation> = world.calm_down();
        }
        world
    }

    /// The numbers of the owner's lives start at random.
    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: self.lives << 36 | 500_000 }
    }

    fn begin(&mut self) {
        self.model.load(self.moment());
        for order in self.left.begin {
            self.say(*order);
        }
        self.hear_answers();
    }

    fn say(&mut self, order: Order) {
        self.askers += 1;
        self.unanswered.insert(self.askers, self.is_wanted);
        let (moment, asker, driver) = (self.moment(), self.askers, driver());
        match order {
            Order::Add => {
                self.is_wanted = true;
                let spec = self.model.spec(&driver);
                self.model.ask(moment, asker, AddDriver { spec });
            }
            Order::Remove => {
                (self.is_wanted, self.is_awaited) = (false, false);
                self.model.ask(moment, asker, RemoveDriver { name: driver });
            }
            Order::Restart => self.model.ask(moment, asker, RestartDriver { name: driver }),
            Order::Dispense => {
                let (wanted, within) = (Wanted::Healthy, Duration::from_secs(3));
                self.model.ask(moment, asker, DispenseDriver { name: driver, wanted, within });
            }
            Order::Announce => self.model.ask(moment, asker, AnnounceTask { driver, task: task() }),
            Order::Handle => {
                self.is_awaited = true;
                self.model.handler(moment, asker, &driver, 0);
            }
            Order::Forget => self.model.ask(moment, asker, ForgetTaskHandler { driver, task: task() }),
        }
    }

    fn hear_answers(&mut self) -> Option<u64> {
        let mut twice = None;
        for (asker, answer) in std::mem::take(&mut self.model.answered) {
            match self.unanswered.remove(&asker) {
                // A refused order had no effect.
                Some(was_wanted) if answer.is_none() => self.is_wanted = was_wanted,
                Some(_) => {}
                None if asker == 0 => {}
                None => twice = Some(asker),
            }
        }
        twice
    }

    fn hear(&mut self) -> Result<(), Violation> {
        while self.left.is_prompt
            && let Some(life) = self.model.mail().into_iter().next()
        {
            self.model.deliver_mail(self.moment(), life);
        }
        self.model.set_off.clear();
        if let Some(asker) = self.hear_answers() {
            return violation(Law::Shell7, format!("question {asker} was answered twice"));
        }
        if self.model.has_ended {
            self.unanswered.clear();
        }
        if !self.left.journal.1 {
            self.model.handlers_read(&driver());
        }
        found(self.model.broken())
    }

    /// All messages in flight arrive, and every call returns with a good result. False if there was nothing.
    fn goes_well(&mut self) -> Result<bool, Violation> {
        if let Some(life) = self.model.mail().into_iter().next() {
            self.take(&DriversEvent::Mail(life))?;
        } else if self.model.has_endings() {
            self.take(&DriversEvent::Endings)?;
        } else {
            let can = |(life, number): &(Attempt, u64)| self.model.can_answer(*life, *number, Conduct::Well);
            let silent =
                |(life, number): &(Attempt, u64)| self.model.can_answer(*life, *number, Conduct::IsSilent);
            let calls = self.model.calls();
            if let Some((life, number)) = calls.iter().copied().find(can) {
                self.take(&DriversEvent::Answer(life, number, Conduct::Well))?;
            } else if !self.model.is_process_running(&driver())
                && let Some((life, number)) = calls.into_iter().find(silent)
            {
                self.answer(life, number, Conduct::IsSilent);
                self.hear()?;
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn calm_down(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        while calm < 24 && !self.model.has_ended {
            if self.goes_well()? {
                continue;
            }
            if self.model.next_timer().is_none() {
                break;
            }
            calm += 1;
            self.pass();
            self.hear()?;
        }
        Ok(())
    }

    fn pass(&mut self) {
        self.now = self.model.next_timer().unwrap_or(self.now).max(self.now);
        self.model.timers_due(self.moment());
    }

    fn answer(&mut self, life: Attempt, number: u64, conduct: Conduct) {
        self.model.answer(self.moment(), life, number, conduct);
    }

    /// Checks the final state of every driver once faults have stopped.
    fn check_end(&mut self) -> Result<(), Violation> {
        self.model.check_calm();
        self.hear()?;
        if !self.unanswered.is_empty() {
            let askers: Vec<_> = self.unanswered.keys().collect();
            return violation(Law::Shell7, format!("questions {askers:?} were never answered"));
        }
        if self.is_stopping {
            let left = self.model.children_count();
            return match (self.model.has_ended, left) {
                (true, 0) => Ok(()),
                (has_ended, left) => {
                    violation(Law::Shd6, format!("told to stop: ended {has_ended}, {left} actors left"))
                }
            };
        }
        let driver = driver();
        let is_running = self.model.is_process_running(&driver);
        let kinds = [ChildKind::Driver, ChildKind::Eventor].map(|kind| self.model.life_of(&driver, kind));
        if self.is_wanted {
            if !self.model.serves(&driver) || !is_running || kinds.contains(&None) {
                let what = format!(
                    "all is calm: it serves {}, its process runs {is_running}, its actors are {kinds:?}",
                    self.model.serves(&driver)
                );
                return violation(Law::Hlt5, what);
            }
        } else if self.model.children_count() > 0 || is_running && !self.model.is_excused() {
            let what = format!("it was removed: its process runs {is_running}, its actors are {kinds:?}");
            return violation(Law::S4, what);
        } else if self.model.has_handlers(&driver) && !self.is_awaited {
            return violation(Law::S4, "it was removed, and a handler waits for what never comes");
        }
        Ok(())
    }
}

impl World for DriversWorld {
    fn events(&self) -> Vec<DriversEvent> {
        let mut events = Vec::new();
        if self.left.kills > 0 {
            events.push(DriversEvent::Kill);
        }
        if self.model.has_ended {
            return events;
        }
        events.extend(self.model.mail().into_iter().map(DriversEvent::Mail));
        events.extend(self.model.has_endings().then_some(DriversEvent::Endings));
        for (life, number) in self.model.calls() {
            let faults = self.left.faults.1.iter().filter(|_| self.left.faults.0 > 0);
            let ways = std::iter::once(&Conduct::Well).chain(faults);
            let possible = ways.filter(|way| self.model.can_answer(life, number, **way));
            events.extend(possible.map(|way| DriversEvent::Answer(life, number, *way)));
        }
        let is_running = self.model.is_process_running(&driver());
        events.extend((self.left.exits > 0 && is_running).then_some(DriversEvent::Exit));
        events.extend((self.left.events > 0 && is_running).then_some(DriversEvent::Happen));
        events.extend((self.left.journal.1 && self.model.has_unread()).then_some(DriversEvent::Read));
        if self.left.orders.0 > 0 && !self.is_stopping {
            events.extend(self.left.orders.1.iter().map(|order| DriversEvent::Say(*order)));
        }
        if self.left.pauses > 0 && self.model.next_timer().is_some() {
            events.push(DriversEvent::Pass);
        }
        if self.left.crashes > 0 {
            events.push(DriversEvent::CrashOwner);
            for life in self.model.lives() {
                events.extend([DriversEvent::CrashChild(life), DriversEvent::Fall(life)]);
            }
        }
        events.extend(self.left.stops.iter().map(|mode| DriversEvent::Stop(*mode)));
        events
    }
}

impl Play for DriversWorld {
    type Event = DriversEvent;

    fn can(&self, event: &DriversEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &DriversEvent) -> Result<(), Violation> {
        let moment = self.moment();
        match *event {
            DriversEvent::Mail(life) => {
                self.model.deliver_mail(moment, life);
            }
            DriversEvent::Endings => self.model.deliver_endings(moment),
            DriversEvent::Answer(life, number, conduct) => {
                self.left.faults.0 -= u8::from(conduct != Conduct::Well);
                self.answer(life, number, conduct);
            }
            DriversEvent::Exit => {
                self.left.exits -= 1;
                self.model.exits(&driver());
            }
            DriversEvent::Happen => {
                self.left.events -= 1;
                self.model.happens(&driver(), 0);
            }
            DriversEvent::Read => self.model.handlers_read(&driver()),
            DriversEvent::Say(order) => {
                self.left.orders.0 -= 1;
                self.say(order);
            }
            DriversEvent::Pass => {
                self.left.pauses -= 1;
                self.pass();
            }
            DriversEvent::CrashOwner => {
                self.left.crashes -= 1;
                self.lives += 1;
                self.model.crash_owner();
            }
            DriversEvent::CrashChild(life) => {
                self.left.crashes -= 1;
                self.model.crash_child(life);
            }
            DriversEvent::Fall(life) => {
                self.left.crashes -= 1;
                self.model.falls(moment, life);
            }
            DriversEvent::Stop(mode) => {
                self.left.stops = &[];
                self.is_stopping = true;
                self.model.request_stop(moment, mode);
            }
            DriversEvent::Kill => {
                self.left.kills -= 1;
                self.lives += 1;
                (self.is_stopping, self.is_wanted, self.is_awaited) = (false, false, false);
                self.unanswered.clear();
                self.model.next_run();
                self.begin();
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        self.calm_down()?;
        self.check_end()
    }
}

fn driver() -> DriverName {
    DriverName::new("exec").expect("it is a name")
}

fn task() -> TaskKey {
    let allocation = AllocationId::new("red").expect("it is a name");
    TaskKey::new(allocation, TaskName::new("main").expect("it is a name"))
}
