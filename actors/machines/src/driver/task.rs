//! Tasks in calls from a host to a driver. These are not wire types: every value is well formed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::NetworkMode;
use crate::process::ProcessTag;
use crate::vocabulary::text::is_harmless;
use crate::vocabulary::{AllocationId, TaskName, Timestamp};

/// The length limit of a task id, in bytes.
pub const TASK_ID_BYTES_MAX: usize = 1_024;

/// The id of a task with its driver, chosen by the host; unique among all tasks of a driver, ever.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Arc<str>);

/// A text that is not an id of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the task id {start:?} has {bytes} bytes; give it 1 to {TASK_ID_BYTES_MAX} without control characters"
)]
pub struct MalformedTaskId {
    /// Its first characters.
    pub start: String,
    /// Its length in bytes.
    pub bytes: usize,
}

impl TaskId {
    /// The task id with this text.
    ///
    /// # Errors
    /// When it is empty, too long, or contains control characters.
    pub fn new(id: impl AsRef<str>) -> Result<Self, MalformedTaskId> {
        let id = id.as_ref();
        if (1..=TASK_ID_BYTES_MAX).contains(&id.len()) && id.chars().all(is_harmless) {
            return Ok(Self(Arc::from(id)));
        }
        Err(MalformedTaskId { start: id.chars().take(32).collect(), bytes: id.len() })
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Everything that a driver needs to start a task.
#[derive(Clone, PartialEq)]
pub struct TaskConfig {
    /// The id of the task in all calls to the driver.
    pub id: TaskId,
    /// Its name within its allocation.
    pub name: TaskName,
    /// The allocation that it belongs to.
    pub allocation: AllocationId,
    /// The configuration for this driver, encoded as msgpack by its schema (D113).
    pub driver_config: Vec<u8>,
    /// Its environment. Not shown in debug output: it may hold secrets.
    pub environment: BTreeMap<String, String>,
    /// The environment that devices add.
    pub device_environment: BTreeMap<String, String>,
    /// Its resources; `None` leaves them to the driver.
    pub resources: Option<Resources>,
    /// Its mounts.
    pub mounts: Vec<TaskMount>,
    /// The devices that it may use.
    pub devices: Vec<TaskDevice>,
    /// The user that it runs as; empty leaves it to the driver.
    pub user: String,
    /// The directory of its allocation on the host.
    pub allocation_dir: PathBuf,
    /// The target of its standard output: a file or a pipe of the host.
    pub stdout_path: PathBuf,
    /// The target of its standard error.
    pub stderr_path: PathBuf,
    /// How its network is isolated; `None` for the host's network.
    pub network: Option<NetworkIsolation>,
    /// How it resolves names; `None` leaves it to the driver.
    pub dns: Option<DnsConfig>,
    /// Its origin, for drivers that use it in names.
    pub origin: TaskOrigin,
}

impl TaskConfig {
    /// A task with only what every task needs.
    #[must_use]
    pub fn new(id: TaskId, allocation: AllocationId, name: TaskName, driver_config: Vec<u8>) -> Self {
        Self {
            id,
            name,
            allocation,
            driver_config,
            environment: BTreeMap::new(),
            device_environment: BTreeMap::new(),
            resources: None,
            mounts: Vec::new(),
            devices: Vec::new(),
            user: String::new(),
            allocation_dir: PathBuf::new(),
            stdout_path: PathBuf::new(),
            stderr_path: PathBuf::new(),
            network: None,
            dns: None,
            origin: TaskOrigin::default(),
        }
    }
}

impl fmt::Debug for TaskConfig {
    /// Shows neither values of the environment nor the driver's configuration, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskConfig")
            .field("id", &self.id)
            .field("allocation", &self.allocation)
            .field("name", &self.name)
            .field("driver_config_bytes", &self.driver_config.len())
            .field("environment_names", &self.environment.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The job, group and node of a task, as the host defines them. Each field may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskOrigin {
    /// The id of its job.
    pub job_id: String,
    /// The name of its job.
    pub job_name: String,
    /// The id of that job's parent.
    pub parent_job_id: String,
    /// The group of tasks within the job.
    pub task_group_name: String,
    /// The namespace of the job.
    pub namespace: String,
    /// The name of this node.
    pub node_name: String,
    /// The id of this node.
    pub node_id: String,
}

/// The resources of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resources {
    /// Its share of the processors, in the host's units.
    pub cpu_shares: i64,
    /// The guaranteed memory, in MiB.
    pub memory_mib: i64,
    /// The memory that it may use while enough is free, in MiB; 0 for not more than guaranteed.
    pub memory_max_mib: i64,
    /// The same in the terms of Linux; `None` leaves it to the driver.
    pub linux: Option<LinuxResources>,
    /// The ports assigned to it.
    pub ports: Vec<PortMapping>,
}

/// The resources of a task, in the terms of Linux.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinuxResources {
    /// The period of the CPU quota, in microseconds.
    pub cpu_period_us: i64,
    /// The quota within each period, in microseconds.
    pub cpu_quota_us: i64,
    /// The relative CPU weight.
    pub cpu_shares: i64,
    /// The memory limit, in bytes.
    pub memory_limit_bytes: i64,
    /// The adjustment of the kernel's score for killing it when memory runs out.
    pub oom_score_adj: i64,
    /// The processors that it may run on, in the kernel's list format.
    pub cpuset_cpus: String,
    /// The control group that limits it to these processors.
    pub cpuset_cgroup: String,
    /// Its share as a part of all processors.
    pub percent_ticks: f64,
}

/// A port of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortMapping {
    /// The name of the port.
    pub label: String,
    /// The port of the host.
    pub host_port: u16,
    /// The port inside the task; 0 for the same.
    pub to: u16,
    /// The address of the host.
    pub host_ip: String,
}

/// A mount of a host path into a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMount {
    /// The path in the task.
    pub task_path: PathBuf,
    /// The path on the host.
    pub host_path: PathBuf,
    /// Whether it is read-only for the task.
    pub read_only: bool,
    /// The mount propagation, in the words of the driver; empty leaves it to the driver.
    pub propagation_mode: String,
    /// The label for SELinux; empty for none.
    pub selinux_label: String,
}

