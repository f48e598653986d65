//! What can be told to the driver.

use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::vocabulary::DriverName;
use clap::Args;

use super::faults::FaultArgs;
use crate::duration::parse_duration;

/// The name of the driver if nobody chooses one: no driver that is built into Nomad has it, so that no job that asks for such a
/// one comes here unasked (T171, TH091).
pub(super) const DEFAULT_NAME: &str = "callboard_exec";

/// The drivers that are built into Nomad, which prefers an external one of the same name without a word (T171).
const BUILTIN_NAMES: [&str; 7] = ["docker", "exec", "java", "mock", "mock_driver", "qemu", "raw_exec"];

/// What can be told to the driver. Each field is an argument of `callboard plugin exec`.
#[derive(Debug, Clone, Args)]
pub struct ExecArgs {
    /// Its name, by which jobs ask for it; that of a driver built into Nomad needs --allow-builtin-name
    #[arg(long, default_value = DEFAULT_NAME, value_parser = driver_name)]
    pub name: String,

    /// Take a name that a driver built into Nomad has: Nomad then gives its tasks to this driver, which does not isolate them
    #[arg(long)]
    pub allow_builtin_name: bool,

    /// Its version
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub plugin_version: String,

    /// Keep task events and what was started in this directory, so that no event is lost or doubled when the driver dies;
    /// without it only what was started is noted, in the runtime directory of the system
    #[arg(long, value_name = "DIRECTORY")]
    pub state_dir: Option<PathBuf>,

    /// How often to report what the node offers
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub fingerprint_interval: Duration,

    /// How long the supervisor of a task may take to start it; one that takes longer is ended with all that it has begun
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_duration)]
    pub start_patience: Duration,

    /// How many task events to keep for hosts that ask for them again
    #[arg(long, value_name = "NUMBER", default_value_t = crate::plugin::EVENTS_KEPT)]
    pub events_kept: usize,

    /// How to misbehave.
    #[command(flatten)]
    pub faults: FaultArgs,
}

impl ExecArgs {
    /// Whether it takes the name of a driver that is built into Nomad, and was not told that this is meant (TH091).
    pub(super) fn takes_a_builtin_name(&self) -> bool {
        !self.allow_builtin_name && BUILTIN_NAMES.contains(&self.name.as_str())
    }
}

fn driver_name(text: &str) -> Result<String, String> {
    DriverName::new(text).map(|name| name.as_str().to_owned()).map_err(|error| error.to_string())
}
