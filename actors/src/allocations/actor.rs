//! The effect handler of the owner of the allocations: holds the actors of the supervisors.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{
    AllocationReported, Allocations, AllocationsCall, AllocationsChange, AllocationsImage, AllocationsNews,
    AllocationsOptions, AllocationsOutcome, Order, OrderAnswer, SupervisorEnded,
};
use crate::allocation::{
    self, Allocation, AllocationConfig, DescribeAllocation, Listener, MakeReady, Neighbours, NoteDisk,
    NoteExit, NoteHealth, NoteStart, StopSupervision,
};
use crate::datadir::reach;
use crate::machine::{MACHINE, make_passable};
use crate::shell::{
    Address, AskError, EffectHandler, Running, Settings, Started, StopMode, Store, Ticket, Written,
    start as start_actor,
};
use crate::vocabulary::{AllocationId, Attempt};

/// The limit of running and queued calls: several per allocation, and none may delay another.
const CALLS_MAX: usize = 1 << 20;
/// The limit of messages in flight to one supervisor. Only its owner sends to it, and bounds the number.
const SUPERVISOR_IN_FLIGHT_MAX: usize = 4_096;

const ENDINGS_AT_ONCE: usize = 1_024;

/// Starts the owner of the allocations at a vacant address. Each supervisor gets the same settings. Pass the same memory
/// when the owner is restarted at the same address, so that it finds its records.
pub fn start(
    address: &Address<Allocations>,
    options: AllocationsOptions,
    neighbours: Rc<dyn Neighbours>,
    memory: AllocationsMemory,
    settings: Settings,
) -> Running {
    let handler = Handler::new(address.clone(), neighbours, settings.clone());
    let settings = Settings { calls_running_max: CALLS_MAX, calls_waiting_max: CALLS_MAX, ..settings };
    start_actor(address, options, handler, memory, settings)
}

/// A short directory for sockets whose path would be too long below a data directory (SEC-01): `$XDG_RUNTIME_DIR`, else
/// `/run/callboard` if that can be created, else the system's directory for temporary files.
#[must_use]
pub fn default_runtime_dir() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // A directory of another user, as `sudo -E` passes it, is not ours.
    if let Some(own) = own.filter(|path| path.is_absolute() && reach(path).is_ok()) {
        return own;
    }
    let system = PathBuf::from(MACHINE);
    let is_made = make_passable(&system).unwrap_or(false);
    let us = rustix::process::geteuid().as_raw();
    let is_ours = || rustix::fs::lstat(&system).is_ok_and(|found| found.st_uid == us) && system.is_dir();
    if is_made || is_ours() { system } else { std::env::temp_dir() }
}

struct Held {
    life: Attempt,
    address: Address<Allocation>,
    running: Running,
}

type AllHeld = Rc<RefCell<HashMap<AllocationId, Held>>>;

/// Notifies each supervisor when the instances report a change of its plugin. A supervisor that is too busy asks in its
/// next round.
fn follow_instances(neighbours: &dyn Neighbours, held: &AllHeld) -> JoinHandle<()> {
    let held = Rc::clone(held);
    actix_rt::spawn(neighbours.follow_instances(Box::new(move |allocation| {
        if let Some(held) = held.borrow().get(allocation) {
            let _ = held.address.tell(NoteHealth);
        }
    })))
}

/// Notifies each supervisor when the disk takes writes again. A supervisor that is too busy continues after its pause.
fn follow_disk(neighbours: &dyn Neighbours, held: &AllHeld) -> JoinHandle<()> {
    let held = Rc::clone(held);
    actix_rt::spawn(neighbours.follow_disk(Box::new(move || {
        for held in held.borrow().values() {
            let _ = held.address.tell(NoteDisk);
        }
    })))
}

struct Handler {
    address: Address<Allocations>,
    /// The tasks that notify the supervisors. They end with this.
    news: [JoinHandle<()>; 2],
    neighbours: Rc<dyn Neighbours>,
    held: AllHeld,
    settings: Settings,
    endings: Rc<Endings>,
}

/// Endings that the machine has not received yet.
#[derive(Default)]
struct Endings {
    queue: RefCell<VecDeque<SupervisorEnded>>,
    arrived: Notify,
}

impl Endings {
    fn add(&self, ended: SupervisorEnded) {
        self.queue.borrow_mut().push_back(ended);
        self.arrived.notify_one();
    }

    /// Drops the ending of a life that is started again: it would be taken for the end of the new actor.
    fn forget(&self, allocation: &AllocationId, life: Attempt) {
        self.queue.borrow_mut().retain(|ended| (&ended.allocation, ended.life) != (allocation, life));
    }