/// A device of the host that a task may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskDevice {
    /// The path in the task.
    pub task_path: PathBuf,
    /// The path on the host.
    pub host_path: PathBuf,
    /// The access of the task: letters of the kernel's control groups.
    pub cgroup_permissions: String,
}

/// An isolated network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkIsolation {
    /// The kind of isolation.
    pub mode: NetworkMode,
    /// Its identity: the path of a network namespace.
    pub path: String,
    /// Labels that the driver keeps with it.
    pub labels: BTreeMap<String, String>,
    /// The entry for the hosts file of its tasks: a name and an address.
    pub hosts_entry: Option<(String, String)>,
}

/// How a task resolves names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DnsConfig {
    /// Servers to ask.
    pub servers: Vec<String>,
    /// Domains to search.
    pub searches: Vec<String>,
    /// Options of the resolver.
    pub options: Vec<String>,
}

/// The state of a task, as its driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// The driver does not know it.
    Unknown,
    /// It runs.
    Running,
    /// It has ended.
    Exited,
}

/// How a task ended. An unknown end is a value of its own and never success (EVT-05).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// It ended by itself with this code; only 0 is success.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It ended, for an unknown reason.
    Unknown(String),
}

/// The exit of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskExit {
    /// How it ended.
    pub end: TaskEnd,
    /// Whether the kernel killed a process of it because memory ran out.
    pub oom_killed: bool,
}

impl TaskExit {
    /// Whether it certainly ended by itself with code 0 (EVT-05).
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self.end, TaskEnd::Exited(0))
    }

    /// Whether it proves that its run is over. An unknown exit does not (EVT-05).
    #[must_use]
    pub const fn is_certain(&self) -> bool {
        !matches!(self.end, TaskEnd::Unknown(_))
    }
}

impl fmt::Display for TaskExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            TaskEnd::Exited(code) => write!(f, "exited with code {code}")?,
            TaskEnd::Signalled(signal) => write!(f, "ended by signal {signal}")?,
            TaskEnd::Unknown(reason) => write!(f, "ended, it is unknown how: {reason}")?,
        }
        f.write_str(if self.oom_killed { ", out of memory" } else { "" })
    }
}

/// The address and ports of a task, if the driver has set up its network differently from the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkOverride {
    /// Ports by their label.
    pub ports: BTreeMap<String, u16>,
    /// The address.
    pub address: String,
    /// Whether to advertise this address rather than the host's.
    pub auto_advertise: bool,
}

/// The full status of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStatus {
    /// The task.
    pub id: TaskId,
    /// Its name, as the driver reports it.
    pub name: String,
    /// Its state.
    pub state: TaskState,
    /// When it began, by the driver's clock.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Its exit, if it has ended.
    pub exit: Option<TaskExit>,
    /// More attributes from the driver.
    pub attributes: BTreeMap<String, String>,
    /// Its address and ports, if they differ from the host's.
    pub network: Option<NetworkOverride>,
}

/// The result of a command inside a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutcome {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub exit: TaskExit,
}

/// A network that a driver made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedNetwork {
    /// The network; `None` if the driver needs none.
    pub network: Option<NetworkIsolation>,
    /// Whether it was created by this call.
    pub is_new: bool,
}

/// The process that a client talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServingProcess {
    /// The tag of its launch; unique.
    pub tag: ProcessTag,
    /// Whether an earlier run of the host launched it.
    pub is_adopted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_shown_without_what_may_be_secret_sec_06() {
        let id = TaskId::new("a1/web").unwrap();
        assert_eq!((id.as_str(), format!("{id} {id:?}").as_str()), ("a1/web", "a1/web \"a1/web\""));
        let (allocation, name) = (AllocationId::new("a1").unwrap(), TaskName::new("web").unwrap());
        let mut config = TaskConfig::new(id, allocation, name, vec![199; 7]);
        config.environment.insert("TOKEN".to_owned(), "canary-9".to_owned());
        let shown = format!("{config:?}");
        assert!(shown.contains("\"a1/web\"") && shown.contains("TOKEN"), "{shown}");
        assert!(!shown.contains("199") && !shown.contains("canary"), "{shown}");
    }
}
