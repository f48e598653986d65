//! The effect handler of the owner of the drivers: holds their actors and those of their eventors.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{
    ChildEnded, ChildKind, DriverReported, Drivers, DriversCall, DriversChange, DriversImage, DriversNews,
    DriversOptions, DriversOutcome, EventorReported,
};
use crate::driver::client::DriverConnections;
use crate::driver::{
    self, DescribeTroubles, Driver, DriverConfig, Folded, Generations, ProcessOwner, RestartNow, TaskKey,
};
use crate::eventor::{
    self, Eventor, EventorOptions, Forget, JournalId, RecentOf, SubscribeTo, TaskJournals, Watch,
};
use crate::shell::{
    Address, AskError, BEHAVIOUR_RATE, Child, Children, EffectHandler, LogLimit, Running, Settings, Started,
    StopMode, Store, Ticket, Written, start as start_machine,
};
use crate::vocabulary::{Attempt, DriverName, RunNumber};

/// The limit of messages in flight to one child. Only its owner sends to it.
const CHILD_IN_FLIGHT_MAX: usize = 4_096;
/// The limit of queued calls to children.
const ORDERS_MAX: usize = 1 << 20;

/// Starts the owner of the drivers at a vacant address. A restart at the same address must get the same memory, which has the
/// requests of the host and the generations. Drivers keep their connections among `connections`. The children get the same
/// settings.
pub fn start(
    address: &Address<Drivers>,
    options: DriversOptions,
    processes: Rc<dyn ProcessOwner>,
    memory: DriversMemory,
    connections: DriverConnections,
    settings: Settings,
) -> Running {
    let handler = Handler {
        address: address.clone(),
        processes,
        memory: memory.clone(),
        connections,
        eventor: options.eventor,
        children: Children::default(),
        settings: settings.clone(),
        limits: HashMap::new(),
    };
    let settings = Settings { calls_running_max: ORDERS_MAX, calls_waiting_max: ORDERS_MAX, ..settings };
    start_machine(address, options, handler, memory, settings)
}

/// The state of the owner of the drivers that survives a crash: the requests of the host, which it does not repeat. It ends with
/// the host, which repeats them when it starts.
#[derive(Debug, Clone, Default)]
pub struct DriversMemory(Rc<Memory>);

#[derive(Debug, Default)]
struct Memory {
    image: RefCell<DriversImage>,
    generations: Generations,
    journals: TaskJournals,
}

impl DriversMemory {
    /// The state at the beginning of this run of the host: empty, with generations of its own. Events of tasks go into these
    /// journals; they end with it.
    #[must_use]
    pub fn of_run(run: RunNumber, journals: TaskJournals) -> Self {
        Self(Rc::new(Memory { image: RefCell::default(), generations: Generations::of_run(run), journals }))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.journals.end_all();
    }
}

impl Store<Drivers> for DriversMemory {
    fn write(&mut self, _ticket: Ticket, change: DriversChange) -> Written {
        if let DriversChange::Watch(_, _, journal) = &change {
            self.0.journals.claim(*journal);
        }
        self.0.image.borrow_mut().apply(change);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<DriversImage, String>> {
        let image = self.0.image.borrow().clone();
        Box::pin(ready(Ok(image)))
    }
}

/// The address of a child.
enum ChildAddress {
    Driver(Address<Driver>),
    Eventor(Address<Eventor>),
}

struct Handler {
    address: Address<Drivers>,
    processes: Rc<dyn ProcessOwner>,
    memory: DriversMemory,
    connections: DriverConnections,
    eventor: EventorOptions,
    children: Children<ChildAddress, ChildEnded>,
    settings: Settings,
    limits: HashMap<DriverName, LogLimit>,
}

impl EffectHandler<Drivers> for Handler {
    fn call(&mut self, call: DriversCall) -> Started<DriversOutcome> {
        match call {
            DriversCall::AwaitEndings => {
                return Started::running(self.children.endings().map(DriversOutcome::Ended));
            }
            DriversCall::AskTroubles(life, driver, _) => {
                return Started::Running(self.describe(life, &driver));
            }
            DriversCall::AskRecent(life, task, _) => return Started::Running(self.ask_recent(life, task)),
            DriversCall::Sweep => {
                self.children.kill_all();
                let known: HashSet<_> = self.memory.0.image.borrow().journals().collect();
                self.journals().end_others(&known);
            }
            DriversCall::StartDriver(life, config) => self.start_driver(life, *config),
            DriversCall::StartEventor(life, driver) => self.start_eventor(life, driver),
            DriversCall::Stop(life, mode) => self.with(life, |child| child.running.request_stop(mode)),
            DriversCall::Kill(life) => self.with(life, |child| child.running.kill()),
            DriversCall::RestartNow(life, number) => return Started::Running(self.restart(life, number)),
            DriversCall::SubscribeTo(life, generation) => {
                self.with_eventor(life, |address| drop(address.notify(SubscribeTo { generation })));
            }
            DriversCall::Watch(life, tasks, is_renewal) => self.watch(life, tasks, is_renewal),
            DriversCall::Forget(life, task) => {
                self.with_eventor(life, |address| drop(address.notify(Forget { task: task.clone() })));
            }
            DriversCall::HandOver(from, to) => self.journals().hand_over(from, to),
            DriversCall::End(sink) => self.journals().end(sink),
        }
        Started::Done(DriversOutcome::Done)
    }

