//! The drivers of a simulated company.

use std::sync::Arc;
use std::time::Duration;

use super::super::drivers::{Conduct, Depot, DepotOptions, DriversTampers, Order, SetOff};
use super::company::{Company, Curtain, Signal};
use super::event::{DriverDoing, Happening};
use crate::driver::{DriverSpec, TaskKey};
use crate::drivers::{
    AddDriver, AnnounceTask, ChildKind, DispenseDriver, DriversOptions, ForgetTaskHandler, RemoveDriver,
    RestartDriver, Wanted,
};
use crate::process::{Executable, Lifetime, ProcessSpec};
use crate::shell::{Message, StopMode};
use crate::vocabulary::{AllocationId, DriverName, TaskName};

/// How many tasks each driver runs.
pub(super) const TASKS: u8 = 3;
/// How many items wait for one handler, so that a slow one falls behind now and then.
const JOURNAL_ITEMS: usize = 8;
/// Every so many drivers one is bound to its host, and one numbers no events.
const BOUND_EVERY: u32 = 3;

/// What a host wants of its drivers, and says again in each run.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    is_wanted: Vec<bool>,
}

impl Wishes {
    pub(super) fn new(drivers: u32) -> Self {
        Self { is_wanted: vec![true; drivers as usize] }
    }
}

/// A depot in which so many drivers can live.
pub(super) fn depot(drivers: u32, tampers: DriversTampers) -> Depot {
    let name = |number: u32| DriverName::new(format!("d{number}")).expect("a letter and digits are a name");
    let spec = |number: u32| {
        let mut process = ProcessSpec::new(Executable::at("/bin/driver"));
        if number % BOUND_EVERY != 1 {
            process.lifetime = Lifetime::Surviving;
        }
        DriverSpec::new(name(number), process)
    };
    let task = |number: u8| {
        let allocation = AllocationId::new(format!("t{number}")).expect("a letter and a digit are a name");
        TaskKey::new(allocation, TaskName::new("main").expect("it is a name"))
    };
    let mut options = DriversOptions::default();
    options.eventor.journal_items = JOURNAL_ITEMS;
    options.drivers_max = options.drivers_max.max(drivers as usize);
    Depot::new(DepotOptions {
        drivers: options,
        specs: (0..drivers).map(spec).collect(),
        tasks: (0..TASKS).map(task).collect::<Arc<[_]>>(),
        unnumbered_every: BOUND_EVERY,
        journal_items: JOURNAL_ITEMS,
        tampers,
    })
}

/// Whether the driver of this number numbers no events.
pub(super) const fn is_unnumbered(number: u32) -> bool {
    number % BOUND_EVERY == BOUND_EVERY - 1
}

impl Company {
    /// The host begins: it says what it wants of its drivers.
    pub(super) fn raise_drivers(&mut self) {
        let moment = self.moment();
        self.depot.load(moment);
        for number in 0..self.depot.drivers() {
            if self.wishes.is_wanted[number as usize] {
                self.order(number, Order::Add);
                (0..TASKS).for_each(|task| self.task_order(number, task, Order::Handle));
            }
        }
    }

    pub(super) fn driver_does(&mut self, number: u32, doing: DriverDoing) {
        if number >= self.depot.drivers() {
            return;
        }
        let moment = self.moment();
        match doing {
            DriverDoing::Order(order) => self.order(number, order),
            DriverDoing::Task(task, order) => self.task_order(number, task, order),
            DriverDoing::Mail => self.depot.deliver_mail_of(moment, number, ChildKind::Driver),
            DriverDoing::EventorMail => self.depot.deliver_mail_of(moment, number, ChildKind::Eventor),
            DriverDoing::Answer(conduct) => self.depot.answer_step(moment, number, conduct),
            DriverDoing::HearEnd => self.depot.tell_end(moment, number),
            DriverDoing::Hear(conduct) => self.depot.answer_stream(moment, number, conduct),
            DriverDoing::Exit => {
                let name = self.depot.name(number);
                self.depot.exits(&name);
            }
            DriverDoing::Event(task) => {
                let name = self.depot.name(number);
                self.depot.happens(&name, task);
            }
            DriverDoing::Read => {
                let name = self.depot.name(number);
                self.depot.handlers_read(&name);
            }
            DriverDoing::Timers => self.depot.timers_due_of(moment, number, ChildKind::Driver),
            DriverDoing::EventorTimers => self.depot.timers_due_of(moment, number, ChildKind::Eventor),
            DriverDoing::Crash => self.depot.crash_of(number, ChildKind::Driver),
            DriverDoing::CrashEventor => self.depot.crash_of(number, ChildKind::Eventor),
            DriverDoing::Fall => self.depot.falls_of(moment, number, ChildKind::Driver),
            DriverDoing::FallEventor => self.depot.falls_of(moment, number, ChildKind::Eventor),
        }
    }