    fn take(&self) -> Vec<SupervisorEnded> {
        let mut queue = self.queue.borrow_mut();
        let some = queue.len().min(ENDINGS_AT_ONCE);
        queue.drain(..some).collect()
    }

    async fn next(&self) -> Vec<SupervisorEnded> {
        loop {
            let ended = self.take();
            if !ended.is_empty() {
                return ended;
            }
            self.arrived.notified().await;
        }
    }
}

impl EffectHandler<Allocations> for Handler {
    fn call(&mut self, call: AllocationsCall) -> Started<AllocationsOutcome> {
        match call {
            AllocationsCall::Start { life, config } => self.start(life, *config),
            AllocationsCall::Tell { allocation, life, order, .. } => {
                return Started::Running(self.tell(&allocation, life, order));
            }
            AllocationsCall::Look { allocation, life } => {
                return Started::Running(self.look(&allocation, life));
            }
            AllocationsCall::End { allocation, life, mode } => {
                self.with(&allocation, life, |held| held.running.request_stop(mode));
            }
            AllocationsCall::Kill { allocation, life } => {
                self.with(&allocation, life, |held| held.running.kill());
            }
            AllocationsCall::AwaitEndings => return Started::Running(self.await_endings()),
            AllocationsCall::AwaitUnused { asked, .. } => {
                let answer = self.neighbours.await_unused(asked);
                return Started::running(async move { AllocationsOutcome::Unused(answer.await) });
            }
            AllocationsCall::Describe(_) => {
                let held = self.held.borrow();
                let vitals = held.iter().map(|(id, held)| (id.clone(), held.address.vitals()));
                return Started::Done(AllocationsOutcome::Described(vitals.collect()));
            }
        }
        Started::Done(AllocationsOutcome::Done)
    }

    fn published(&mut self, news: &AllocationsNews) {
        match news {
            AllocationsNews::Gone(allocation) => tracing::info!(%allocation, "allocation gone"),
            AllocationsNews::Refused { allocation, reason } => {
                tracing::warn!(%allocation, error = reason, "an allocation was not prepared");
            }
            // The supervisors log their own news.
            AllocationsNews::Changed(_)
            | AllocationsNews::Task(_)
            | AllocationsNews::RestartRequested { .. } => {}
        }
    }
}

impl Handler {
    fn new(address: Address<Allocations>, neighbours: Rc<dyn Neighbours>, settings: Settings) -> Self {
        let held = AllHeld::default();
        let news = [follow_instances(&*neighbours, &held), follow_disk(&*neighbours, &held)];
        Self { address, news, neighbours, held, settings, endings: Rc::default() }
    }

    fn start(&mut self, life: Attempt, config: AllocationConfig) {
        let id = config.spec.allocation.clone();
        if self.held.borrow().get(&id).is_some_and(|held| held.life == life) {
            return;
        }
        self.endings.forget(&id, life);
        let address = Address::vacant(format!("allocation {id}"), SUPERVISOR_IN_FLIGHT_MAX);
        let seed = self.settings.seed.map(|seed| seed.wrapping_add(life.get()));
        let settings = Settings { seed, ..self.settings.clone() };
        let (parent, allocation) = (self.address.clone(), id.clone());
        let told = move |news| {
            // An owner that has ended needs no report.
            let _ = parent.notify(AllocationReported { allocation: allocation.clone(), life, news });
        };
        let running = allocation::start(&address, config, Rc::clone(&self.neighbours), told, settings);
        self.watch(id.clone(), life, &running);
        self.held.borrow_mut().insert(id, Held { life, address, running });
    }

    fn watch(&self, allocation: AllocationId, life: Attempt, running: &Running) {
        let (ending, endings) = (running.ended(), Rc::clone(&self.endings));
        let held = Rc::clone(&self.held);
        actix_rt::spawn(async move {
            let ending = ending.await;
            let mut held = held.borrow_mut();
            if held.get(&allocation).is_some_and(|held| held.life == life) {
                held.remove(&allocation);
            }
            endings.add(SupervisorEnded { allocation, life, ending });
        });
    }

