//! The arguments of the driver.

use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::vocabulary::DriverName;
use clap::Args;

use super::faults::FaultArgs;
use crate::duration::parse_duration;

/// The default name of the driver. No driver built into Nomad has it, so it gets no job for one of those (T171, TH091).
pub(super) const DEFAULT_NAME: &str = "callboard_exec";

/// The drivers built into Nomad. Nomad silently prefers an external driver of the same name (T171).
const BUILTIN_NAMES: [&str; 7] = ["docker", "exec", "java", "mock", "mock_driver", "qemu", "raw_exec"];

/// The arguments of `callboard plugin exec`.
#[derive(Debug, Clone, Args)]
pub struct ExecArgs {
    /// Its name, which jobs refer to; that of a driver built into Nomad needs --allow-builtin-name
    #[arg(long, default_value = DEFAULT_NAME, value_parser = driver_name)]
    pub name: String,

    /// Accept the name of a driver built into Nomad: Nomad then gives its tasks to this driver, which does not isolate them
    #[arg(long)]
    pub allow_builtin_name: bool,

    /// Its version
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub plugin_version: String,

    /// Keep task events and notes of started tasks in this directory, so that no event is lost or duplicated when the driver
    /// dies; without it only the notes are kept, in the runtime directory of the system
    #[arg(long, value_name = "DIRECTORY")]
    pub state_dir: Option<PathBuf>,

    /// Interval of the fingerprints
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub fingerprint_interval: Duration,

    /// Timeout for a task's supervisor to start it; one that takes longer is killed with all that it has begun
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration)]
    pub start_timeout: Duration,

    /// Number of task events to keep for hosts that ask for them again
    #[arg(long, value_name = "NUMBER", default_value_t = crate::plugin::EVENTS_KEPT)]
    pub events_kept: usize,

    /// How to misbehave.
    #[command(flatten)]
    pub faults: FaultArgs,
}

impl ExecArgs {
    /// Whether it has the name of a driver built into Nomad without permission (TH091).
    pub(super) fn takes_a_builtin_name(&self) -> bool {
        !self.allow_builtin_name && BUILTIN_NAMES.contains(&self.name.as_str())
    }
}

fn driver_name(text: &str) -> Result<String, String> {
    DriverName::new(text).map(|name| name.as_str().to_owned()).map_err(|error| error.to_string())
}
