//! The calls that have one answer.

use std::sync::Arc;
use std::time::Duration;

use callboard_proto::{drivers as wire, hclspec};

use super::exec::ExecSession;
use super::handle::TaskHandle;
use super::line::Line;
use super::stats::TaskStatsStream;
use super::{
    CreatedNetwork, ExecOutcome, NetworkIsolation, StartOutcome, TaskConfig, TaskExit, TaskId, TaskStatus,
};
use super::{DriverError, DriverRpc, ServingProcess};
use super::{from_wire, to_wire};
use crate::rpc::{Channel, asked};
use crate::vocabulary::{AllocationId, DriverName, Generation};

/// A lease of one generation of a driver: a client, cheap to clone, to be used from any thread. It never reconnects.
///
/// Every call has a deadline, and no call outlives its driver: when the driver's process ends, all calls fail with
/// [`DriverError::PluginGone`], which says whether a new lease can help (PRC-05). When the driver is stopped, restarted or removed, no
/// new call begins, calls that only watch (see [`DriverRpc::is_watching`]) fail at once (SHD-03), and all others are waited for up to
/// [`DriverLimits::drain_deadline`](crate::driver::DriverLimits::drain_deadline); then they are cut, and that is logged. Dropping a
/// call stops waiting for it; the driver may or may not take that as a request to stop. Calls may overlap, up to the driver's limit of
/// calls in flight; others wait for a permit, within their deadline.
#[derive(Debug, Clone)]
pub struct DriverClient {
    line: Arc<Line>,
    _token: Arc<Token>,
}

/// Counts a lease while a client of it exists.
#[derive(Debug)]
struct Token(Arc<Line>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.gate.give_back();
    }
}

impl DriverClient {
    /// A client over a line that has counted its lease.
    pub(super) fn of(line: Arc<Line>) -> Self {
        Self { _token: Arc::new(Token(Arc::clone(&line))), line }
    }

    /// The driver that it calls.
    #[must_use]
    pub fn driver(&self) -> &DriverName {
        &self.line.driver
    }

