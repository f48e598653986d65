//! The driver: handles each call of a host.

use std::sync::Arc;
use std::time::Duration;

use callboard_proto::drivers::driver_capabilities::{FsIsolation, MountConfigs};
use callboard_proto::drivers::fingerprint_response::HealthState;
use callboard_proto::drivers::network_isolation_spec::NetworkIsolationMode;
use callboard_proto::drivers::{
    DriverCapabilities, DriverTaskEvent, ExecTaskStreamingRequest, ExecTaskStreamingResponse,
    FingerprintResponse, TaskConfig, TaskDriverStatus, TaskHandle, TaskStats,
};
use callboard_proto::hclspec::Spec;
use callboard_proto::structs::Attribute;
use callboard_proto::structs::attribute::Value;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use tokio::time::{sleep, timeout};

use super::arguments::ExecArgs;
use super::faults::{Faults, StreamEnd};
use super::place::Order;
use super::record::EndStatus;
use super::settings::Settings;
use super::state::{self, ExecState};
use super::surroundings::Surroundings;
use super::task::Task;
use super::usage::Usage;
use super::{beside, config, mounting, settings, speed, spoken, task};
use crate::plugin::{
    Answers, Driver, Events, EventsFrom, ExecOutput, InspectedTask, PluginConfig, PluginInfo, Refusal,
    RefusalKind, StartedTask, TaskExit,
};

/// The shortest interval between two usage reports, and the default.
const STATS_INTERVAL_MIN: Duration = Duration::from_millis(20);
const STATS_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest interval between two fingerprints.
const FINGERPRINT_PAUSE_MIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct ExecDriver(Arc<ExecState>, MountConfigs);

impl ExecDriver {
    pub(super) fn new(args: ExecArgs, faults: Faults) -> Self {
        let mounts = match mounting::permitted() {
            Ok(()) => MountConfigs::UnknownMounts,
            Err(error) => {
                tracing::info!(%error, "this driver offers no mounts for tasks: it lacks the permission to create mount namespaces");
                MountConfigs::NoMounts
            }
        };
        Self(Arc::new(ExecState::new(args, faults)), mounts)
    }
}

