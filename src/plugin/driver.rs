//! The driver trait, which a plugin author implements.

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

/// A stream of answers. It ends when the driver ends it, the host disconnects, or the plugin is requested to stop.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Refusal>> + Send>>;

/// Identity of a driver (D102).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// Its name, which jobs refer to.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// The versions of the plugin API that it speaks.
    pub api_versions: Vec<String>,
}

impl PluginInfo {
    /// A driver that speaks `v0.1.0`, the only version of the plugin API.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), api_versions: vec!["v0.1.0".to_owned()] }
    }
}

/// The configuration of a driver. The host sends it once after the start, and again when it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginConfig {
    /// The operator's configuration, encoded by the driver's own schema; read it with [`decode`]. Empty if there is none.
    pub msgpack: Vec<u8>,
    /// The host's data about itself.
    pub host: Option<NomadConfig>,
    /// The version of the plugin API that the host has chosen.
    pub api_version: String,
}

/// A task that was started.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedTask {
    /// The handle that the host stores and passes to [`Driver::recover_task`] after a restart of the driver (D107).
    pub handle: TaskHandle,
    /// The task's network, if it differs from the network of its host.
    pub network: Option<NetworkOverride>,
}

/// How a task ended. An unknown result does not count as success (EVT-05).
#[derive(Debug, Clone, PartialEq)]
pub struct TaskExit {
    /// The exit code and the signal.
    pub result: ExitResult,
    /// Why the result is unreliable, if it is.
    pub error: Option<String>,
}

/// The state of one task, as the driver reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InspectedTask {
    /// Its state, its times and its exit.
    pub status: TaskStatus,
    /// Driver-specific status.
    pub driver: TaskDriverStatus,
    /// The task's network, if it differs from the network of its host.
    pub network: Option<NetworkOverride>,
}

/// The output and the exit of a command that ran beside a task.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecOutput {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub result: ExitResult,
}

/// A task driver.
///
/// Calls arrive concurrently. The same call may arrive again, since a host that lost the answer retries; so calls must be
/// idempotent. A call that the driver does not implement answers `UNIMPLEMENTED`, which hosts treat as a refusal.
#[tonic::async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Returns the driver's identity. Hosts ask for it first, even if they do not use the driver afterwards.
    fn info(&self) -> PluginInfo;

    /// Returns the schema of the driver's own configuration.
    fn config_schema(&self) -> Spec {
        schema::object([])
    }

    /// Applies the driver's own configuration.
    async fn set_config(&self, _config: PluginConfig) -> Result<(), Refusal> {
        Ok(())
    }

    /// Initializes the driver, after its configuration is set and before the first task. Optional (D109).
    async fn init(&self) -> Result<(), Refusal> {
        Err(Refusal::unsupported("Init"))
    }

    /// Returns the schema of a task's configuration.
    fn task_config_schema(&self) -> Spec;

    /// Returns the optional capabilities of the driver. A driver without file system isolation counts as a driver that mounts nothing,
    /// unless its fingerprint has the attribute `driver.NAME.mounts` as true: the protocol has no other way to report it.
    fn capabilities(&self) -> DriverCapabilities {
        DriverCapabilities::default()
    }

    /// Reports what the node offers through this driver and whether it is healthy: at once, and after each change (D105). The end of the
    /// stream means that the driver gives up. By default the driver is always healthy.
    async fn fingerprint(&self) -> Result<Answers<FingerprintResponse>, Refusal> {
        let report = FingerprintResponse {
            attributes: [(format!("driver.{}", self.info().name), bool_attribute(true))].into(),
            health: HealthState::Healthy.into(),
            health_description: "healthy".to_owned(),
            err: String::new(),
        };
        Ok(Box::pin(once(ready(Ok(report))).chain(pending())))
    }

    /// Returns the driver's task events. An event announced there reaches every subscribed host.
    fn events(&self) -> Result<Events, Refusal>;

    /// Streams the task events from a position, then new events as they arrive.
    async fn task_events(&self, from: EventsFrom) -> Result<Answers<DriverTaskEvent>, Refusal> {
        Ok(Box::pin(self.events()?.follow(&from).map(Ok)))
    }

    /// Starts a task. Returns when it runs.
    async fn start_task(&self, task: TaskConfig) -> Result<StartedTask, Refusal>;

    /// Takes over a task that an earlier process of this driver started (D108). No effect on a task that is already known.
    async fn recover_task(&self, _handle: TaskHandle) -> Result<(), Refusal> {
        Err(Refusal::unsupported("RecoverTask: its tasks end with it"))
    }

    /// Waits until a task has ended. Later calls give the same answer.
    async fn wait_task(&self, task_id: &str) -> Result<TaskExit, Refusal>;

    /// Sends a signal to a task, and kills the task after `timeout`. An empty `signal` means the driver's default signal. A task that has
    /// already ended is not an error.
    async fn stop_task(&self, task_id: &str, timeout: Duration, signal: &str) -> Result<(), Refusal>;

    /// Forgets a task and everything kept for it. A running task is refused, or ended first if `force` is set.
    async fn destroy_task(&self, task_id: &str, force: bool) -> Result<(), Refusal>;

    /// Returns the state of one task.
    async fn inspect_task(&self, task_id: &str) -> Result<InspectedTask, Refusal>;

    /// Reports the resource usage of a task, once per interval, until it ends.
    async fn task_stats(&self, _task_id: &str, _interval: Duration) -> Result<Answers<TaskStats>, Refusal> {
        Err(Refusal::unsupported("TaskStats"))
    }

    /// Sends a signal, given by name, to a task.
    async fn signal_task(&self, _task_id: &str, _signal: &str) -> Result<(), Refusal> {
        Err(Refusal::unsupported("SignalTask"))
    }

    /// Runs a command in the environment of a task and returns its output.
    async fn exec_task(
        &self,
        _task_id: &str,
        _command: &[String],
        _timeout: Duration,
    ) -> Result<ExecOutput, Refusal> {
        Err(Refusal::unsupported("ExecTask"))
    }

    /// Runs a command in the environment of a task, with streamed input and output. The first request names the command.
    async fn exec_task_streaming(
        &self,
        _requests: Answers<ExecTaskStreamingRequest>,
    ) -> Result<Answers<ExecTaskStreamingResponse>, Refusal> {
        Err(Refusal::unsupported("ExecTaskStreaming"))
    }

    /// Creates the network of an allocation. Returns whether it was created by this call.
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

    /// Prepares for the end of the driver, but not of its tasks. Optional (D109).
    async fn shutdown(&self) -> Result<(), Refusal> {
        Err(Refusal::unsupported("Shutdown"))
    }
}

/// A boolean attribute of a fingerprint.
fn bool_attribute(value: bool) -> Attribute {
    Attribute { unit: String::new(), value: Some(Value::BoolVal(value)) }
}

/// Decodes a configuration that was encoded by a schema.
///
/// # Errors
/// [`RefusalKind::Invalid`](super::RefusalKind::Invalid) if it does not fit the type, with the field in question.
pub fn decode<T: DeserializeOwned>(msgpack: &[u8]) -> Result<T, Refusal> {
    rmp_serde::from_slice(msgpack)
        .map_err(|error| Refusal::invalid(format!("cannot read the configuration: {error}")))
}
