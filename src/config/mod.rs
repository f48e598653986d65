//! The configuration of `callboard run`: a TOML file, read and checked at once.
//!
//! ```text
//! text ── parse ──► table with places ── read ──► values ── check ──► Config
//!            │                             │                  │
//!            └─ syntax                     └─ types, keys     └─ names, paths, programs, doubles
//!                         every problem, each with its place ──► ConfigError
//! ```
//!
//! Nothing is started when there is a problem, and all problems are told together, each as `file:line:column`. Paths are
//! absolute, so that a host does the same wherever it is started from.
//!
//! `docs/command-line.md` describes every key.

mod allocation;
mod driver;
mod host;
mod logs;
mod places;
mod resources;
mod task;
mod task_config;

mod config_places;
mod problem;
mod program;
mod read;
pub(crate) mod suggest;
mod table;
mod words;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::vocabulary::{
    AllocationId, Backoff, DriverName, PluginName, RestartBudget, Role, SocketPath,
};

pub use config_places::ConfigPlaces;
pub use host::HostConfig;
pub use logs::TaskLogs;
pub use problem::{ConfigError, Place, Problem};
pub use task_config::{TaskConfig, TaskResources, TaskRestart};

/// Longest name of an allocation or a task in a configuration, in bytes: the name of its log file has to fit into one path
/// component.
pub const NAME_BYTES_MAX: usize = 200;

/// How many allocations a configuration may hold.
pub const ALLOCATIONS_MAX: usize = 10_000;

/// How many drivers a configuration may hold.
pub const DRIVERS_MAX: usize = 1_000;

/// How many tasks a configuration may hold.
pub const TASKS_MAX: usize = 10_000;

/// The plugins that this program is itself: `callboard plugin NAME`.
pub const INTERNAL_PLUGINS: &[&str] = &["exec"];

/// Largest configuration file, in bytes.
pub const CONFIG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a host program is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The directory that holds everything this host keeps. Key `data_dir`, required.
    pub data_dir: PathBuf,
    /// Where the admin socket is. Key `admin_socket`; without it the socket lies in the data directory.
    pub admin_socket: Option<SocketPath>,
    /// The directory for sockets whose path below the data directory would be too long (SEC-01). Key `runtime_dir`.
    pub runtime_dir: Option<PathBuf>,
    /// How tasks are restarted. Table `restart`.
    pub restart: RestartPolicy,
    /// Which plugins there may be.
    pub plugins: PluginPolicy,
    /// The allocations, in the order of the file. Tables `allocation`.
    pub allocations: Vec<AllocationConfig>,
    /// The task drivers, in the order of the file. Tables `driver`.
    pub drivers: Vec<DriverConfig>,
    /// The tasks, in the order of the file; each names one of the drivers. Tables `task`.
    pub tasks: Vec<TaskConfig>,
    /// What tasks are told of the host, and what of it they may use. Table `host`.
    pub host: HostConfig,
}

/// Where plugins come from, and which of them may be launched (SEC-05).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginPolicy {
    /// The directory that holds programs of plugins. Key `plugin_dir`.
    pub directory: Option<PathBuf>,
    /// If there is such a list, only these and those that a driver names are launched. Key `allow_plugins`.
    pub allow: Option<Vec<String>>,
    /// These are never launched, and ended if they run from an earlier time. Key `block_plugins`.
    pub block: Vec<String>,
}

/// How often and how soon a task that ended by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// At most so many restarts within a window; one more and the allocation has failed. Keys `attempts` and `window`.
    pub budget: RestartBudget,
    /// The pause before a restart, doubled with each failure in a row. Key `delay` gives the first pause.
    pub backoff: Backoff,
}

impl RestartPolicy {
    /// The pause does not grow beyond this.
    const PAUSE_LONGEST: Duration = Duration::from_secs(30);

