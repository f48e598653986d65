//! Tests what the tasks of `callboard run` keep from one incarnation of their actor to the next, with a driver that only reports events.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use callboard::config::{DriverProgram, RestartPolicy, TaskConfig};
use callboard::tasks::{
    self, Asking, Found, Heard, KeptDriver, KeptHandle, ListTasks, RunEvidence, RunKey, Runners, Started,
    Swept, TaskIdentities, Tasks, TasksChange, TasksImage, TasksMemory, TasksOptions, Trouble, Waited,
};
use callboard_actors::driver::{EventPosition, TaskEvent, TaskEventItem, TaskKey};
use callboard_actors::eventor::{JournalId, TaskEvents, TaskJournals};
use callboard_actors::leftovers::Traces;
use callboard_actors::persister::Settled;
use callboard_actors::shell::{Address, Running, Settings, Store, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, DriverName};
use futures_util::future::LocalBoxFuture;
use tokio::time::timeout;

/// Far more than any step of these tests takes.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(1);

/// A driver that accepts subscriptions, and answers nothing else.
#[derive(Clone, Default)]
struct Teller {
    journals: TaskJournals,
    sink: Rc<Cell<Option<JournalId>>>,
    subscriptions: Rc<Cell<u32>>,
}

fn unanswered<T: 'static>() -> Asking<T> {
    Box::pin(std::future::pending())
}

impl Runners for Teller {
    fn set_up(&self, _: DriverName) -> Asking<Result<(), Trouble>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn watch(
        &self,
        _: DriverName,
        _: TaskKey,
        after: Option<EventPosition>,
    ) -> Asking<Result<TaskEvents, Trouble>> {
        let (sink, events) = self.journals.open(1_000, after);
        self.sink.set(Some(sink));
        self.subscriptions.set(self.subscriptions.get() + 1);
        Box::pin(std::future::ready(Ok(events)))
    }

    fn set_up_unconfigured(&self, _: DriverName, _: Box<KeptDriver>) -> Asking<Result<(), Trouble>> {
        unanswered()
    }

    fn dismiss(&self, _: DriverName, _: Vec<AllocationId>) -> Asking<Result<(), Trouble>> {
        unanswered()
    }

    fn forget(&self, _: Option<DriverName>, _: TaskKey) -> Asking<()> {
        unanswered()
    }

    fn start(&self, _: RunKey, _: Arc<TaskConfig>) -> Asking<Started> {
        unanswered()
    }

    fn sent(&self, _run: RunKey) -> Asking<bool> {
        unanswered()
    }

    fn call_off(&self, _run: RunKey) -> Asking<()> {
        Box::pin(std::future::ready(()))
    }

    fn recover(&self, _: RunKey, _: Box<KeptHandle>, _: Arc<TaskConfig>) -> Asking<Result<(), Trouble>> {
        unanswered()
    }

    fn inspect(&self, _: RunKey) -> Asking<Result<Found, Trouble>> {
        unanswered()
    }

    fn replace_driver(&self, _: RunKey) -> Asking<Result<(), Trouble>> {
        unanswered()
    }

    fn wait(&self, _: RunKey) -> Asking<Result<Waited, Trouble>> {
        unanswered()
    }

    fn stop(&self, _: RunKey, _: Duration, _: String) -> Asking<Result<(), Trouble>> {
        unanswered()
    }

    fn destroy(&self, _: RunKey) -> Asking<Result<(), Trouble>> {
        unanswered()
    }

    fn locate(
        &self,
        _: RunKey,
        _: Option<Box<KeptHandle>>,
        _: Box<RunEvidence>,
    ) -> Asking<Result<Traces, Trouble>> {
        unanswered()
    }

    fn sweep(
        &self,
        _: RunKey,
        _: Option<Box<KeptHandle>>,
        _: Box<RunEvidence>,
        _: Heard,
    ) -> Asking<Result<Swept, Trouble>> {
        unanswered()
    }
}

