//! Runs the tasks: calls drivers, and holds the events that were read.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::{EventPosition, TaskKey};
use callboard_actors::eventor::TaskEvents;
use callboard_actors::leftovers::Traces;
use callboard_actors::shell::{self, Address, EffectHandler, Running, Settings, Store};
use callboard_actors::vocabulary::{AllocationId, DriverName};
use futures_util::future::LocalBoxFuture;
use tokio::sync::Mutex;

use super::logged::Logged;
use super::memory::TasksMemory;
use super::readers::{Reader, Readers, position};
use super::{
    Found, Heard, KeptDriver, KeptHandle, RunEvidence, RunKey, Started, Swept, TaskIdentities, Tasks,
    TasksCall, TasksNews, TasksOptions, TasksOutcome, Trouble, Waited,
};
use crate::config::TaskConfig;

/// The future result of a request to a driver.
pub type Asking<T> = LocalBoxFuture<'static, T>;
/// The events of a task, or why they are unavailable.
pub type Watching = Result<TaskEvents, Trouble>;

/// The requests of the tasks to drivers, and to the owners of drivers.
pub trait Runners: 'static {
    /// Resolves the plugin of a configured driver, and adds the driver to the host.
    fn set_up(&self, driver: DriverName) -> Asking<Result<(), Trouble>>;
    /// Adds a driver that is no longer configured to the host, so that the remains of its tasks can be stopped.
    fn set_up_unconfigured(&self, driver: DriverName, kept: Box<KeptDriver>) -> Asking<Result<(), Trouble>>;
    /// Ends a driver that is no longer configured; a process that an earlier run of the host left is proven first. `left` are the tasks
    /// that it leaves and that cannot be ended.
    fn dismiss(&self, driver: DriverName, left: Vec<AllocationId>) -> Asking<Result<(), Trouble>>;
    /// Reads the events of a task from now on, starting after this one.
    fn watch(&self, driver: DriverName, task: TaskKey, after: Option<EventPosition>) -> Asking<Watching>;
    /// Stops reading them, if they were from this driver, and removes what belongs to the task: it is forgotten.
    fn forget(&self, driver: Option<DriverName>, task: TaskKey) -> Asking<()>;
    /// Starts a run.
    fn start(&self, run: RunKey, config: Arc<TaskConfig>) -> Asking<Started>;
    /// Cancels a start that still waits for its driver.
    fn call_off(&self, run: RunKey) -> Asking<()>;
    /// Waits until a start has been sent to its driver, or no longer waits for it. Returns whether it was sent.
    fn sent(&self, run: RunKey) -> Asking<bool>;
    /// Recovers a run.
    fn recover(
        &self,
        run: RunKey,
        handle: Box<KeptHandle>,
        config: Arc<TaskConfig>,
    ) -> Asking<Result<(), Trouble>>;
    /// Asks for the state of a run.
    fn inspect(&self, run: RunKey) -> Asking<Result<Found, Trouble>>;
    /// Replaces the process of a run's driver, unless it has been replaced since a start of the run was requested.
    fn replace_driver(&self, run: RunKey) -> Asking<Result<(), Trouble>>;
    /// Waits for the end of a run.
    fn wait(&self, run: RunKey) -> Asking<Result<Waited, Trouble>>;
    /// Stops a run within its grace period, with this signal; an empty signal leaves the choice to the driver.
    fn stop(&self, run: RunKey, grace: Duration, signal: String) -> Asking<Result<(), Trouble>>;
    /// Ends a run if it is not over, and makes the driver forget it. If the driver does not know the run, that is success.
    fn destroy(&self, run: RunKey) -> Asking<Result<(), Trouble>>;
    /// Locates the processes of a run that its driver has.
    fn locate(
        &self,
        run: RunKey,
        handle: Option<Box<KeptHandle>>,
        evidence: Box<RunEvidence>,
    ) -> Asking<Result<Traces, Trouble>>;
    /// Ends everything that is left of a run, by evidence that does not come from its driver. `handle` is the driver's handle of it,
    /// `evidence` what is known of its processes, `heard` what its driver reported.
    fn sweep(
        &self,
        run: RunKey,
        handle: Option<Box<KeptHandle>>,
        evidence: Box<RunEvidence>,
        heard: Heard,
    ) -> Asking<Result<Swept, Trouble>>;
}

/// Starts the tasks at a vacant address, with what their last incarnation left in `memory`.
pub fn start(
    address: &Address<Tasks>,
    options: TasksOptions,
    runners: impl Runners,
    store: impl Store<Tasks>,
    memory: &TasksMemory,
    settings: Settings,
) -> Running {
    // For each task the waits for its end and for its events are always in progress, a request may be sent to its driver, and it may be
    // located. A driver that does not answer must not block any other task.
    let calls_max = 5 * options.tasks.len() + options.drivers.len() + 64;
    let calls_running_max = settings.calls_running_max.max(calls_max);
    let calls_waiting_max = settings.calls_waiting_max.max(calls_max);
    let settings = Settings { calls_running_max, calls_waiting_max, ..settings };
    let readers = Rc::clone(&memory.readers);
    let handler =
        Handler { runners, identities: options.identities.clone(), readers, logged: Logged::default() };
    shell::start(address, options, handler, store, settings)
}