    /// At most `attempts` restarts within `window`, the first one after `delay`.
    #[must_use]
    pub fn new(attempts: u32, window: Duration, delay: Duration) -> Self {
        Self {
            budget: RestartBudget { limit: attempts, window },
            backoff: Backoff {
                first: delay,
                longest: Self::PAUSE_LONGEST.max(delay),
                jitter_percent: 10,
                reset_after: Duration::from_secs(60),
            },
        }
    }
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self::new(5, Duration::from_secs(300), Duration::from_secs(1))
    }
}

/// One allocation: one run of a plugin's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationConfig {
    /// Its name, which is also the id of the allocation. Key `name`, required.
    pub name: AllocationId,
    /// The plugin that it serves. Key `plugin`, required.
    pub plugin: PluginName,
    /// Which halves of it. Key `type`, required: controller, node or monolith.
    pub role: Role,
    /// The program, found and executable. Key `command`, required: a text, or a list whose further entries are arguments.
    pub program: PathBuf,
    /// Its arguments; `${CSI_ENDPOINT}` in them is replaced at each start. Key `args`, after those of `command`.
    pub arguments: Vec<String>,
    /// What is added to its environment. Table `env`. A `CSI_ENDPOINT` in it wins over ours (SEC-04).
    pub environment: BTreeMap<String, String>,
    /// How long it may take from its start to its first ready answer. Key `health_timeout`, 30 s by default.
    pub health_timeout: Duration,
    /// Whether it starts with the host. Key `start`, true by default.
    pub start: bool,
    /// How long it may take to end after SIGTERM, before SIGKILL. Key `stop_grace`, 5 s by default.
    pub stop_grace: Duration,
}

/// What serves a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverProgram {
    /// A file in the plugin directory, by its name.
    Plugin(String),
    /// One of [`INTERNAL_PLUGINS`], by its name.
    Internal(String),
    /// A program, found and executable.
    Command(PathBuf),
}

/// One task driver.
#[derive(Clone, PartialEq)]
pub struct DriverConfig {
    /// Under which name tasks speak of it; its plugin says the same name of itself. Key `name`, required.
    pub name: DriverName,
    /// What serves it. Key `plugin`, its own name by default; or key `command`: a text, or a list whose further entries are
    /// arguments.
    pub program: DriverProgram,
    /// Its arguments. Key `args`, after those of `command`.
    pub arguments: Vec<String>,
    /// The digest that its program has to have (SEC-07). Key `sha256`.
    pub sha256: Option<[u8; 32]>,
    /// Its configuration, to be checked against its own schema when that is known. Table `config`; only a plugin of the plugin
    /// directory is asked for its schema, so no other may have one. It may hold secrets.
    pub config: toml::Table,
    /// Where its values stand.
    pub config_places: ConfigPlaces,
    /// What is added to its environment. Table `env`. Values may be secrets.
    pub environment: BTreeMap<String, String>,
    /// Whether its process outlives its host and is found again (PRC-04). Key `survives`, true by default.
    pub survives: bool,
    /// How long it may take to end when it is stopped (SHD-07). Key `stop_grace`, 5 s by default.
    pub stop_grace: Duration,
    /// How long it may take to say its handshake. Key `start_timeout`, 60 s by default.
    pub start_timeout: Duration,
}

impl fmt::Debug for DriverConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverConfig")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("survives", &self.survives)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`] when there is no such file, and [`ConfigError::Problems`] with everything that is wrong
    /// in it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        // A pipe or a device does not say how much is in it, so the reading itself is what has an end.
        let mut bytes = Vec::new();
        file.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > CONFIG_BYTES_MAX {
            return Err(ConfigError::TooLong { path: path.to_owned() });
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        Self::parse(path, &text)
    }

    /// Checks the text of a configuration; `path` is what its problems are said of.
    ///
    /// # Errors
    /// [`ConfigError::Problems`] with everything that is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        read::config(text)
            .map_err(|faults| ConfigError::Problems { path: path.to_owned(), problems: faults.placed(text) })
    }
}