    fn published(&mut self, news: &DriversNews) {
        match news {
            DriversNews::DeadLetters { driver, task: Some(task), count, .. } => {
                self.limit(driver).say(|| {
                    tracing::warn!(%driver, %task, count, "dropping task events without a handler as dead letters");
                })
            }
            DriversNews::DeadLetters { driver, task: None, count, error } => self.limit(driver).say(|| {
                let error = error.as_deref().unwrap_or_default();
                tracing::warn!(%driver, count, error, "dropping a task event that names no task as a dead letter");
            }),
            DriversNews::EventsInterrupted { driver, generation, error } => self.limit(driver).say(|| {
                tracing::warn!(%driver, generation = generation.get(), error = %error, "stream of task events was interrupted");
            }),
            DriversNews::Left(report) => drop(self.limits.remove(&report.name)),
            // Each driver logs its own reports.
            DriversNews::Reported(_) => {}
        }
    }
}

impl Handler {
    fn journals(&self) -> &TaskJournals {
        &self.memory.0.journals
    }

    /// The limit of the log about a driver here.
    fn limit(&mut self, driver: &DriverName) -> &LogLimit {
        self.limits.entry(driver.clone()).or_insert_with(|| LogLimit::new(driver, BEHAVIOUR_RATE))
    }

    fn start_driver(&mut self, life: Attempt, config: DriverConfig) {
        let driver = config.spec.name.clone();
        let address = Address::vacant(format!("driver {driver}"), CHILD_IN_FLIGHT_MAX);
        let parent = self.address.clone();
        let told = move |report: &_, may_lend| {
            // A parent that has ended takes its drivers with it.
            let _ = parent.notify(DriverReported { life, report: Clone::clone(report), may_lend });
        };
        let processes = Rc::clone(&self.processes);
        let numbered = (self.memory.0.generations.clone(), self.connections.clone());
        let running = driver::start(&address, config, processes, numbered, told, self.settings.clone());
        self.hold(life, driver, ChildKind::Driver, (ChildAddress::Driver(address), running));
    }

    fn start_eventor(&mut self, life: Attempt, driver: DriverName) {
        let address = Address::vacant(format!("eventor {driver}"), CHILD_IN_FLIGHT_MAX);
        let (parent, name) = (self.address.clone(), driver.clone());
        let told = move |news: &_| {
            let _ = parent.notify(EventorReported { driver: name.clone(), life, news: Clone::clone(news) });
        };
        let streams = (driver.clone(), self.connections.clone(), self.journals().clone());
        let running = eventor::start(&address, self.eventor, streams, told, self.settings.clone());
        self.hold(life, driver, ChildKind::Eventor, (ChildAddress::Eventor(address), running));
    }

    fn hold(
        &self,
        life: Attempt,
        driver: DriverName,
        kind: ChildKind,
        (address, running): (ChildAddress, Running),
    ) {
        let tell = move |ending| ChildEnded { driver, kind, life, ending };
        self.children.hold(life, address, running, tell);
    }

    fn with(&self, life: Attempt, order: impl FnOnce(&Child<ChildAddress>)) {
        self.children.with(life, order);
    }

    fn with_eventor(&self, life: Attempt, order: impl FnOnce(&Address<Eventor>)) {
        self.with(life, |child| {
            if let ChildAddress::Eventor(address) = &child.address {
                order(address);
            }
        });
    }

    fn watch(&self, life: Attempt, tasks: Vec<(TaskKey, JournalId)>, is_renewal: bool) {
        self.with_eventor(life, |address| {
            for (task, sink) in tasks {
                let after = self.journals().position(sink, self.eventor.journal_items);
                let _ = address.notify(Watch { task, sink, after, is_renewal });
            }
        });
    }

    fn describe(&self, life: Attempt, driver: &DriverName) -> LocalBoxFuture<'static, DriversOutcome> {
        let calls = self.connections.calls_of(driver);
        let asked = self.children.with(life, |child| match &child.address {
            ChildAddress::Driver(address) => Some(address.ask(DescribeTroubles)),
            ChildAddress::Eventor(_) => None,
        });
        let told = told(asked.flatten());
        Box::pin(async move { DriversOutcome::Described(told.await, calls) })
    }

    fn restart(&self, life: Attempt, number: Attempt) -> LocalBoxFuture<'static, DriversOutcome> {
        let asked = self.children.with(life, |child| match &child.address {
            ChildAddress::Driver(address) => Some(address.ask(RestartNow { number })),
            ChildAddress::Eventor(_) => None,
        });
        let Some(asked) = asked.flatten() else { return Box::pin(ready(DriversOutcome::Done)) };
        Box::pin(async move {
            match asked.await {
                Err(AskError::Crashed { .. } | AskError::Busy { .. }) => DriversOutcome::NotTaken,
                // The end of a child is reported separately.
                Ok(()) | Err(_) => DriversOutcome::Done,
            }
        })
    }

    fn ask_recent(&self, life: Attempt, task: TaskKey) -> LocalBoxFuture<'static, DriversOutcome> {
        let asked = self.children.with(life, |child| match &child.address {
            ChildAddress::Eventor(address) => Some(address.ask(RecentOf { task })),
            ChildAddress::Driver(_) => None,
        });
        told(asked.flatten()).map(DriversOutcome::Told).boxed_local()
    }
}

/// The answer of a child; empty if the child is gone.
async fn told(asked: Option<impl Future<Output = Result<Vec<Folded>, AskError>>>) -> Vec<Folded> {
    match asked {
        Some(asked) => asked.await.unwrap_or_default(),
        None => Vec::new(),
    }
}

impl Drop for Handler {
    /// However the owner ends, the processes and tasks of its children continue: the children are asked to detach before they are killed.
    fn drop(&mut self) {
        let () = self.children.look(|_, child| child.running.request_stop(StopMode::Detach));
    }
}