struct Handler<R> {
    runners: R,
    identities: TaskIdentities,
    readers: Readers,
    logged: Logged,
}

impl<R: Runners> EffectHandler<Tasks> for Handler<R> {
    fn call(&mut self, call: TasksCall) -> shell::Started<TasksOutcome> {
        let runners = &self.runners;
        shell::Started::Running(match call {
            TasksCall::SetUp(driver) => into(runners.set_up(driver), TasksOutcome::SetUp),
            TasksCall::SetUpUnconfigured(driver, kept) => {
                into(runners.set_up_unconfigured(driver, kept), TasksOutcome::SetUp)
            }
            TasksCall::Dismiss { driver, left } => {
                into(runners.dismiss(driver, left), TasksOutcome::Dismissed)
            }
            TasksCall::Watch { name, driver, after, taken } => self.watch(name, driver, after, taken),
            TasksCall::ReadEvents { name, taken } => self.read(&name, taken),
            TasksCall::Forget { name, driver } => {
                self.readers.borrow_mut().remove(&name);
                into(runners.forget(driver, self.identities.of(&name).key()), |()| TasksOutcome::Forgotten)
            }
            TasksCall::Start(run, config) => into(runners.start(run, config), TasksOutcome::Started),
            TasksCall::AwaitDisk { .. } => return shell::Started::Done(TasksOutcome::OnDisk),
            TasksCall::AwaitSent(run) => into(runners.sent(run), TasksOutcome::Sent),
            TasksCall::CallOff(run) => into(runners.call_off(run), |()| TasksOutcome::Forgotten),
            TasksCall::Recover(run, handle, config) => {
                into(runners.recover(run, handle, config), TasksOutcome::Recovered)
            }
            TasksCall::Inspect(run) => into(runners.inspect(run), TasksOutcome::Inspected),
            TasksCall::ReplaceDriver(run) => into(runners.replace_driver(run), TasksOutcome::DriverReplaced),
            TasksCall::Wait(run) => into(runners.wait(run), TasksOutcome::Waited),
            TasksCall::Stop { run, grace, signal } => {
                into(runners.stop(run, grace, signal), TasksOutcome::StopTaken)
            }
            TasksCall::Destroy(run) => into(runners.destroy(run), TasksOutcome::Destroyed),
            TasksCall::Locate { run, handle, evidence } => {
                into(runners.locate(run, handle, evidence), TasksOutcome::Located)
            }
            TasksCall::Sweep { run, handle, evidence, driver } => {
                into(runners.sweep(run, handle, evidence, driver), TasksOutcome::Swept)
            }
        })
    }

    fn published(&mut self, news: &TasksNews) {
        self.logged.log(news);
    }
}

impl<R: Runners> Handler<R> {
    /// Starts to read events; events that were read before and not taken are kept.
    fn watch(
        &self,
        name: AllocationId,
        driver: DriverName,
        after: Option<EventPosition>,
        taken: u64,
    ) -> LocalBoxFuture<'static, TasksOutcome> {
        let present = self.readers.borrow().get(&name).cloned();
        // The present reader is a call of an earlier incarnation, which was dropped before this call.
        let present = present.as_ref().and_then(|reader| reader.try_lock().ok());
        if let Some(reader) = &present
            && reader.driver == driver
            && !reader.has_ended
        {
            return Box::pin(std::future::ready(TasksOutcome::Watched(Ok(()))));
        }
        let (waiting, taken) = match &present {
            Some(reader) => (reader.waiting.clone(), reader.taken),
            None => (VecDeque::new(), taken),
        };
        drop(present);
        let after = waiting.iter().rev().find_map(position).or(after);
        let watching = self.runners.watch(driver.clone(), self.identities.of(&name).key(), after);
        let readers = Rc::clone(&self.readers);
        Box::pin(async move {
            TasksOutcome::Watched(watching.await.map(|events| {
                let reader = Reader { driver, events, waiting, taken, has_ended: false };
                readers.borrow_mut().insert(name, Rc::new(Mutex::new(reader)));
            }))
        })
    }

    /// Waits for events that were not taken yet.
    fn read(&self, name: &AllocationId, taken: u64) -> LocalBoxFuture<'static, TasksOutcome> {
        let reader = self.readers.borrow().get(name).cloned();
        Box::pin(async move {
            match reader {
                Some(reader) => TasksOutcome::Events(reader.lock().await.beyond(taken).await),
                None => TasksOutcome::Events(Vec::new()),
            }
        })
    }
}

fn into<T: 'static>(
    asking: Asking<T>,
    wrap: impl FnOnce(T) -> TasksOutcome + 'static,
) -> LocalBoxFuture<'static, TasksOutcome> {
    Box::pin(async move { wrap(asking.await) })
}
