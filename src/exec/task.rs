//! One task, as the driver knows it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::process::boot_id;
use callboard_proto::drivers::{DriverTaskEvent, ExitResult, TaskConfig, TaskHandle, TaskState, TaskStatus};
use prost_types::Timestamp;
use rustix::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::birth::{StartTerms, supervise};
use super::hidden::{self, Since};
use super::place::{Order, TaskPlace};
use super::record::{DriverState, EndStatus, ProcessIdentity, TaskEnd, TaskOrder, TaskRecord};
use super::{config, placement, processes};
use crate::plugin::{Refusal, RefusalKind, TaskExit};

/// The version of this driver's handles.
const HANDLE_VERSION: i32 = 1;
/// The polling interval while another supervisor starts the same task.
const START_PAUSE: Duration = Duration::from_millis(10);
/// The exit code for an unknown exit (EVT-05). No process can end with it.
const UNKNOWN_CODE: i32 = -1;
/// The exit code of a signalled task is this plus the signal, as in shells.
const SIGNAL_CODE_BASE: i32 = 128;

#[derive(Debug)]
pub(super) struct Task {
    pub(super) config: TaskConfig,
    pub(super) record: TaskRecord,
    place: TaskPlace,
    ended: watch::Sender<Option<TaskEnd>>,
}

impl Task {
    /// Starts a task, or finds the task that an earlier driver has started with the same order (PRC-09).
    pub(super) async fn start(config: TaskConfig, terms: StartTerms) -> Result<Arc<Self>, Refusal> {
        let order = config::order(&config)?;
        let place = TaskPlace::of(&config::task_directory(&config)?, &config.id);
        let failed = |error: io::Error| {
            let told =
                format!("cannot keep the state of task {:?} in {:?}: {error}", config.id, place.path());
            Refusal::failed(told).recoverable(true)
        };
        let began = Instant::now();
        let record = loop {
            place.make().map_err(failed)?;
            match (place.lock().map_err(failed)?, place.read().map_err(failed)?) {
                (_, Some(record)) => break Self::same(&config, &order, record)?,
                (Some(lock), None) => match placement::place(&config, terms.limits_memory) {
                    Ok(groups) => break supervise(&order, &groups, &place, lock, &config.id, terms).await?,
                    Err(refusal) => {
                        place.remove().map_err(failed)?;
                        return Err(refusal);
                    }
                },
                // Another driver was killed while its supervisor was starting this task.
                (None, None) if began.elapsed() < terms.timeout => sleep(START_PAUSE).await,
                (None, None) => {
                    let told = format!("task {:?} is being started by a supervisor that hangs", config.id);
                    return Err(Refusal::new(RefusalKind::TimedOut, told).recoverable(true));
                }
            }
        };
        Ok(Self::new(config, record, place))
    }

    /// The record of a task that was started before, if the order is the same.
    fn same(config: &TaskConfig, order: &TaskOrder, record: TaskRecord) -> Result<TaskRecord, Refusal> {
        if record.digest == config::digest(order) {
            return Ok(record);
        }
        let told = format!(
            "task {:?} was already started with another configuration; destroy that one, or choose another id",
            config.id
        );
        Err(Refusal::new(RefusalKind::Exists, told).recoverable(false))
    }

    /// Recovers a task by its handle. The handle only leads to the record of the task, which has its present state: after a
    /// restart of its agent, Nomad gives no driver configuration back (T150, T151).
    pub(super) fn recover(handle: TaskHandle) -> Result<Arc<Self>, Refusal> {
        let refused = |why: String| {
            Refusal::invalid(format!("cannot recover by this handle: {why}")).recoverable(false)
        };
        let config = handle.config.ok_or_else(|| refused("it has no configuration".to_owned()))?;
        if handle.version != HANDLE_VERSION {
            return Err(refused(format!("it has version {}, not {HANDLE_VERSION}", handle.version)));
        }
        let state: DriverState =
            serde_json::from_slice(&handle.driver_state).map_err(|error| refused(error.to_string()))?;
        let place = TaskPlace::at(state.place);
        // If the state is gone, only the record in the handle is left.
        let record = match place.read() {
            Ok(Some(record)) => record,
            Ok(None) => state.record,
            Err(error) => return Err(refused(format!("{:?} cannot be read: {error}", place.path()))),
        };
        Ok(Self::new(config, record, place))
    }

    /// The task that an earlier driver began and could not report before it died; `None` if it was not started.
    pub(super) fn left(config: TaskConfig) -> Result<Option<Arc<Self>>, Refusal> {
        let place = TaskPlace::of(&config::task_directory(&config)?, &config.id);
        let failed = |error: io::Error| {
            Refusal::failed(format!("cannot look at {:?}: {error}", place.path())).recoverable(true)
        };
        if !place.path().exists() {
            return Ok(None);
        }
        // The lock is taken first: a supervisor that releases it has written its record.
        let lock = place.lock().map_err(failed)?;
        match (lock, place.read().map_err(failed)?) {
            (_, Some(record)) => Ok(Some(Self::new(config, record, place))),
            (Some(_), None) => place.remove().map(|()| None).map_err(failed),
            (None, None) => Err(Refusal::new(
                RefusalKind::NotNow,
                format!("task {:?} is being started by a supervisor of an earlier driver", config.id),
            )
            .recoverable(true)),
        }
    }

    fn new(config: TaskConfig, record: TaskRecord, place: TaskPlace) -> Arc<Self> {
        let ended = watch::Sender::new(None);
        Arc::new(Self { config, record, place, ended })
    }

    pub(super) fn id(&self) -> &str {
        &self.config.id
    }

