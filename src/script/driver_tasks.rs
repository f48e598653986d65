//! The simulated tasks of a scripted driver: each runs until the script ends it.

use std::collections::BTreeMap;

use callboard_proto::drivers as wire;
use tokio::sync::watch;
use tonic::Status;

use super::driver::Says;

/// How a task ended, as its driver reports it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskEnding {
    /// With this result.
    Known(wire::ExitResult),
    /// The driver reports that it ended, but not how.
    Untold,
    /// The driver reports why it does not know.
    Lost(String),
}

/// One task.
struct Task {
    config: wire::TaskConfig,
    ending: watch::Sender<Option<TaskEnding>>,
    /// Whether the present process of the driver knows it: it has started it, or recovered it.
    is_known: bool,
    signals: Vec<String>,
}

/// The tasks of a driver, by their ids. They outlive its process.
#[derive(Default)]
pub(super) struct Tasks(BTreeMap<String, Task>);

/// Receives the end of a task.
pub(super) type Ends = watch::Receiver<Option<TaskEnding>>;

impl Tasks {
    /// Another process of the driver runs: it knows no task that it has not recovered.
    pub(super) fn lose_sight(&mut self) {
        self.0.values_mut().for_each(|task| task.is_known = false);
    }

    fn known(&mut self, id: &str) -> Result<&mut Task, Status> {
        let task = self.0.get_mut(id).filter(|task| task.is_known);
        task.ok_or_else(|| Status::not_found(format!("no task {id}")))
    }

    /// Starts a task.
    pub(super) fn start(&mut self, config: wire::TaskConfig) -> Result<wire::StartTaskResponse, Status> {
        if self.0.contains_key(&config.id) {
            return Err(Status::already_exists(format!("task {} is there already", config.id)));
        }
        let handle = wire::TaskHandle {
            version: 1,
            config: Some(config.clone()),
            state: wire::TaskState::Running.into(),
            driver_state: Vec::new(),
        };
        let (ending, _) = watch::channel(None);
        let task = Task { config, ending, is_known: true, signals: Vec::new() };
        self.0.insert(task.config.id.clone(), task);
        Ok(wire::StartTaskResponse { handle: Some(handle), ..Default::default() })
    }

    /// Recovers a task that an earlier process of the driver started.
    pub(super) fn recover(&mut self, handle: Option<&wire::TaskHandle>) -> Result<(), Status> {
        let id = handle.and_then(|handle| handle.config.as_ref()).map_or("", |config| &config.id);
        match self.0.get_mut(id) {
            Some(task) => {
                task.is_known = true;
                Ok(())
            }
            None => Err(Status::not_found(format!("no task {id}"))),
        }
    }

    /// A receiver for a task's end.
    pub(super) fn ends(&mut self, id: &str) -> Result<Ends, Status> {
        Ok(self.known(id)?.ending.subscribe())
    }

    /// Lets a task end by itself. False means that no such task runs.
    pub(super) fn end(&mut self, id: &str, ending: TaskEnding) -> bool {
        self.0.get(id).is_some_and(|task| {
            task.ending.send_if_modified(|known| {
                let runs = known.is_none();
                known.get_or_insert(ending);
                runs
            })
        })
    }

    /// Ends a task on request of the host; a task that has ended stays as it is.
    pub(super) fn stop(&mut self, id: &str, signal: &str) -> Result<(), Status> {
        self.known(id)?;
        let signal = if signal == "SIGKILL" { 9 } else { 15 };
        self.end(id, TaskEnding::Known(wire::ExitResult { signal, ..Default::default() }));
        Ok(())
    }

    /// Forgets a task.
    pub(super) fn destroy(&mut self, id: &str, is_forced: bool) -> Result<(), Status> {
        let runs = self.known(id)?.ending.borrow().is_none();
        if runs && !is_forced {
            return Err(Status::failed_precondition(format!("task {id} still runs")));
        }
        self.0.remove(id);
        Ok(())
    }