    /// The generation of the driver.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.line.generation
    }

    /// The process of the driver.
    #[must_use]
    pub fn process(&self) -> ServingProcess {
        self.line.process
    }

    /// Whether the driver is gone or about to go, so that no new call begins.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.line.gate.is_closed()
    }

    /// Requests the schema of a task's configuration.
    ///
    /// # Errors
    /// Like all calls: [`DriverError`].
    pub async fn task_config_schema(&self, deadline: Duration) -> Result<hclspec::Spec, DriverError> {
        let question = asked(wire::TaskConfigSchemaRequest {}, deadline);
        let read = |answer: wire::TaskConfigSchemaResponse| {
            answer.spec.ok_or_else(|| "there is no schema in it".to_owned())
        };
        let ask = |mut stub: Stub| async move { stub.task_config_schema(question).await };
        self.line.ask(DriverRpc::TaskConfigSchema, deadline, ask, read).await
    }

    /// Requests the driver to recover a task, after a restart of either side (D108).
    ///
    /// # Errors
    /// Like all calls; the driver refuses a task that no longer exists.
    pub async fn recover_task(&self, handle: &TaskHandle, deadline: Duration) -> Result<(), DriverError> {
        let question =
            wire::RecoverTaskRequest { task_id: String::new(), handle: Some(handle.as_wire().clone()) };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.recover_task(question).await };
        self.line.ask(DriverRpc::RecoverTask, deadline, ask, |_| Ok(())).await
    }

    /// Starts a task. Store the handle before doing anything else about the task (D107).
    ///
    /// # Errors
    /// Like all calls. After [`DriverError::DeadlineExceeded`] and [`DriverError::PluginGone`] the task may run: check with
    /// [`inspect_task`](Self::inspect_task) before it is started again.
    pub async fn start_task(
        &self,
        config: &TaskConfig,
        deadline: Duration,
    ) -> Result<StartOutcome, DriverError> {
        let question = wire::StartTaskRequest { task: Some(to_wire::task_config(config)) };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.start_task(question).await };
        self.line.ask(DriverRpc::StartTask, deadline, ask, from_wire::started).await
    }

    /// Waits until a task has ended. An unknown exit is [`TaskEnd::Unknown`](super::TaskEnd::Unknown) or an error, and
    /// never success (EVT-05).
    ///
    /// # Errors
    /// Like all calls. [`DriverError::DeadlineExceeded`] means that it still runs or that this is unknown; wait again.
    pub async fn wait_task(&self, task: &TaskId, deadline: Duration) -> Result<TaskExit, DriverError> {
        let question = asked(wire::WaitTaskRequest { task_id: task.to_string() }, deadline);
        let ask = |mut stub: Stub| async move { stub.wait_task(question).await };
        self.line.ask(DriverRpc::WaitTask, deadline, ask, from_wire::waited).await
    }

    /// Stops a task: the signal, and after `grace` the driver ends it by force. An empty signal leaves the choice to the
    /// driver. The deadline should exceed the grace.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn stop_task(
        &self,
        task: &TaskId,
        grace: Duration,
        signal: &str,
        deadline: Duration,
    ) -> Result<(), DriverError> {
        let question = wire::StopTaskRequest {
            task_id: task.to_string(),
            timeout: Some(to_wire::span(grace)),
            signal: signal.to_owned(),
        };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.stop_task(question).await };
        self.line.ask(DriverRpc::StopTask, deadline, ask, |_| Ok(())).await
    }

    /// Requests the driver to forget a task; `force` also ends and forgets a task that still runs.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn destroy_task(
        &self,
        task: &TaskId,
        force: bool,
        deadline: Duration,
    ) -> Result<(), DriverError> {
        let question = asked(wire::DestroyTaskRequest { task_id: task.to_string(), force }, deadline);
        let ask = |mut stub: Stub| async move { stub.destroy_task(question).await };
        self.line.ask(DriverRpc::DestroyTask, deadline, ask, |_| Ok(())).await
    }

    /// Requests the status of a task.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn inspect_task(&self, task: &TaskId, deadline: Duration) -> Result<TaskStatus, DriverError> {
        let question = asked(wire::InspectTaskRequest { task_id: task.to_string() }, deadline);
        let ask = |mut stub: Stub| async move { stub.inspect_task(question).await };
        self.line.ask(DriverRpc::InspectTask, deadline, ask, from_wire::inspected).await
    }

    /// Opens the stream of a task's resource usage, with one report in each interval. It is opened when it is first read.
    #[must_use]
    pub fn task_stats(&self, task: &TaskId, interval: Duration) -> TaskStatsStream {
        TaskStatsStream::open(Arc::clone(&self.line), task, interval)
    }

    /// Sends a signal to a task, by its name: `SIGHUP`.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn signal_task(
        &self,
        task: &TaskId,
        signal: &str,
        deadline: Duration,
    ) -> Result<(), DriverError> {
        let question = wire::SignalTaskRequest { task_id: task.to_string(), signal: signal.to_owned() };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.signal_task(question).await };
        self.line.ask(DriverRpc::SignalTask, deadline, ask, |_| Ok(())).await
    }

    /// Runs a command inside a task, and returns all its output. The driver ends it after `limit`.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn exec_task(
        &self,
        task: &TaskId,
        command: &[String],
        limit: Duration,
        deadline: Duration,
    ) -> Result<ExecOutcome, DriverError> {
        let question = wire::ExecTaskRequest {
            task_id: task.to_string(),
            command: command.to_vec(),
            timeout: Some(to_wire::span(limit)),
        };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.exec_task(question).await };
        self.line.ask(DriverRpc::ExecTask, deadline, ask, from_wire::executed).await
    }

    /// Runs a command inside a task, with its streams; with a terminal if `tty`. Send input to the session and read
    /// its output; the session ends with the command.
    #[must_use]
    pub fn exec_task_streaming(&self, task: &TaskId, command: &[String], tty: bool) -> ExecSession {
        ExecSession::open(Arc::clone(&self.line), task, command, tty)
    }

    /// Creates a network for an allocation.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn create_network(
        &self,
        allocation: &AllocationId,
        hostname: &str,
        deadline: Duration,
    ) -> Result<CreatedNetwork, DriverError> {
        let question =
            wire::CreateNetworkRequest { alloc_id: allocation.to_string(), hostname: hostname.to_owned() };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.create_network(question).await };
        self.line.ask(DriverRpc::CreateNetwork, deadline, ask, from_wire::created_network).await
    }

    /// Removes the network of an allocation.
    ///
    /// # Errors
    /// Like all calls.
    pub async fn destroy_network(
        &self,
        allocation: &AllocationId,
        network: &NetworkIsolation,
        deadline: Duration,
    ) -> Result<(), DriverError> {
        let question = wire::DestroyNetworkRequest {
            alloc_id: allocation.to_string(),
            isolation_spec: Some(to_wire::network(network)),
        };
        let question = asked(question, deadline);
        let ask = |mut stub: Stub| async move { stub.destroy_network(question).await };
        self.line.ask(DriverRpc::DestroyNetwork, deadline, ask, |_| Ok(())).await
    }
}

type Stub = wire::driver_client::DriverClient<Channel>;