#[tonic::async_trait]
impl Driver for ExecDriver {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(&self.0.args.name, &self.0.args.plugin_version)
    }

    fn config_schema(&self) -> Spec {
        settings::schema()
    }

    async fn set_config(&self, config: PluginConfig) -> Result<(), Refusal> {
        self.0.faults.before("SetConfig").await?;
        let topology = config.host.as_ref().and_then(|host| host.driver.as_ref()?.topology.as_ref());
        let core_mhz = speed::of_a_core(topology);
        self.0.set(Settings { core_mhz, ..settings::read(&config.msgpack)? });
        Ok(())
    }

    async fn init(&self) -> Result<(), Refusal> {
        self.0.faults.before("Init").await?;
        if self.0.faults.has_init() { Ok(()) } else { Err(Refusal::unsupported("Init")) }
    }

    fn task_config_schema(&self) -> Spec {
        config::task_schema()
    }

    fn capabilities(&self) -> DriverCapabilities {
        DriverCapabilities {
            send_signals: true,
            exec: true,
            fs_isolation: FsIsolation::None.into(),
            // The driver enters the allocation's network; the host creates it.
            network_isolation_modes: [NetworkIsolationMode::Host, NetworkIsolationMode::Group]
                .map(Into::into)
                .to_vec(),
            // The first is that of any mounts.
            mount_configs: self.1.into(),
            ..Default::default()
        }
    }

    async fn fingerprint(&self) -> Result<Answers<FingerprintResponse>, Refusal> {
        self.0.faults.before("Fingerprint").await?;
        let mounts = self.1;
        let reports = unfold((self.0.clone(), false), move |(state, is_later)| async move {
            if is_later {
                let usual = state.args.fingerprint_interval;
                let change = state.faults.unhealthy_for().map_or(usual, |left| left.min(usual));
                sleep(change.max(FINGERPRINT_PAUSE_MIN)).await;
            }
            Some((Ok(report(&state, mounts)), (state, true)))
        });
        let Some((count, end)) = self.0.faults.fingerprints_end() else { return Ok(Box::pin(reports)) };
        let broken =
            (end == StreamEnd::Error).then(|| Err(Refusal::failed("the fingerprints end, as was demanded")));
        Ok(Box::pin(reports.take(count).chain(futures_util::stream::iter(broken))))
    }

    fn events(&self) -> Result<Events, Refusal> {
        self.0.events()
    }

    async fn task_events(&self, from: EventsFrom) -> Result<Answers<DriverTaskEvent>, Refusal> {
        self.0.faults.before("TaskEvents").await?;
        let events = self.0.faults.texts().events().chain(self.0.events()?.follow(&from)).map(Ok);
        let Some(count) = self.0.faults.events_break_after() else { return Ok(Box::pin(events)) };
        let broken = Err(Refusal::failed("the task events break off, as was demanded"));
        Ok(Box::pin(events.take(count).chain(futures_util::stream::iter([broken]))))
    }

    async fn start_task(&self, task: TaskConfig) -> Result<StartedTask, Refusal> {
        self.0.faults.before("StartTask").await?;
        let state = self.0.clone();
        // Spawned, so that a caller's timeout cannot leave a task without a record.
        let starting = tokio::spawn(async move {
            state.faults.before_start().await;
            state::start(&state, task).await
        });
        let started =
            starting.await.map_err(|error| Refusal::failed(format!("the start was interrupted: {error}")))?;
        self.0.faults.after_start()?;
        started
    }

    async fn recover_task(&self, handle: TaskHandle) -> Result<(), Refusal> {
        self.0.faults.before("RecoverTask").await?;
        let task_id = handle.config.as_ref().map_or_else(String::new, |config| config.id.clone());
        if self.0.find(&task_id).is_ok() {
            return Ok(());
        }
        let events = self.0.events()?;
        let task = Task::recover(handle)?;
        let message = format!("recovered, process {}", task.record.task.pid);
        self.0.take_in(&task, events, "recovered", message);
        Ok(())
    }

    async fn wait_task(&self, task_id: &str) -> Result<TaskExit, Refusal> {
        self.0.faults.before("WaitTask").await?;
        let task = self.0.find(task_id)?;
        let ended = task.ended().await;
        if self.0.faults.loses_exits() {
            let lost = EndStatus::Unknown("the process that waited for it is gone".to_owned());
            return Ok(task::exit(&lost, false));
        }
        Ok(task::exit(&ended.status, ended.oom_killed))
    }

    async fn stop_task(&self, task_id: &str, grace: Duration, signal: &str) -> Result<(), Refusal> {
        self.0.faults.before("StopTask").await?;
        let task = self.0.find(task_id)?;
        let usual = self.0.settings().stop_signal;
        let name = if signal.is_empty() { usual.as_str() } else { signal };
        let number = ExecState::signal_number(name)?;
        if ExecState::ask(&task, Order::SignalGroup(number))? {
            self.0.events()?.announce(task.event("stopping", format!("asked to end by {name}")));
        }
        match timeout(grace, task.ended()).await {
            Ok(_) => Ok(()),
            Err(_) => ExecState::kill(&task).await,
        }
    }

    async fn destroy_task(&self, task_id: &str, force: bool) -> Result<(), Refusal> {
        self.0.faults.before("DestroyTask").await?;
        let task = self.0.find(task_id).or_else(|_| self.0.recall(task_id))?;
        if task.end().is_none() {
            if !force {
                let told = format!("task {task_id:?} runs; stop it first, or destroy it by force");
                return Err(Refusal::new(RefusalKind::NotNow, told).recoverable(false));
            }
            ExecState::kill(&task).await?;
        }
        let end = task.ended().await;
        state::announce_end(&task, &self.0.events()?, &end.status);
        let failed = |error| Refusal::failed(format!("cannot remove the state of task {task_id:?}: {error}"));
        task.place().remove().map_err(failed)?;
        self.0.memory.forget(task_id).map_err(failed)?;
        self.0.tasks().known.remove(task_id);
        Ok(())
    }

    async fn inspect_task(&self, task_id: &str) -> Result<InspectedTask, Refusal> {
        self.0.faults.before("InspectTask").await?;
        let task = self.0.find(task_id).or_else(|_| self.0.recall(task_id))?;
        if task.record.ended.is_some() {
            task.ended().await;
        }
        let mut attributes = std::collections::HashMap::from([
            ("pid".to_owned(), task.record.task.pid.to_string()),
            ("supervisor_pid".to_owned(), task.record.supervisor.pid.to_string()),
        ]);
        if let Some(group) = task.record.groups.first() {
            attributes.insert("control_group".to_owned(), group.display().to_string());
        }
        if let Some(end) = task.end() {
            attributes.insert("end".to_owned(), end.status.told());
        }
        Ok(InspectedTask { status: task.status(), driver: TaskDriverStatus { attributes }, network: None })
    }

    async fn task_stats(&self, task_id: &str, interval: Duration) -> Result<Answers<TaskStats>, Refusal> {
        self.0.faults.before("TaskStats").await?;
        let task = self.0.find(task_id)?;
        let interval = if interval.is_zero() { STATS_INTERVAL } else { interval.max(STATS_INTERVAL_MIN) };
        let usage = Usage::begin(&task.record, self.0.settings().core_mhz);
        Ok(Box::pin(unfold((task, usage), move |(task, mut usage)| async move {
            timeout(interval, task.ended()).await.err()?;
            let stats = usage.look(&task.record, task.id());
            Some((Ok(stats), (task, usage)))
        })))
    }

    async fn signal_task(&self, task_id: &str, signal: &str) -> Result<(), Refusal> {
        self.0.faults.before("SignalTask").await?;
        let task = self.0.find(task_id)?;
        let number = ExecState::signal_number(signal)?;
        if !ExecState::ask(&task, Order::Signal(number))? {
            let told = format!("task {task_id:?} has ended and takes no signal");
            return Err(Refusal::new(RefusalKind::NotNow, told).recoverable(false));
        }
        self.0.events()?.announce(task.event("signalled", format!("signalled by {signal}")));
        Ok(())
    }

    async fn exec_task(
        &self,
        task_id: &str,
        command: &[String],
        limit: Duration,
    ) -> Result<ExecOutput, Refusal> {
        self.0.faults.before("ExecTask").await?;
        let task = self.running(task_id)?;
        beside::run(&Surroundings::of(&task.record, &task.config)?, command, limit).await
    }

    async fn exec_task_streaming(
        &self,
        mut requests: Answers<ExecTaskStreamingRequest>,
    ) -> Result<Answers<ExecTaskStreamingResponse>, Refusal> {
        self.0.faults.before("ExecTaskStreaming").await?;
        let setup = spoken::setup(&mut requests).await?;
        let task = self.running(&setup.task_id)?;
        spoken::stream(&Surroundings::of(&task.record, &task.config)?, &setup, requests)
    }

    async fn shutdown(&self) -> Result<(), Refusal> {
        self.0.faults.before("Shutdown").await
    }
}

