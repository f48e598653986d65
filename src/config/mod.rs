//! The configuration of `callboard run`: a TOML file, parsed and checked before anything starts.
//!
//! ```text
//! text ── parse ──► table with positions ── read ──► values ── check ──► Config
//!            │                                │                  │
//!            └─ syntax                        └─ types, keys     └─ names, paths, programs, duplicates
//!                         every problem, each with its position ──► ConfigError
//! ```
//!
//! If there is a problem, nothing is started, and all problems are reported together, each as `file:line:column`. Paths are
//! absolute, so the working directory has no influence.
//!
//! `docs/command-line.md` describes every key.

mod allocation;
mod driver;
mod failover;
mod host;
mod logs;
mod places;
mod resources;
mod secrets;
mod task;
mod volume;
mod volume_config;
mod volume_origin;
mod volume_sharing;
mod volume_use;
pub(crate) mod volume_words;

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

use callboard_actors::vocabulary::{DriverName, SocketPath};

pub use callboard_actors::agent::{AllocationConfig, AllocationVolume, RestartPolicy};
pub use callboard_actors::hclspec::{ConfigPlaces, Place};
pub use callboard_actors::tasks::{
    DriverProgram, NAME_BYTES_MAX, TaskConfig, TaskLogs, TaskResources, TaskRestart, TaskVolume,
};

use self::read::Purpose;
pub(crate) use allocation::PROCESS_PREFIX;

pub use allocation::process_name;
pub use failover::FailoverConfig;
pub use host::HostConfig;
pub use problem::{ConfigError, Problem};
pub use volume_config::{SecretOrigin, VolumeConfig, VolumeOrigin};

/// The most allocations in a configuration.
pub const ALLOCATIONS_MAX: usize = 10_000;

/// The most drivers in a configuration.
pub const DRIVERS_MAX: usize = 1_000;

/// The most tasks in a configuration.
pub const TASKS_MAX: usize = 10_000;

/// The most volumes in a configuration.
pub const VOLUMES_MAX: usize = 10_000;

/// The plugins built into this program: `callboard plugin NAME`.
pub const INTERNAL_PLUGINS: &[&str] = &["exec"];

/// The largest configuration file, in bytes.
pub const CONFIG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The configuration of a host program.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The directory for all files of this host. Key `data_dir`, required.
    pub data_dir: PathBuf,
    /// The path of the admin socket. Key `admin_socket`; in the data directory by default.
    pub admin_socket: Option<SocketPath>,
    /// The directory for sockets whose path below the data directory would be too long (SEC-01). Key `runtime_dir`.
    pub runtime_dir: Option<PathBuf>,
    /// The restart policy of tasks. Table `restart`.
    pub restart: RestartPolicy,
    /// Which allocation of a plugin is active, and when a standby takes over. Table `failover`.
    pub failover: FailoverConfig,
    /// The policy for plugins.
    pub plugins: PluginPolicy,
    /// The allocations, in the order of the file. Tables `allocation`.
    pub allocations: Vec<AllocationConfig>,
    /// The task drivers, in the order of the file. Tables `driver`.
    pub drivers: Vec<DriverConfig>,
    /// The tasks, in the order of the file; each names one of the drivers. Tables `task`.
    pub tasks: Vec<TaskConfig>,
    /// The volumes, in the order of the file; each names the plugin of an allocation. Tables `volume`.
    pub volumes: Vec<VolumeConfig>,
    /// The data about the host that tasks get, and their limits on it. Table `host`.
    pub host: HostConfig,
    /// Probable mistakes, with their positions.
    pub warnings: Vec<Problem>,
}

/// The origin of plugins, and which of them may be launched (SEC-05).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PluginPolicy {
    /// The directory with the programs of plugins. Key `plugin_dir`.
    pub directory: Option<PathBuf>,
    /// If there is such a list, only these and those named by a driver are launched. Key `allow_plugins`.
    pub allow: Option<Vec<String>>,
    /// These are never launched, and ended if an earlier run has left them. Key `block_plugins`.
    pub block: Vec<String>,
}

/// One task driver.
#[derive(Clone, PartialEq)]
pub struct DriverConfig {
    /// The name that tasks refer to; its plugin reports the same name. Key `name`, required.
    pub name: DriverName,
    /// Its program. Key `plugin`, by default its name; or key `command`: a text, or a list that continues with arguments.
    pub program: DriverProgram,
    /// Its arguments. Key `args`, after those of `command`.
    pub arguments: Vec<String>,
    /// The required digest of its program (SEC-07). Key `sha256`.
    pub sha256: Option<[u8; 32]>,
    /// Its configuration, checked later against its own schema. Table `config`; allowed only for a plugin in the plugin directory, since no
    /// other plugin is asked for its schema. It may hold secrets.
    pub config: toml::Table,
    /// The positions of its values.
    pub config_places: ConfigPlaces,
    /// Additions to its environment. Table `env`. Values may be secrets.
    pub environment: BTreeMap<String, String>,
    /// Whether its process outlives its host and is reattached (PRC-04). Key `survives`, true by default.
    pub survives: bool,
    /// The grace period of its stop (SHD-07). Key `stop_grace`, 5 s by default.
    pub stop_grace: Duration,
    /// The timeout of its handshake. Key `start_timeout`, 60 s by default.
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
    /// [`ConfigError::Unreadable`] if there is no such file, and [`ConfigError::Problems`] with all problems in it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(path, &text_of(path)?)
    }

    /// Reads the configuration of a host to send it requests: its programs may be gone meanwhile.
    ///
    /// # Errors
    /// As [`load`](Self::load), except problems with programs.
    pub(crate) fn load_to_ask(path: &Path) -> Result<Self, ConfigError> {
        Self::read(path, &text_of(path)?, Purpose::Ask)
    }

    /// Parses and checks a configuration; `path` is for its problems.
    ///
    /// # Errors
    /// [`ConfigError::Problems`] with all problems.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::read(path, text, Purpose::Start)
    }

    fn read(path: &Path, text: &str, purpose: Purpose) -> Result<Self, ConfigError> {
        read::config(text, purpose)
            .map_err(|faults| ConfigError::Problems { path: path.to_owned(), problems: faults.placed(text) })
    }
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // A pipe or a device does not report its size, so the read itself has a limit.
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        return Err(ConfigError::TooLong { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))
}
