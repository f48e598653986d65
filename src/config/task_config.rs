//! One task of a configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use callboard_actors::driver::client::{DnsConfig, NetworkIsolation, TaskDevice, TaskMount};
use callboard_actors::task_config::{DEFAULT_CPU_MHZ, DEFAULT_MEMORY_MIB, MemoryMax};
use callboard_actors::vocabulary::{AllocationId, DriverName};

use super::{ConfigPlaces, Place, TaskLogs};

/// Whether a task that ended by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskRestart {
    /// Never.
    None,
    /// When it failed, or when nobody knows how it ended (EVT-05); as often as [`RestartPolicy`](super::RestartPolicy) allows.
    OnFailure,
}

impl TaskRestart {
    /// Both.
    pub const ALL: [Self; 2] = [Self::None, Self::OnFailure];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OnFailure => "on-failure",
        }
    }
}

/// What a task may use. Table `resources`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskResources {
    /// Its share of the processors, in MHz. Key `cpu`, 100 by default; of no account where it has cores of its own.
    pub cpu_mhz: u32,
    /// How many cores it has for itself. Key `cores`, none by default.
    pub cores: u32,
    /// The memory that it is promised, in MiB. Key `memory`, 300 MiB by default.
    pub memory_mib: u64,
    /// The memory that it may use while there is enough. Key `memory_max`, no more than promised by default.
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

/// One task: something that a driver runs.
#[derive(Clone, PartialEq)]
pub struct TaskConfig {
    /// Its name, unique among tasks and allocations. Key `name`, required.
    pub name: AllocationId,
    /// The driver that runs it. Key `driver`, required.
    pub driver: DriverName,
    /// What the driver is to run, to be checked against its schema when that is known. Table `config`. It may hold secrets.
    pub config: toml::Table,
    /// Where that stands.
    pub config_places: ConfigPlaces,
    /// Its environment. Table `env`. Values may be secrets.
    pub environment: BTreeMap<String, String>,
    /// As which user it runs; empty leaves it to the driver. Key `user`.
    pub user: String,
    /// Whether it is started again. Key `restart`, `on-failure` by default.
    pub restart: TaskRestart,
    /// Whether it starts with the host. Key `start`, true by default.
    pub start: bool,
    /// How long it may take to end when it is stopped, before it is killed (T144). Key `stop_grace`, 5 s by default.
    pub stop_grace: Duration,
    /// The signal by which it is asked to end, as `SIGINT`; empty leaves it to the driver (T145). Key `kill_signal`.
    pub kill_signal: String,
    /// How long a stop waits before the task is asked to end (T144). Key `shutdown_delay`, none by default.
    pub shutdown_delay: Duration,
    /// What it may use. Table `resources`.
    pub resources: TaskResources,
    /// What is kept of its output. Table `logs`.
    pub logs: TaskLogs,
    /// What is mounted into it. Tables `mounts`.
    pub mounts: Vec<TaskMount>,
    /// The devices that it may use. Tables `devices`.
    pub devices: Vec<TaskDevice>,
    /// How its network is kept apart; `None` for the host's. Table `network`.
    pub network: Option<NetworkIsolation>,
    /// How it finds names; `None` leaves that to the driver. Table `dns`.
    pub dns: Option<DnsConfig>,
    /// The id and name of its job; empty for its own name. Key `job`.
    pub job: String,
    /// Its group within the job; empty for its own name. Key `group`.
    pub group: String,
    /// The namespace of its job; empty for `default`. Key `namespace`.
    pub namespace: String,
    /// What it is told as variables `NOMAD_META_`. Table `meta`.
    pub meta: BTreeMap<String, String>,
}

impl TaskConfig {
    /// How long it may take to end when it is stopped, unless it says otherwise.
    pub const STOP_GRACE: Duration = Duration::from_secs(5);

    /// A task that says nothing but its name and its driver.
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
            resources: TaskResources::default(),
            logs: TaskLogs::default(),
            mounts: Vec::new(),
            devices: Vec::new(),
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
