//! What a driver is: the trait that a plugin author implements.

use std::future::ready;
use std::pin::Pin;
use std::time::Duration;

use callboard_proto::base::NomadConfig;
use callboard_proto::drivers::fingerprint_response::HealthState;
use callboard_proto::drivers::{
    DriverCapabilities, DriverTaskEvent, ExecTaskStreamingRequest, ExecTaskStreamingResponse, ExitResult,
    FingerprintResponse, NetworkIsolationSpec, NetworkOverride, TaskConfig, TaskDriverStatus, TaskHandle,
    TaskStats, TaskStatus,
};
use callboard_proto::hclspec::Spec;
use callboard_proto::structs::Attribute;
use callboard_proto::structs::attribute::Value;
use futures_util::stream::{once, pending};
use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;

use super::events::{Events, EventsFrom};
use super::refusal::Refusal;
use super::schema;

/// Answers that come one after the other, until the driver ends them, the host leaves, or the plugin is told to stop.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Refusal>> + Send>>;

/// Who a driver is (D102).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// Its name, by which jobs ask for it.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// The versions of the plugin interface that it speaks.
    pub api_versions: Vec<String>,
}

impl PluginInfo {
    /// A driver that speaks the one version of the interface that there is.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), api_versions: vec!["v0.1.0".to_owned()] }
    }
}

/// The configuration of a driver, as the host sends it once after the start, and again when it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginConfig {
    /// What the operator wrote, encoded by the driver's own schema; read it with [`decode`]. Empty when there is nothing.
    pub msgpack: Vec<u8>,
    /// What the host says of itself.
    pub host: Option<NomadConfig>,
    /// The version of the plugin interface that the host has chosen.
    pub api_version: String,
}

/// A task that was started.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedTask {
    /// What the host stores, and gives back to [`Driver::recover_task`] after a restart of the driver (D107).
    pub handle: TaskHandle,
    /// How the task is reached, if not as its host is.
    pub network: Option<NetworkOverride>,
}

/// How a task ended. What is not known is no success (EVT-05).
#[derive(Debug, Clone, PartialEq)]
pub struct TaskExit {
    /// The code and the signal.
    pub result: ExitResult,
    /// Why these cannot be relied on, if they cannot.
    pub error: Option<String>,
}

/// What a driver tells of one task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InspectedTask {
    /// Its state, its times and how it ended.
    pub status: TaskStatus,
    /// What only this driver knows of it.
    pub driver: TaskDriverStatus,
    /// How it is reached, if not as its host is.
    pub network: Option<NetworkOverride>,
}

/// What a command printed that ran beside a task, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecOutput {
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub result: ExitResult,
}