    pub(super) fn handle(&self) -> TaskHandle {
        let state = DriverState { place: self.place.path().to_owned(), record: self.record.clone() };
        TaskHandle {
            version: HANDLE_VERSION,
            config: Some(self.config.clone()),
            state: self.state().into(),
            driver_state: serde_json::to_vec(&state).expect("paths that came as text are text"),
        }
    }

    /// Waits for the end of the task, without a timeout, and records it.
    pub(super) async fn watch(&self) -> TaskEnd {
        let end = match self.follow().await {
            Ok(end) => end,
            Err(error) => TaskEnd {
                status: EndStatus::Unknown(format!("it could not be watched: {error}")),
                oom_killed: false,
                at: now(),
            },
        };
        self.ended.send_replace(Some(end.clone()));
        end
    }

    async fn follow(&self) -> io::Result<TaskEnd> {
        let unknown =
            |why: &str| TaskEnd { status: EndStatus::Unknown(why.to_owned()), oom_killed: false, at: now() };
        if let Some(end) = self.record.ended.clone() {
            return Ok(end);
        }
        if self.record.boot_id != boot_id()? {
            return Ok(unknown("the machine was rebooted"));
        }
        until_gone(&self.record.supervisor).await?;
        if let Some(end) = self.place.read()?.and_then(|record| record.ended) {
            return Ok(end);
        }
        tracing::warn!(task = self.id(), pid = self.record.task.pid, "the supervisor of a task is gone");
        until_gone(&self.record.task).await?;
        // Its supervisor would have killed the remaining processes; none of them may run beside the next task.
        processes::end_tagged(&self.record.tag).await;
        let since = Since::new(self.record.task.start_ticks, self.record.context.as_ref());
        match hidden::left(since).await {
            None => Ok(unknown("its supervisor was killed")),
            Some(left) => {
                tracing::warn!(task = self.id(), "unknown whether processes of a task are left: {left}");
                Ok(unknown(&format!("its supervisor was killed, and {left}")))
            }
        }
    }

    pub(super) fn end(&self) -> Option<TaskEnd> {
        self.ended.borrow().clone()
    }

    pub(super) async fn ended(&self) -> TaskEnd {
        let mut ended = self.ended.subscribe();
        let end = ended.wait_for(Option::is_some).await.expect("the sender lives in this task");
        end.clone().expect("it was waited for")
    }

    /// Sends it a request. Returns `false` if it has ended.
    pub(super) fn ask(&self, order: Order) -> io::Result<bool> {
        // A killed supervisor may keep its FIFO open for a moment, but does not read it.
        let is_heard =
            || Ok::<bool, io::Error>(self.place.ask(order)? && processes::lives(&self.record.supervisor));
        if self.end().is_some() || is_heard()? {
            return Ok(self.end().is_none());
        }
        // The supervisor is gone. Processes that provably belong to the task are signalled directly.
        let mut found = processes::of_task(&self.record)?;
        let number = match order {
            Order::Signal(number) => {
                found.retain(|_, process| *process == self.record.task);
                number
            }
            Order::SignalGroup(number) => number,
            Order::Kill => super::signals::KILL,
        };
        Ok(processes::signal_each(found.values(), number)? > 0)
    }

    pub(super) fn state(&self) -> TaskState {
        match self.end() {
            None => TaskState::Running,
            Some(_) => TaskState::Exited,
        }
    }

    pub(super) fn status(&self) -> TaskStatus {
        let end = self.end();
        TaskStatus {
            id: self.config.id.clone(),
            name: self.config.name.clone(),
            state: self.state().into(),
            started_at: Some(timestamp(self.record.started_at)),
            completed_at: end.as_ref().map(|end| timestamp(end.at)),
            result: end.map(|end| exit(&end.status, end.oom_killed).result),
        }
    }

    pub(super) fn event(&self, kind: &str, message: String) -> DriverTaskEvent {
        DriverTaskEvent {
            task_id: self.config.id.clone(),
            alloc_id: self.config.alloc_id.clone(),
            task_name: self.config.name.clone(),
            timestamp: None,
            message,
            annotations: [("kind".to_owned(), kind.to_owned())].into(),
        }
    }

    pub(super) const fn place(&self) -> &TaskPlace {
        &self.place
    }
}

/// The exit as hosts receive it. An unknown exit is not a success (EVT-05).
pub(super) fn exit(status: &EndStatus, oom_killed: bool) -> TaskExit {
    let result = |exit_code, signal| ExitResult { exit_code, signal, oom_killed };
    match status {
        EndStatus::Code(code) => TaskExit { result: result(*code, 0), error: None },
        EndStatus::Signal(signal) => {
            TaskExit { result: result(SIGNAL_CODE_BASE + signal, *signal), error: None }
        }
        EndStatus::Unknown(why) => TaskExit {
            result: result(UNKNOWN_CODE, 0),
            error: Some(format!("the exit status is unknown: {why}")),
        },
    }
}

fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn timestamp(since_epoch: Duration) -> Timestamp {
    Timestamp {
        seconds: i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX),
        nanos: since_epoch.subsec_nanos().cast_signed(),
    }
}

async fn until_gone(process: &ProcessIdentity) -> io::Result<()> {
    match processes::descriptor(process) {
        Some(descriptor) => until_ended(descriptor).await,
        None => Ok(()),
    }
}

/// Waits until the process of a pidfd has ended, without reaping it.
pub(super) async fn until_ended(descriptor: OwnedFd) -> io::Result<()> {
    // A pidfd becomes readable when the process has ended, and stays readable.
    watched(descriptor, Interest::READABLE)?.readable().await.map(drop)
}

/// A descriptor whose readiness can be awaited.
#[allow(deprecated, reason = "what takes its place is unsafe; an owned descriptor is what it asks for")]
pub(super) fn watched(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, interest)
}
