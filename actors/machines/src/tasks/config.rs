//! The configuration of a task and of its driver.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::driver::{DnsConfig, NetworkIsolation, TaskDevice, TaskMount};
use crate::hclspec::{ConfigPlaces, Place};
use crate::logmon::Retention;
use crate::task_config::{DEFAULT_CPU_MHZ, DEFAULT_MEMORY_MIB, MemoryMax};
use crate::vocabulary::{AllocationId, DriverName};
use crate::volume::VolumeKey;

/// The length limit of the name of an allocation or a task, in bytes: the name of its log file has to fit into one path component.
pub const NAME_BYTES_MAX: usize = 200;

/// Whether a task that ended by itself is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskRestart {
    /// Never.
    None,
    /// If it failed, or its exit is unknown (EVT-05); as often as [`RestartPolicy`](crate::agent::RestartPolicy) allows.
    OnFailure,
}

impl TaskRestart {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::None, Self::OnFailure];

    /// Its name in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OnFailure => "on-failure",
        }
    }
}

/// How much of a task's output is kept. Table `logs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskLogs {
    /// The number and the size of its files. Keys `max_files` and `max_file_size`.
    pub retention: Retention,
    /// Whether no output is kept. Key `disabled`, false by default.
    pub is_disabled: bool,
}

/// A volume that a task uses. An entry of `task.volumes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskVolume {
    /// The volume. Key `name`, required: its name, or its namespace, a slash and its name.
    pub volume: VolumeKey,
    /// The path in the task, absolute. Key `destination`, required.
    pub destination: PathBuf,
    /// Whether the task only reads. Key `read_only`, false by default.
    pub read_only: bool,
}

/// The program of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverProgram {
    /// A file name in the plugin directory.
    Plugin(String),
    /// The name of a plugin that is built into the program.
    Internal(String),
    /// A program, an existing executable file.
    Command(PathBuf),
}

/// The resources of a task. Table `resources`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskResources {
    /// Its share of the CPU, in MHz. Key `cpu`, 100 by default; ignored if it has exclusive cores.
    pub cpu_mhz: u32,
    /// The number of its exclusive cores. Key `cores`, none by default.
    pub cores: u32,
    /// Its reserved memory, in MiB. Key `memory`, 300 MiB by default.
    pub memory_mib: u64,
    /// Its memory limit while there is free memory. Key `memory_max`, the reserved memory by default.
    pub memory_max: MemoryMax,
}

impl Default for TaskResources {
    fn default() -> Self {
        Self {
            cpu_mhz: u32::try_from(DEFAULT_CPU_MHZ).unwrap_or(u32::MAX),
            cores: 0,
            memory_mib: DEFAULT_MEMORY_MIB,
            memory_max: MemoryMax::Promised,
        }
    }
}

/// One task, which a driver runs.
#[derive(Clone, PartialEq)]
pub struct TaskConfig {
    /// Its name, unique among tasks and allocations. Key `name`, required.
    pub name: AllocationId,
    /// The driver that runs it. Key `driver`, required.
    pub driver: DriverName,
    /// Its driver configuration, checked later against the driver's schema. Table `config`. It may hold secrets.
    pub config: toml::Table,
    /// The positions of its values.
    pub config_places: ConfigPlaces,
    /// Its environment. Table `env`. Values may be secrets.
    pub environment: BTreeMap<String, String>,
    /// Its user; empty leaves it to the driver. Key `user`.
    pub user: String,
    /// Whether it is restarted. Key `restart`, `on-failure` by default.
    pub restart: TaskRestart,
    /// Whether it starts with the host. Key `start`, true by default.
    pub start: bool,
    /// The grace period of a stop, before it is killed (T144). Key `stop_grace`, 5 s by default.
    pub stop_grace: Duration,
    /// Its stop signal, such as `SIGINT`; empty leaves it to the driver (T145). Key `kill_signal`.
    pub kill_signal: String,
    /// The delay between a stop and its signal (T144). Key `shutdown_delay`, none by default.
    pub shutdown_delay: Duration,
    /// The pause before it is checked again when it is out of reach; doubled after each further check, up to 10 min. Key `look_again`,
    /// 30 s by default.
    pub look_again: Duration,
    /// Its resources. Table `resources`.
    pub resources: TaskResources,
    /// The retention of its output. Table `logs`.
    pub logs: TaskLogs,
    /// Its mounts. Tables `mounts`.
    pub mounts: Vec<TaskMount>,
    /// Its devices. Tables `devices`.
    pub devices: Vec<TaskDevice>,
    /// Its volumes. A list `volumes`.
    pub volumes: Vec<TaskVolume>,
    /// Its network isolation; `None` for the host's network. Table `network`.
    pub network: Option<NetworkIsolation>,
    /// Its DNS settings; `None` leaves them to the driver. Table `dns`.
    pub dns: Option<DnsConfig>,
    /// The id and name of its job; by default its own name. Key `job`.
    pub job: String,
    /// Its group within the job; by default its own name. Key `group`.
    pub group: String,
    /// The namespace of its job; empty for `default`. Key `namespace`.
    pub namespace: String,
    /// Its metadata, passed as variables `NOMAD_META_`. Table `meta`.
    pub meta: BTreeMap<String, String>,
}

impl TaskConfig {
    /// The default of `stop_grace`.
    pub const STOP_GRACE: Duration = Duration::from_secs(5);
    /// The default of `look_again`.
    pub const LOOK_AGAIN: Duration = Duration::from_secs(30);

    /// A task with only a name and a driver.
    #[must_use]
    pub fn new(name: AllocationId, driver: DriverName) -> Self {
        Self {
            name,
            driver,
            config: toml::Table::new(),
            config_places: ConfigPlaces::at(Place { line: 1, column: 1 }),
            environment: BTreeMap::new(),
            user: String::new(),
            restart: TaskRestart::OnFailure,
            start: true,
            stop_grace: Self::STOP_GRACE,
            kill_signal: String::new(),
            shutdown_delay: Duration::ZERO,
            look_again: Self::LOOK_AGAIN,
            resources: TaskResources::default(),
            logs: TaskLogs::default(),
            mounts: Vec::new(),
            devices: Vec::new(),
            volumes: Vec::new(),
            network: None,
            dns: None,
            job: String::new(),
            group: String::new(),
            namespace: String::new(),
            meta: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for TaskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskConfig")
            .field("name", &self.name)
            .field("driver", &self.driver)
            .field("restart", &self.restart)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