impl ExecDriver {
    /// A task that still runs: commands cannot run beside an ended one.
    fn running(&self, task_id: &str) -> Result<Arc<Task>, Refusal> {
        let task = self.0.find(task_id)?;
        if task.end().is_none() {
            return Ok(task);
        }
        let told = format!("task {task_id:?} has ended, so nothing can run beside it");
        Err(Refusal::new(RefusalKind::NotNow, told).recoverable(false))
    }
}

/// The fingerprint: what the node offers through the driver, and its health.
fn report(state: &ExecState, mounts: MountConfigs) -> FingerprintResponse {
    if !state.settings().is_enabled {
        return FingerprintResponse {
            health: HealthState::Undetected.into(),
            health_description: "disabled by its configuration: enabled = false".to_owned(),
            ..Default::default()
        };
    }
    let attribute = |value| Attribute { unit: String::new(), value: Some(value) };
    let name = &state.args.name;
    let unhealthy = state.faults.unhealthy_for();
    let health = if unhealthy.is_some() { HealthState::Unhealthy } else { HealthState::Healthy };
    let description = if unhealthy.is_some() { "unhealthy, as --unhealthy-for demands" } else { "healthy" };
    let mut report = FingerprintResponse {
        attributes: [
            (format!("driver.{name}"), attribute(Value::BoolVal(true))),
            (
                format!("driver.{name}.version"),
                attribute(Value::StringVal(state.args.plugin_version.clone())),
            ),
            (
                format!("driver.{name}.mounts"),
                attribute(Value::BoolVal(mounts == MountConfigs::UnknownMounts)),
            ),
        ]
        .into(),
        health: health.into(),
        health_description: description.to_owned(),
        err: String::new(),
    };
    state.faults.texts().spoil(&mut report);
    report
}
