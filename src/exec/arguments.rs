//! What can be told to the driver.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::faults::FaultArgs;
use crate::duration::parse_duration;

/// What can be told to the driver. Each field is an argument of `callboard plugin exec`.
#[derive(Debug, Clone, Args)]
pub struct ExecArgs {
    /// Its name
    #[arg(long, default_value = "exec")]
    pub name: String,

    /// Its version
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub plugin_version: String,

    /// Keep task events in this directory, so that none is lost or doubled when the driver dies
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