/// A disk that may be too slow for events.
#[derive(Clone, Default)]
struct Disk {
    image: Rc<RefCell<TasksImage>>,
    takes_events: Rc<Cell<bool>>,
    /// The number of writes of events in progress.
    waiting: Rc<Cell<u32>>,
}

impl Store<Tasks> for Disk {
    fn open(&mut self, _: Recipient<Settled>) {}

    fn write(&mut self, _: Ticket, change: TasksChange) -> Written {
        let mut image = self.image.borrow_mut();
        match change {
            TasksChange::State(name, durable) => drop(image.states.insert(name, *durable)),
            TasksChange::KeepDriver(driver, kept) => drop(image.drivers.insert(driver, *kept)),
            TasksChange::Log(name, log) if self.takes_events.get() => drop(image.logs.insert(name, *log)),
            TasksChange::Log(..) => {
                self.waiting.set(self.waiting.get() + 1);
                return Written::Later;
            }
            TasksChange::Returns(_) | TasksChange::Forget(_) | TasksChange::ForgetDriver(_) => {}
        }
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<TasksImage, String>> {
        Box::pin(std::future::ready(Ok(self.image.borrow().clone())))
    }
}

fn kept() -> KeptDriver {
    KeptDriver {
        program: DriverProgram::Internal("exec".to_owned()),
        arguments: vec![],
        sha256: None,
        survives: true,
        stop_grace: Duration::from_secs(5),
        start_timeout: Duration::from_secs(60),
        had_more: false,
    }
}

fn options() -> TasksOptions {
    let driver = DriverName::new("teller").expect("a good name");
    TasksOptions {
        tasks: vec![Arc::new(TaskConfig::new(
            AllocationId::new("web").expect("a good name"),
            driver.clone(),
        ))],
        drivers: BTreeMap::from([(driver, kept())]),
        restart: RestartPolicy::new(2, Duration::from_secs(60), Duration::from_secs(1)),
        identities: TaskIdentities::of_owner("0123456789abcdef"),
        boot: None,
    }
}

fn event(sequence: u64) -> TaskEventItem {
    let options = options();
    let event = TaskEvent {
        task_id: "web/1".into(),
        task: options.identities.of(&options.tasks[0].name).key(),
        at: None,
        message: format!("event {sequence}"),
        annotations: BTreeMap::new(),
    };
    let position = EventPosition { stream: "events".into(), sequence };
    TaskEventItem::Event { event: Arc::new(event), position: Some(position) }
}

fn start(address: &Address<Tasks>, teller: &Teller, disk: &Disk, memory: &TasksMemory) -> Running {
    tasks::start(address, options(), teller.clone(), disk.clone(), memory, Settings::default())
}

#[test]
fn an_event_that_was_read_and_is_not_on_disk_outlives_the_actor_evt_03() {
    let story = async {
        let address = Address::vacant("tasks", 64);
        let (teller, disk, memory) = (Teller::default(), Disk::default(), TasksMemory::default());
        let running = start(&address, &teller, &disk, &memory);
        while teller.sink.get().is_none() {
            tokio::time::sleep(PAUSE).await;
        }
        let sink = teller.sink.get().expect("it was subscribed to");
        teller.journals.put(sink, event(1));
        while disk.waiting.get() == 0 {
            tokio::time::sleep(PAUSE).await;
        }
        teller.journals.put(sink, event(2));
        running.kill();
        running.ended().await;

        disk.takes_events.set(true);
        let _running = start(&address, &teller, &disk, &memory);
        let told = loop {
            let tasks = address.ask(ListTasks).await.expect("it runs");
            if tasks[0].events_told == 2 {
                break tasks[0].events.iter().map(|folded| folded.text.clone()).collect::<Vec<_>>();
            }
            tokio::time::sleep(PAUSE).await;
        };
        assert_eq!(told, ["event 1", "event 2"]);
        assert_eq!(teller.subscriptions.get(), 1, "its events were never out of sight");
    };
    let in_time = async { timeout(TIMEOUT, story).await };
    actix_rt::System::new().block_on(in_time).expect("it ends in time");
}
