//! The state of the driver: its tasks, and the events about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_proto::drivers::{DriverTaskEvent, TaskConfig};
use tokio::time::timeout;

use super::arguments::ExecArgs;
use super::birth::StartTerms;
use super::faults::Faults;
use super::memory::TaskMemory;
use super::place::Order;
use super::record::EndStatus;
use super::settings::Settings;
use super::task::Task;
use super::{config, signals};
use crate::plugin::{Events, Refusal, RefusalKind, StartedTask};

/// The timeout for a killed task to end.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before it is killed again.
const KILL_PAUSE: Duration = Duration::from_millis(500);

/// The state of the driver.
#[derive(Debug)]
pub(super) struct ExecState {
    pub(super) args: ExecArgs,
    pub(super) faults: Faults,
    /// Opened with the first task: a driver that is only queried for its identity must not take the file from another driver.
    events: Mutex<Option<Events>>,
    pub(super) memory: TaskMemory,
    settings: Mutex<Settings>,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) known: BTreeMap<String, Arc<Task>>,
    /// The ids of tasks that are being started.
    coming: BTreeSet<String>,
}

impl ExecState {
    pub(super) fn new(args: ExecArgs, faults: Faults) -> Self {
        let memory = TaskMemory::of(args.state_dir.as_deref());
        let (events, settings, tasks) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { args, faults, events, memory, settings, tasks }
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub(super) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn find(&self, task_id: &str) -> Result<Arc<Task>, Refusal> {
        self.tasks().known.get(task_id).cloned().ok_or_else(|| Refusal::no_such_task(task_id))
    }

    /// Finds an unrecovered task that an earlier driver began and did not report before it died, to inspect or end it.
    pub(super) fn recall(&self, task_id: &str) -> Result<Arc<Task>, Refusal> {
        if self.tasks().coming.contains(task_id) {
            return Err(being_started(task_id));
        }
        let failed = |error| {
            Refusal::failed(format!("cannot read the record of task {task_id:?}: {error}")).recoverable(true)
        };
        let noted = self.memory.recall(task_id).map_err(failed)?;
        let Some(task) = noted.map(Task::left).transpose()?.flatten() else {
            self.memory.forget(task_id).map_err(failed)?;
            return Err(Refusal::no_such_task(task_id));
        };
        announce_start(&task, &self.events()?);
        let watched = task.clone();
        tokio::spawn(async move { watched.watch().await });
        Ok(task)
    }

    pub(super) fn events(&self) -> Result<Events, Refusal> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = &*events {
            return Ok(events.clone());
        }
        let failed = |error| {
            let place =
                self.args.state_dir.as_ref().map_or("memory".to_owned(), |dir| dir.display().to_string());
            Refusal::failed(format!("cannot keep task events in {place}: {error}")).recoverable(true)
        };
        let opened = match &self.args.state_dir {
            Some(directory) => DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .and_then(|()| Events::in_file(&directory.join("events"), self.args.events_kept)),
            None => Events::in_memory(self.args.events_kept),
        };
        Ok(events.insert(opened.map_err(failed)?).clone())
    }

    pub(super) fn take_in(self: &Arc<Self>, task: &Arc<Task>, events: Events, kind: &str, message: String) {
        self.tasks().known.insert(task.id().to_owned(), task.clone());
        events.announce(task.event(kind, message));
        let task = task.clone();
        tokio::spawn(async move {
            let end = task.watch().await;
            announce_end(&task, &events, &end.status);
        });
    }

    pub(super) fn signal_number(name: &str) -> Result<i32, Refusal> {
        let unknown = || Refusal::invalid(format!("{name:?} is no signal; name one such as SIGTERM"));
        signals::number(name).ok_or_else(unknown)
    }

    pub(super) fn ask(task: &Task, order: Order) -> Result<bool, Refusal> {
        let failed = |error| Refusal::failed(format!("cannot signal task {:?}: {error}", task.id()));
        task.ask(order).map_err(failed)
    }

    pub(super) async fn kill(task: &Task) -> Result<(), Refusal> {
        let killing = async {
            loop {
                Self::ask(task, Order::Kill)?;
                // Repeated, since the request may be lost with a supervisor that is killed at this moment.
                if timeout(KILL_PAUSE, task.ended()).await.is_ok() {
                    return Ok(());
                }
            }
        };
        match timeout(KILL_TIMEOUT, killing).await {
            Ok(killed) => killed,
            Err(_) => {
                let told =
                    format!("task {:?} does not end within {KILL_TIMEOUT:?} although killed", task.id());
                Err(Refusal::new(RefusalKind::TimedOut, told).recoverable(true))
            }
        }
    }
}