/// A task driver.
///
/// Calls come concurrently, and the same one may come again: a host that lost the answer asks once more. What a driver
/// leaves out answers `UNIMPLEMENTED`, which hosts take for a no.
#[tonic::async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Says who the driver is. Hosts ask this before anything else, also of a driver that they do not use then.
    fn info(&self) -> PluginInfo;

    /// The schema of the driver's own configuration.
    fn config_schema(&self) -> Spec {
        schema::object([])
    }

    /// Takes the driver's own configuration.
    async fn set_config(&self, _config: PluginConfig) -> Result<(), Refusal> {
        Ok(())
    }

    /// Prepares the driver, after its configuration is set and before the first task. Optional (D109).
    async fn init(&self) -> Result<(), Refusal> {
        Err(Refusal::unsupported("Init"))
    }

    /// The schema of the configuration of a task.
    fn task_config_schema(&self) -> Spec;

    /// What the driver can do beside what every driver can.
    fn capabilities(&self) -> DriverCapabilities {
        DriverCapabilities::default()
    }

    /// Reports what the node offers through this driver and whether that is healthy: at once, and whenever it changes (D105).
    /// The end of the stream means that the driver gives up. By default it is healthy, and that never changes.
    async fn fingerprint(&self) -> Result<Answers<FingerprintResponse>, Refusal> {
        let report = FingerprintResponse {
            attributes: [(format!("driver.{}", self.info().name), bool_attribute(true))].into(),
            health: HealthState::Healthy.into(),
            health_description: "healthy".to_owned(),
            err: String::new(),
        };
        Ok(Box::pin(once(ready(Ok(report))).chain(pending())))
    }

    /// The driver's task events. What is announced there reaches every host that listens.
    fn events(&self) -> Result<Events, Refusal>;

    /// The task events from somewhere on, and then all that come.
    async fn task_events(&self, from: EventsFrom) -> Result<Answers<DriverTaskEvent>, Refusal> {
        Ok(Box::pin(self.events()?.follow(&from).map(Ok)))
    }

    /// Starts a task. The answer comes when it runs.
    async fn start_task(&self, task: TaskConfig) -> Result<StartedTask, Refusal>;

    /// Takes a task over that an earlier process of this driver started (D108). A task that is known already stays as it is.
    async fn recover_task(&self, _handle: TaskHandle) -> Result<(), Refusal> {
        Err(Refusal::unsupported("RecoverTask: its tasks end with it"))
    }

    /// Waits until a task has ended. Asked again after that, the answer is the same.
    async fn wait_task(&self, task_id: &str) -> Result<TaskExit, Refusal>;

    /// Asks a task to end by a signal, and ends it by force when `timeout` is over. An empty name means the driver's usual
    /// signal. One that has ended already is no error.
    async fn stop_task(&self, task_id: &str, timeout: Duration, signal: &str) -> Result<(), Refusal>;

    /// Forgets a task and all that was kept for it. One that runs is refused, or ended first if `force` is set.
    async fn destroy_task(&self, task_id: &str, force: bool) -> Result<(), Refusal>;

    /// Tells of one task.
    async fn inspect_task(&self, task_id: &str) -> Result<InspectedTask, Refusal>;

    /// Reports what a task uses, once in an interval, until it ends.
    async fn task_stats(&self, _task_id: &str, _interval: Duration) -> Result<Answers<TaskStats>, Refusal> {
        Err(Refusal::unsupported("TaskStats"))
    }

    /// Sends a signal, given by its name, to a task.
    async fn signal_task(&self, _task_id: &str, _signal: &str) -> Result<(), Refusal> {
        Err(Refusal::unsupported("SignalTask"))
    }

    /// Runs a command in the surroundings of a task and gives what it printed.
    async fn exec_task(
        &self,
        _task_id: &str,
        _command: &[String],
        _timeout: Duration,
    ) -> Result<ExecOutput, Refusal> {
        Err(Refusal::unsupported("ExecTask"))
    }

    /// Runs a command in the surroundings of a task, with its input and output as streams. The first request says which.
    async fn exec_task_streaming(
        &self,
        _requests: Answers<ExecTaskStreamingRequest>,
    ) -> Result<Answers<ExecTaskStreamingResponse>, Refusal> {
        Err(Refusal::unsupported("ExecTaskStreaming"))
    }

    /// Makes the network of an allocation. Says whether it was made now, or was there.
    async fn create_network(
        &self,
        _allocation: &str,
        _hostname: &str,
    ) -> Result<(NetworkIsolationSpec, bool), Refusal> {
        Err(Refusal::unsupported("CreateNetwork"))
    }

    /// Removes the network of an allocation.
    async fn destroy_network(
        &self,
        _allocation: &str,
        _network: Option<NetworkIsolationSpec>,
    ) -> Result<(), Refusal> {
        Err(Refusal::unsupported("DestroyNetwork"))
    }

    /// Prepares for the end of the driver, not of its tasks. Optional (D109).
    async fn shutdown(&self) -> Result<(), Refusal> {
        Err(Refusal::unsupported("Shutdown"))
    }
}

/// An attribute of a fingerprint that is a yes or a no.
fn bool_attribute(value: bool) -> Attribute {
    Attribute { unit: String::new(), value: Some(Value::BoolVal(value)) }
}

/// Reads a configuration that was encoded by a schema.
///
/// # Errors
/// [`RefusalKind::Invalid`](super::RefusalKind::Invalid) when it does not fit the type, with what does not.
pub fn decode<T: DeserializeOwned>(msgpack: &[u8]) -> Result<T, Refusal> {
    rmp_serde::from_slice(msgpack)
        .map_err(|error| Refusal::invalid(format!("cannot read the configuration: {error}")))
}
