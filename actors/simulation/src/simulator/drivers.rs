//! The drivers of a simulated host.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::{DriverSpec, TaskKey};
use callboard_actors::drivers::{
    AddDriver, AnnounceTask, ChildKind, DispenseDriver, DriversOptions, ForgetTaskHandler, RemoveDriver,
    RestartDriver, Wanted,
};
use callboard_actors::process::{Executable, Lifetime, ProcessSpec};
use callboard_actors::shell::{Message, StopMode};
use callboard_actors::vocabulary::{AllocationId, DriverName, TaskName};

use super::super::drivers::{Conduct, DriversModel, DriversModelOptions, DriversTampers, Order, SetOff};
use super::event::{DriverDoing, EventKind};
use super::host_model::{HostModel, HostPhase, Signal};

/// How many tasks each driver runs.
pub(super) const TASKS: u8 = 3;
/// How many items wait for one handler; few, so that a slow one falls behind from time to time.
const JOURNAL_ITEMS: usize = 8;
/// One in this many drivers is bound to its host, and one numbers no events.
const BOUND_EVERY: u32 = 3;

/// The drivers and tasks that a host wants, and requests again in each run.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    is_wanted: Vec<bool>,
}

impl Wishes {
    pub(super) fn new(drivers: u32) -> Self {
        Self { is_wanted: vec![true; drivers as usize] }
    }
}

/// A model with this number of drivers.
pub(super) fn drivers_model(drivers: u32, tampers: DriversTampers) -> DriversModel {
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
    DriversModel::new(DriversModelOptions {
        drivers: options,
        specs: (0..drivers).map(spec).collect(),
        tasks: (0..TASKS).map(task).collect::<Arc<[_]>>(),
        unnumbered_every: BOUND_EVERY,
        journal_items: JOURNAL_ITEMS,
        tampers,
    })
}

/// Whether the driver with this number does not number its events.
pub(super) const fn is_unnumbered(number: u32) -> bool {
    number % BOUND_EVERY == BOUND_EVERY - 1
}

impl HostModel {
    /// The host starts: it requests its drivers.
    pub(super) fn start_drivers(&mut self) {
        let moment = self.moment();
        self.drivers_model.load(moment);
        for number in 0..self.drivers_model.drivers() {
            if self.wishes.is_wanted[number as usize] {
                self.order(number, Order::Add);
                (0..TASKS).for_each(|task| self.task_order(number, task, Order::Handle));
            }
        }
    }

    pub(super) fn driver_does(&mut self, number: u32, doing: DriverDoing) {
        if number >= self.drivers_model.drivers() {
            return;
        }
        let moment = self.moment();
        match doing {
            DriverDoing::Order(order) => self.order(number, order),
            DriverDoing::Task(task, order) => self.task_order(number, task, order),
            DriverDoing::Mail => self.drivers_model.deliver_mail_of(moment, number, ChildKind::Driver),
            DriverDoing::EventorMail => {
                self.drivers_model.deliver_mail_of(moment, number, ChildKind::Eventor)
            }
            DriverDoing::Answer(conduct) => self.drivers_model.answer_step(moment, number, conduct),
            DriverDoing::HearEnd => self.drivers_model.tell_end(moment, number),
            DriverDoing::Hear(conduct) => self.drivers_model.answer_stream(moment, number, conduct),
            DriverDoing::Exit => {
                let name = self.drivers_model.name(number);
                self.drivers_model.exits(&name);
            }
            DriverDoing::Event(task) => {
                let name = self.drivers_model.name(number);
                self.drivers_model.happens(&name, task);
            }
            DriverDoing::Read => {
                let name = self.drivers_model.name(number);
                self.drivers_model.handlers_read(&name);
            }
            DriverDoing::Timers => self.drivers_model.timers_due_of(moment, number, ChildKind::Driver),
            DriverDoing::EventorTimers => {
                self.drivers_model.timers_due_of(moment, number, ChildKind::Eventor)
            }
            DriverDoing::Crash => self.drivers_model.crash_of(number, ChildKind::Driver),
            DriverDoing::CrashEventor => self.drivers_model.crash_of(number, ChildKind::Eventor),
            DriverDoing::Fall => self.drivers_model.falls_of(moment, number, ChildKind::Driver),
            DriverDoing::FallEventor => self.drivers_model.falls_of(moment, number, ChildKind::Eventor),
        }
    }