    /// The state of a task.
    pub(super) fn inspect(&mut self, id: &str) -> Result<wire::InspectTaskResponse, Status> {
        let task = self.known(id)?;
        let (state, result) = match &*task.ending.borrow() {
            None => (wire::TaskState::Running, None),
            Some(TaskEnding::Known(result)) => (wire::TaskState::Exited, Some(*result)),
            Some(TaskEnding::Untold) => (wire::TaskState::Exited, None),
            Some(TaskEnding::Lost(_)) => (wire::TaskState::Unknown, None),
        };
        let status = wire::TaskStatus {
            id: id.to_owned(),
            name: task.config.name.clone(),
            state: state.into(),
            result,
            ..Default::default()
        };
        let signals = Some(task.signals.join(", ")).filter(|signals| !signals.is_empty());
        let attributes = signals.map(|signals| ("signals".to_owned(), signals)).into_iter().collect();
        let driver = Some(wire::TaskDriverStatus { attributes });
        Ok(wire::InspectTaskResponse { task: Some(status), driver, network_override: None })
    }

    /// Records a signal.
    pub(super) fn signal(&mut self, id: &str, signal: &str) -> Result<(), Status> {
        self.known(id)?.signals.push(signal.to_owned());
        Ok(())
    }
}

/// Waits for the end of a task.
pub(super) async fn waited(mut ends: Ends) -> Result<wire::WaitTaskResponse, Status> {
    match ends.wait_for(Option::is_some).await.map(|ending| ending.clone()) {
        Ok(Some(TaskEnding::Known(result))) => {
            Ok(wire::WaitTaskResponse { result: Some(result), err: String::new() })
        }
        Ok(Some(TaskEnding::Lost(err))) => Ok(wire::WaitTaskResponse { result: None, err }),
        Ok(Some(TaskEnding::Untold) | None) => Ok(wire::WaitTaskResponse::default()),
        Err(_) => Err(Status::not_found("the task was destroyed")),
    }
}

/// The resource usage of a task, which is constant.
pub(super) fn figures(id: &str) -> wire::TaskStatsResponse {
    let memory = wire::MemoryUsage {
        rss: 4 << 20,
        measured_fields: vec![wire::memory_usage::Fields::Rss.into()],
        ..Default::default()
    };
    let usage = wire::TaskResourceUsage { memory: Some(memory), cpu: None };
    let stats = wire::TaskStats { id: id.to_owned(), agg_resource_usage: Some(usage), ..Default::default() };
    wire::TaskStatsResponse { stats: Some(stats) }
}

/// The command of a session: it echoes its input, reports the size of its terminal, and ends when its input ends. It continues when its
/// output is no longer read.
pub(super) async fn echo(
    mut asked: tonic::Streaming<wire::ExecTaskStreamingRequest>,
    says: Says<wire::ExecTaskStreamingResponse>,
) {
    let piece = |data, close| Some(wire::ExecTaskStreamingIoOperation { data, close });
    while let Ok(Some(said)) = asked.message().await {
        if let Some(wire::exec_task_streaming_request::TerminalSize { height, width }) = said.tty_size {
            let stderr = piece(format!("{height} lines of {width}").into_bytes(), false);
            let _ = says.send(Ok(wire::ExecTaskStreamingResponse { stderr, ..Default::default() }));
        }
        let Some(wire::ExecTaskStreamingIoOperation { data, close }) = said.stdin else { continue };
        if !data.is_empty() {
            let stdout = piece(data, false);
            let _ = says.send(Ok(wire::ExecTaskStreamingResponse { stdout, ..Default::default() }));
        }
        if close {
            let stdout = piece(Vec::new(), true);
            let result = Some(wire::ExitResult::default());
            let last = wire::ExecTaskStreamingResponse { stdout, exited: true, result, ..Default::default() };
            let _ = says.send(Ok(last));
            return;
        }
    }
}
