//! Builds a task's configuration.

use std::collections::BTreeMap;

use super::ResourceAsk;
use super::capabilities::{self, log_way};
use super::environment::{self, Sources};
use super::error::TaskConfigError;
use super::node::TaskNode;
use super::resources;
use crate::driver::client::TaskConfig;
use crate::driver::{DriverCapabilities, FsIsolation};

/// Fills in the missing fields of a task, and validates all of it (TH001 to TH003). Existing values are kept.
#[derive(Debug, Clone)]
pub struct TaskConfigBuilder<'n> {
    task: TaskConfig,
    node: &'n TaskNode,
    capabilities: &'n DriverCapabilities,
    ask: ResourceAsk,
    host_environment: BTreeMap<String, String>,
    meta: BTreeMap<String, String>,
    collects_output: bool,
}

impl<'n> TaskConfigBuilder<'n> {
    /// For a task, as filled in by the host so far, on this node, for a driver with these capabilities.
    #[must_use]
    pub fn new(task: TaskConfig, node: &'n TaskNode, capabilities: &'n DriverCapabilities) -> Self {
        Self {
            task,
            node,
            capabilities,
            ask: ResourceAsk::default(),
            host_environment: BTreeMap::new(),
            meta: BTreeMap::new(),
            collects_output: true,
        }
    }

    /// The resources that the task requests, for fields that the host has left empty. By default 100 MHz and 300 MiB.
    #[must_use]
    pub fn resources(mut self, ask: ResourceAsk) -> Self {
        self.ask = ask;
        self
    }

    /// Variables of the host with the lowest precedence in the task's environment, as [`inherited`](super::inherited)
    /// selects them; not in an image. None by default.
    #[must_use]
    pub fn host_environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.host_environment = variables;
        self
    }

    /// Metadata for the variables `NOMAD_META_` and a name (T081). None by default.
    #[must_use]
    pub fn meta(mut self, meta: BTreeMap<String, String>) -> Self {
        self.meta = meta;
        self
    }

    /// The task's output is not collected: without paths it goes to `/dev/null`, if its driver permits that (T061, T065).
    #[must_use]
    pub const fn without_output(mut self) -> Self {
        self.collects_output = false;
        self
    }

    /// The task for its driver.
    ///
    /// # Errors
    /// [`TaskConfigError`] names the contradiction or the missing resource, and the remedy. The driver was not called.
    pub fn build(self) -> Result<TaskConfig, TaskConfigError> {
        let Self { mut task, node, capabilities, ask, host_environment, meta, collects_output } = self;
        check_names(&task)?;
        if capabilities.fs_isolation == FsIsolation::Unveil && !node.mounts_root.is_absolute() {
            return Err(TaskConfigError::MountsRoot);
        }
        fill_origin(&mut task, node);
        capabilities::fill_output(&mut task, log_way(capabilities, collects_output))?;
        capabilities::check(&task, capabilities)?;
        let resources = resources::fill(&task, &ask, node)?;
        let isolation = capabilities.fs_isolation;
        let sources = Sources { node, isolation, host: &host_environment, meta: &meta };
        task.environment = environment::fill(&task, &resources, &sources);
        task.resources = Some(resources);
        Ok(task)
    }
}

/// Drivers split the id at its slashes, and take directory names as those of the allocation and the task (T043, T070, T109).
fn check_names(task: &TaskConfig) -> Result<(), TaskConfigError> {
    let (allocation, name) = (&task.allocation, &task.name);
    let own = task.id.as_str().strip_prefix(&format!("{allocation}/{name}/"));
    if own.is_none_or(|own| own.is_empty() || own.contains('/')) {
        return Err(TaskConfigError::TaskId {
            id: task.id.to_string(),
            allocation: allocation.clone(),
            task: name.clone(),
        });
    }
    let path = &task.allocation_dir;
    if path.is_absolute() && path.file_name().is_some_and(|last| last == allocation.as_str()) {
        return Ok(());
    }
    let (path, allocation) = (path.clone(), allocation.clone());
    Err(TaskConfigError::AllocationDirectory { path, allocation })
}

/// Its origin: defaults to itself.
fn fill_origin(task: &mut TaskConfig, node: &TaskNode) {
    let origin = &mut task.origin;
    let fill = |field: &mut String, value: &str| {
        if field.is_empty() {
            value.clone_into(field);
        }
    };
    fill(&mut origin.job_id, task.name.as_str());
    let job = origin.job_id.clone();
    fill(&mut origin.job_name, &job);
    fill(&mut origin.task_group_name, task.name.as_str());
    fill(&mut origin.namespace, "default");
    fill(&mut origin.node_name, &node.name);
    fill(&mut origin.node_id, &node.id);
}