    fn ask_drivers<Q: Message<callboard_actors::drivers::Drivers>>(&mut self, message: Q) {
        if self.phase == HostPhase::Running {
            let (moment, asker) = (self.moment(), self.next_asker());
            self.drivers_model.ask(moment, asker, message);
        }
    }

    fn order(&mut self, number: u32, order: Order) {
        let name = self.drivers_model.name(number);
        match order {
            Order::Add => {
                self.wishes.is_wanted[number as usize] = true;
                let spec = self.drivers_model.spec(&name);
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
        let driver = self.drivers_model.name(number);
        let key = self.drivers_model.task(task);
        match order {
            Order::Handle => {
                if self.phase == HostPhase::Running {
                    let (moment, asker) = (self.moment(), self.next_asker());
                    self.drivers_model.handler(moment, asker, &driver, task);
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
        self.drivers_model.request_stop(moment, mode);
    }

    pub(super) fn dispatch_drivers(&mut self) {
        for (asker, _) in std::mem::take(&mut self.drivers_model.answered) {
            if asker > 0 {
                self.answered(asker);
            }
        }
        if let (Some(told), Some(trace)) = (&mut self.drivers_model.told, &mut self.trace) {
            trace.append(told);
        }
    }

    /// Plans the possible and the due events of the drivers.
    pub(super) fn plan_drivers(&mut self) {
        for set_off in std::mem::take(&mut self.drivers_model.set_off) {
            match set_off {
                SetOff::Mail(number, ChildKind::Driver) => self.is_ready(number, DriverDoing::Mail),
                SetOff::Mail(number, ChildKind::Eventor) => self.is_ready(number, DriverDoing::EventorMail),
                SetOff::Endings => self.signals.push(Signal::Ready(EventKind::DriversEndings)),
                SetOff::Changed(number, kind) => self.plan_child(number, kind),
            }
        }
        if let Some(at) = self.drivers_model.owner_timer() {
            self.signals.push(Signal::Due(EventKind::DriversTimers, at));
        }
    }

    fn is_ready(&mut self, number: u32, doing: DriverDoing) {
        self.signals.push(Signal::Ready(EventKind::Driver(number, doing)));
    }

    fn plan_child(&mut self, number: u32, kind: ChildKind) {
        let (step, timers) = match kind {
            ChildKind::Driver => (DriverDoing::Answer(Conduct::Well), DriverDoing::Timers),
            ChildKind::Eventor => (DriverDoing::Hear(Conduct::Well), DriverDoing::EventorTimers),
        };
        if self.drivers_model.is_step_due(number, kind) {
            self.is_ready(number, step);
        }
        if kind == ChildKind::Driver && self.drivers_model.is_end_due(number) {
            self.is_ready(number, DriverDoing::HearEnd);
        }
        if let Some(at) = self.drivers_model.timer_of(number, kind) {
            self.signals.push(Signal::Due(EventKind::Driver(number, timers), at));
        }
    }

    fn has_something_to_answer(&self, number: u32) -> bool {
        let model = &self.drivers_model;
        [ChildKind::Driver, ChildKind::Eventor].into_iter().any(|kind| model.is_step_due(number, kind))
            || model.is_end_due(number)
    }

    /// One second without faults among the drivers.
    pub(super) fn calm_drivers(&mut self) {
        let moment = self.moment();
        self.drivers_model.owner_timers_due(moment);
        for number in 0..self.drivers_model.drivers() {
            for kind in [ChildKind::Driver, ChildKind::Eventor] {
                self.drivers_model.timers_due_of(moment, number, kind);
            }
            for _ in 0..12 {
                if !self.has_something_to_answer(number) {
                    break;
                }
                self.driver_does(number, DriverDoing::Answer(Conduct::Well));
                self.driver_does(number, DriverDoing::HearEnd);
                self.driver_does(number, DriverDoing::Hear(Conduct::Well));
            }
            while self.drivers_model.has_mail_of(number, ChildKind::Driver) {
                self.driver_does(number, DriverDoing::Mail);
            }
            while self.drivers_model.has_mail_of(number, ChildKind::Eventor) {
                self.driver_does(number, DriverDoing::EventorMail);
            }
            self.driver_does(number, DriverDoing::Read);
        }
        self.drivers_model.deliver_endings(moment);
    }
}
