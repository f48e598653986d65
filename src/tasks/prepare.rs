//! Prepares a task before its driver starts it.

use std::collections::BTreeMap;

use callboard_actors::allocdir::TaskNames;
use callboard_actors::cgroups::Cores;
use callboard_actors::driver::DriverCapabilities;
use callboard_actors::driver::client::{DriverClient, TaskConfig as DriverTask, TaskMount, TaskOrigin};
use callboard_actors::hclspec::{Config as PluginConfig, schema_from_wire};
use callboard_actors::logmon::{LogPaths, Logs};
use callboard_actors::task_config::{CpuAsk, ResourceAsk, TaskConfigBuilder, TaskNode, inherited};

use super::claims::TaskClaims;
use super::environment::TaskEnvironment;
use super::host::QUICK;
use super::{CoreLedger, RunKey, TaskIdentities, Trouble, logs};
use crate::config::{Config, TaskConfig};
use crate::volumes::Claimer;

/// Prepares the tasks of one host.
#[derive(Debug)]
pub struct Preparer {
    identities: TaskIdentities,
    node: TaskNode,
    cores: CoreLedger,
    environment: TaskEnvironment,
    logs: Logs,
    claims: TaskClaims,
    /// The environment variables that tasks inherit from the host.
    host_environment: BTreeMap<String, String>,
}

impl Preparer {
    /// Prepares the tasks of this configuration, on this node. `cores` records exclusive cores, `environment` makes the tasks'
    /// environments, `logs` collects their output, and `claimer` claims their volumes.
    #[must_use]
    pub fn new(
        config: &Config,
        identities: TaskIdentities,
        node: TaskNode,
        (cores, environment, logs): (CoreLedger, TaskEnvironment, Logs),
        claimer: Claimer,
    ) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(text);
        Self {
            identities,
            node,
            cores,
            environment,
            logs,
            claims: TaskClaims(claimer),
            host_environment: inherited(&config.host.task_env_inherit, variables),
        }
    }

    /// Claims the volumes of a task. It may take long, and the future may be dropped; what it has claimed is released later.
    ///
    /// # Errors
    /// Why a volume cannot be used. The driver has not received the run.
    pub async fn claim(
        &self,
        capabilities: &DriverCapabilities,
        run: &RunKey,
        config: &TaskConfig,
    ) -> Result<Vec<TaskMount>, Trouble> {
        self.claims.claim(run, config, capabilities).await
    }

    /// Makes a task's directories, checks its configuration against the driver's schema, and fills in all other fields
    /// (TH001). `volumes` are mounted into it.
    ///
    /// # Errors
    /// What cannot be made, does not fit, or is in short supply. The driver has not received the run.
    pub async fn prepare(
        &self,
        client: &DriverClient,
        capabilities: &DriverCapabilities,
        run: &RunKey,
        (config, volumes): (&TaskConfig, Vec<TaskMount>),
    ) -> Result<DriverTask, Trouble> {
        let schema =
            client.task_config_schema(QUICK).await.map_err(|error| Trouble::passing(error.to_string()))?;
        let driver_config = encode(&schema, config).map_err(Trouble::lasting)?;
        let ask = self.ask(config)?;
        let cores = if config.resources.cores == 0 { Cores::Shared } else { Cores::Reserved };
        let prepared = self.environment.prepare(&run.name, &config.user, cores, Some(capabilities)).await?;
        let layout = prepared.dirs.layout;
        let LogPaths { stdout, stderr } =
            logs::open(&self.logs, &run.name, &layout, config.logs, capabilities).await?;
        let task = self.task(run, config, driver_config);
        let task = DriverTask {
            user: prepared.user,
            allocation_dir: layout.allocation_dir,
            stdout_path: stdout,
            stderr_path: stderr,
            mounts: outer_first(task.mounts.into_iter().chain(volumes)),
            ..task
        };
        TaskConfigBuilder::new(task, &self.node, capabilities)
            .resources(ask)
            .host_environment(self.host_environment.clone())
            .meta(config.meta.clone())
            .build()
            .map_err(|error| Trouble::lasting(error.to_string()))
    }

    /// Releases the resources of a task that no longer runs, after draining its pipes. The result is why its volumes are not released yet;
    /// their release continues without a retry.
    ///
    /// # Errors
    /// If the release of its volumes is not recorded.
    pub async fn release(&self, run: &RunKey) -> Result<Option<String>, Trouble> {
        self.release_environment(run).await;
        self.claims.ended(&run.name).await
    }

    /// Releases the resources of a task whose driver did not receive its start.
    ///
    /// # Errors
    /// If the release of its volumes is not recorded.
    pub async fn give_up(&self, run: &RunKey) -> Result<(), Trouble> {
        self.release_environment(run).await;
        self.claims.not_started(&run.name).await.map(|_| ())
    }

    async fn release_environment(&self, run: &RunKey) {
        logs::close(&self.logs, &run.name).await;
        self.environment.release(&run.name).await;
        self.cores.release(&run.name);
    }

    /// Removes the resources of a forgotten task.
    pub async fn remove(&self, names: TaskNames) {
        logs::forget(&self.logs, &names.task).await;
        self.environment.remove(names).await;
    }

    /// The task without its resources.
    fn task(&self, run: &RunKey, config: &TaskConfig, driver_config: Vec<u8>) -> DriverTask {
        let identity = self.identities.of(&run.name);
        let origin = TaskOrigin {
            job_id: config.job.clone(),
            task_group_name: config.group.clone(),
            namespace: config.namespace.clone(),
            ..TaskOrigin::default()
        };
        DriverTask {
            environment: config.environment.clone(),
            mounts: config.mounts.clone(),
            devices: config.devices.clone(),
            network: config.network.clone(),
            dns: config.dns.clone(),
            origin,
            ..DriverTask::new(run.id.clone(), identity.allocation, identity.task, driver_config)
        }
    }

    /// The requested resources; exclusive cores are chosen now.
    fn ask(&self, config: &TaskConfig) -> Result<ResourceAsk, Trouble> {
        let asked = &config.resources;
        let cpu = match usize::try_from(asked.cores).unwrap_or(usize::MAX) {
            0 => CpuAsk::Mhz(asked.cpu_mhz.into()),
            count => {
                CpuAsk::Cores(self.cores.take(&config.name, count, &self.node.topology).map_err(|error| {
                    let is_transient = error.is_transient();
                    Trouble { is_transient, ..Trouble::passing(error.to_string()) }
                })?)
            }
        };
        Ok(ResourceAsk { cpu, memory_mib: asked.memory_mib, memory_max: asked.memory_max })
    }
}