/// Announces the end of a task once, whichever driver has seen it first (EVT-02).
pub(super) fn announce_end(task: &Task, events: &Events, status: &EndStatus) {
    let is_told = |event: &DriverTaskEvent| {
        event.task_id == task.id() && event.annotations.get("kind").is_some_and(|kind| kind == "exited")
    };
    if task.place().is_announced() || events.holds(is_told) {
        return;
    }
    let mut event = task.event("exited", status.told());
    match status {
        EndStatus::Code(code) => event.annotations.insert("exit_code".to_owned(), code.to_string()),
        EndStatus::Signal(signal) => event.annotations.insert("signal".to_owned(), signal.to_string()),
        EndStatus::Unknown(why) => event.annotations.insert("unknown".to_owned(), why.clone()),
    };
    events.announce(event);
    if let Err(error) = task.place().set_announced() {
        // The place of a task that was destroyed meanwhile is gone, and no caller will ask for it.
        tracing::debug!(task = task.id(), error = %error, "cannot record that the end of a task was reported");
    }
}

/// Starts a task, or returns the handle of the same task that was started before. Idempotent.
pub(super) async fn start(state: &Arc<ExecState>, config: TaskConfig) -> Result<StartedTask, Refusal> {
    if config.id.is_empty() {
        return Err(Refusal::invalid("a task needs an id").recoverable(false));
    }
    if !state.settings().is_enabled {
        let told = "this driver is disabled; say `enabled = true` in the `config` of its `plugin` block";
        return Err(Refusal::new(RefusalKind::NotNow, told).recoverable(false));
    }
    let known = {
        let mut tasks = state.tasks();
        let known = tasks.known.get(&config.id).cloned();
        if known.is_none() && !tasks.coming.insert(config.id.clone()) {
            return Err(being_started(&config.id));
        }
        known
    };
    if let Some(task) = known {
        return again(&task, &config);
    }
    let task_id = config.id.clone();
    let started = begin(state, config).await;
    state.tasks().coming.remove(&task_id);
    let task = started?;
    Ok(StartedTask { handle: task.handle(), network: None })
}

async fn begin(state: &Arc<ExecState>, config: TaskConfig) -> Result<Arc<Task>, Refusal> {
    let events = state.events()?;
    let failed = |error| {
        let told = format!("cannot record task {:?} before its start: {error}", config.id);
        Refusal::failed(told).recoverable(true)
    };
    state.memory.note(&config).map_err(failed)?;
    let terms = StartTerms {
        timeout: state.args.start_timeout,
        limits_memory: state.settings().limits_memory,
        hang: state.faults.supervisor_hangs(),
    };
    let task = match Task::start(config.clone(), terms).await {
        Ok(task) => task,
        Err(refusal) => {
            if matches!(Task::left(config.clone()), Ok(None)) {
                state.memory.forget(&config.id).map_err(failed)?;
            }
            return Err(refusal);
        }
    };
    state.take_in(&task, events, "started", started_as(&task));
    Ok(task)
}

fn started_as(task: &Task) -> String {
    format!("started, process {}", task.record.task.pid)
}

fn being_started(task_id: &str) -> Refusal {
    Refusal::new(RefusalKind::NotNow, format!("task {task_id:?} is being started")).recoverable(true)
}

/// Announces the start of a task, if the driver that started it died before it could (EVT-02).
fn announce_start(task: &Task, events: &Events) {
    let is_told = |event: &DriverTaskEvent| {
        let kind = event.annotations.get("kind").map(String::as_str);
        event.task_id == task.id() && matches!(kind, Some("started" | "recovered"))
    };
    if !events.holds(is_told) {
        events.announce(task.event("started", started_as(task)));
    }
}

/// The handle of a known task, if the configuration is the same.
fn again(task: &Task, config: &TaskConfig) -> Result<StartedTask, Refusal> {
    if config::digest(&config::order(config)?) == task.record.digest {
        return Ok(StartedTask { handle: task.handle(), network: None });
    }
    let told =
        format!("task {:?} was already started with another configuration; choose another id", config.id);
    Err(Refusal::new(RefusalKind::Exists, told).recoverable(false))
}