    fn ask_drivers<Q: Message<crate::drivers::Drivers>>(&mut self, message: Q) {
        if self.curtain == Curtain::Up {
            let (moment, asker) = (self.moment(), self.next_asker());
            self.depot.ask(moment, asker, message);
        }
    }

    fn order(&mut self, number: u32, order: Order) {
        let name = self.depot.name(number);
        match order {
            Order::Add => {
                self.wishes.is_wanted[number as usize] = true;
                let spec = self.depot.spec(&name);
                self.ask_drivers(AddDriver { spec });
            }
            Order::Remove => {
                self.wishes.is_wanted[number as usize] = false;
                self.ask_drivers(RemoveDriver { name });
            }
            Order::Restart => self.ask_drivers(RestartDriver { name }),
            Order::Dispense | Order::Announce | Order::Handle | Order::Forget => {
                let within = Duration::from_secs(5);
                self.ask_drivers(DispenseDriver { name, wanted: Wanted::Healthy, within });
            }
        }
    }

    fn task_order(&mut self, number: u32, task: u8, order: Order) {
        let driver = self.depot.name(number);
        let key = self.depot.task(task);
        match order {
            Order::Handle => {
                if self.curtain == Curtain::Up {
                    let (moment, asker) = (self.moment(), self.next_asker());
                    self.depot.handler(moment, asker, &driver, task);
                }
            }
            Order::Forget => self.ask_drivers(ForgetTaskHandler { driver, task: key }),
            Order::Announce | Order::Add | Order::Remove | Order::Restart | Order::Dispense => {
                self.ask_drivers(AnnounceTask { driver, task: key });
            }
        }
    }

    pub(super) fn stop_drivers(&mut self, mode: StopMode) {
        let moment = self.moment();
        self.depot.request_stop(moment, mode);
    }

    pub(super) fn hear_depot(&mut self) {
        for (asker, _) in std::mem::take(&mut self.depot.answered) {
            if asker > 0 {
                self.answered(asker);
            }
        }
        if let (Some(told), Some(trace)) = (&mut self.depot.told, &mut self.trace) {
            trace.append(told);
        }
    }

    /// What can go on among the drivers, or is due there.
    pub(super) fn plan_drivers(&mut self) {
        for set_off in std::mem::take(&mut self.depot.set_off) {
            match set_off {
                SetOff::Mail(number, ChildKind::Driver) => self.is_ready(number, DriverDoing::Mail),
                SetOff::Mail(number, ChildKind::Eventor) => self.is_ready(number, DriverDoing::EventorMail),
                SetOff::Endings => self.signals.push(Signal::Ready(Happening::DriversEndings)),
                SetOff::Stirred(number, kind) => self.plan_child(number, kind),
            }
        }
        if let Some(at) = self.depot.owner_timer() {
            self.signals.push(Signal::Due(Happening::DriversTimers, at));
        }
    }

    fn is_ready(&mut self, number: u32, doing: DriverDoing) {
        self.signals.push(Signal::Ready(Happening::Driver(number, doing)));
    }

    fn plan_child(&mut self, number: u32, kind: ChildKind) {
        let (step, timers) = match kind {
            ChildKind::Driver => (DriverDoing::Answer(Conduct::Well), DriverDoing::Timers),
            ChildKind::Eventor => (DriverDoing::Hear(Conduct::Well), DriverDoing::EventorTimers),
        };
        if self.depot.is_step_due(number, kind) {
            self.is_ready(number, step);
        }
        if kind == ChildKind::Driver && self.depot.is_end_due(number) {
            self.is_ready(number, DriverDoing::HearEnd);
        }
        if let Some(at) = self.depot.timer_of(number, kind) {
            self.signals.push(Signal::Due(Happening::Driver(number, timers), at));
        }
    }

    /// A second in which all is well among the drivers.
    pub(super) fn calm_drivers(&mut self) {
        let moment = self.moment();
        self.depot.owner_timers_due(moment);
        for number in 0..self.depot.drivers() {
            for kind in [ChildKind::Driver, ChildKind::Eventor] {
                self.depot.timers_due_of(moment, number, kind);
            }
            for _ in 0..12 {
                self.driver_does(number, DriverDoing::Answer(Conduct::Well));
                self.driver_does(number, DriverDoing::HearEnd);
                self.driver_does(number, DriverDoing::Hear(Conduct::Well));
            }
            while self.depot.has_mail_of(number, ChildKind::Driver) {
                self.driver_does(number, DriverDoing::Mail);
            }
            while self.depot.has_mail_of(number, ChildKind::Eventor) {
                self.driver_does(number, DriverDoing::EventorMail);
            }
            self.driver_does(number, DriverDoing::Read);
        }
        self.depot.deliver_endings(moment);
    }
}