/// A task's `config` encoded for the driver, or its errors with their lines.
fn encode(schema: &callboard_proto::hclspec::Spec, config: &TaskConfig) -> Result<Vec<u8>, String> {
    let schema = schema_from_wire(schema).map_err(|error| error.to_string())?;
    let value = PluginConfig::from_toml(&config.config).and_then(|written| schema.decode(&written));
    let value = value
        .map_err(|errors| format!("its `config` does not fit: {}", config.config_places.told(&errors)))?;
    Ok(value.to_msgpack())
}

/// Mounts in the order in which a driver makes them: a mount at `/v` precedes a mount at `/v/w`, which it would otherwise cover.
fn outer_first(mounts: impl Iterator<Item = TaskMount>) -> Vec<TaskMount> {
    let mut mounts: Vec<_> = mounts.collect();
    mounts.sort_by_key(|mount| mount.task_path.components().count());
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_within_another_mount_comes_after_it() {
        let mount = |path: &str| TaskMount {
            task_path: path.into(),
            host_path: "/h".into(),
            read_only: false,
            propagation_mode: String::new(),
            selinux_label: String::new(),
        };
        let sorted = outer_first(["/v/w/x", "/v/w", "/srv", "/v"].map(mount).into_iter());
        let paths: Vec<_> = sorted.iter().map(|mount| mount.task_path.display().to_string()).collect();
        assert_eq!(paths, ["/srv", "/v", "/v/w", "/v/w/x"]);
    }
}