    fn await_endings(&self) -> LocalBoxFuture<'static, AllocationsOutcome> {
        let endings = Rc::clone(&self.endings);
        Box::pin(async move { AllocationsOutcome::Ended(endings.next().await) })
    }

    /// Applies `act` to a supervisor, if this life of it still exists. Its end is reported separately.
    fn with<T>(&self, id: &AllocationId, life: Attempt, act: impl FnOnce(&Held) -> T) -> Option<T> {
        self.held.borrow().get(id).filter(|held| held.life == life).map(act)
    }

    fn tell(
        &self,
        id: &AllocationId,
        life: Attempt,
        order: Order,
    ) -> LocalBoxFuture<'static, AllocationsOutcome> {
        // The message is sent synchronously, so that messages arrive in the order of the calls.
        let answer = self.with(id, life, |held| hand_in(&held.address, order));
        let actor = format!("allocation {id}");
        Box::pin(async move {
            AllocationsOutcome::Told(match answer {
                Some(answer) => answer.await,
                None => Err(AskError::NotRunning { actor }),
            })
        })
    }

    fn look(&self, id: &AllocationId, life: Attempt) -> LocalBoxFuture<'static, AllocationsOutcome> {
        let answer = self.with(id, life, |held| held.address.ask(DescribeAllocation));
        let actor = format!("allocation {id}");
        Box::pin(async move {
            AllocationsOutcome::Seen(match answer {
                Some(answer) => answer.await,
                None => Err(AskError::NotRunning { actor }),
            })
        })
    }
}

type Answering = LocalBoxFuture<'static, Result<OrderAnswer, AskError>>;

fn hand_in(address: &Address<Allocation>, order: Order) -> Answering {
    match order {
        Order::Prepare => make_ready(address, Listener::Refused),
        Order::Adopt => make_ready(address, Listener::Welcome),
        Order::Start => {
            let answer = address.ask(NoteStart);
            Box::pin(async move { answer.await.map(|()| OrderAnswer::Noted) })
        }
        Order::Exit(how) => {
            let answer = address.ask(NoteExit { how });
            Box::pin(async move { answer.await.map(|()| OrderAnswer::Noted) })
        }
        Order::Stop => {
            let answer = address.ask(StopSupervision);
            Box::pin(async move { answer.await.map(OrderAnswer::Stopped) })
        }
    }
}

fn make_ready(address: &Address<Allocation>, listener: Listener) -> Answering {
    let answer = address.ask(MakeReady { listener });
    Box::pin(async move { answer.await.map(OrderAnswer::Prepared) })
}

impl Drop for Handler {
    /// The end of an owner ends its supervisors: none survives without an owner (A5).
    fn drop(&mut self) {
        self.news.iter().for_each(JoinHandle::abort);
        for held in self.held.borrow().values() {
            held.running.request_stop(StopMode::Detach);
        }
    }
}

/// Keeps the records so that they survive a crash of the owner.
#[derive(Debug, Clone, Default)]
pub struct AllocationsMemory(Rc<RefCell<AllocationsImage>>);

impl Store<Allocations> for AllocationsMemory {
    fn write(&mut self, _ticket: Ticket, change: AllocationsChange) -> Written {
        self.0.borrow_mut().take(change);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<AllocationsImage, String>> {
        let image = self.0.borrow().clone();
        Box::pin(std::future::ready(Ok(image)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::allocation::{Addresses, AllocationOptions, AllocationSpec, Layout, Plan, Task};
    use crate::csi::ListenerCheck;
    use crate::vocabulary::{Health, PluginName, Role, TaskName};

    fn new_handler() -> Handler {
        let neighbours = Addresses {
            registry: Address::vacant("registry", 1),
            instances: Address::vacant("instances", 1),
            volumes: None,
            listeners: ListenerCheck::default(),
            database: None,
        };
        Handler::new(Address::vacant("allocations", 1), Rc::new(neighbours), Settings::default())
    }

    fn config(id: &AllocationId) -> AllocationConfig {
        let task = TaskName::new("plugin").expect("a good name");
        let plugin = PluginName::new("zfs").expect("a good name");
        let spec = AllocationSpec::new(id.clone(), task, plugin, Role::Node);
        let layout = Layout::new("/nowhere", Path::new("/run")).expect("good directories");
        let plan = Plan::new(&layout, &spec).expect("it can be planned");
        let options = AllocationOptions::default();
        AllocationConfig { spec, plan, options, task: Task::NotStarted, health: Health::Starting }
    }

    #[test]
    fn an_ending_that_a_rebuilt_owner_has_not_heard_of_is_not_taken_for_that_of_the_new_supervisor_a5() {
        actix::System::new().block_on(async {
            let mut handler = new_handler();
            let (id, life) = (AllocationId::new("a").expect("a good id"), Attempt::new(1));
            handler.start(life, config(&id));
            handler.with(&id, life, |held| held.running.kill());
            while handler.with(&id, life, |_| ()).is_some() {
                tokio::task::yield_now().await;
            }
            handler.start(life, config(&id));
            assert!(handler.with(&id, life, |_| ()).is_some(), "it lives again");
            let told = tokio::time::timeout(Duration::from_millis(20), handler.await_endings()).await;
            assert!(told.is_err(), "it lives, and is said to have ended: {told:?}");
        });
    }
}
