//! Runs the [machine of a process](callboard_machines::process): launches it, proves its identity, reads its output, ends and
//! reaps it.
//!
//! - The program is opened, verified, and executed by its own path, or by that of a private copy if its digest is pinned
//!   (SEC-05, SEC-07); it can find itself at that path (TH033). Its standard input is empty, and it inherits no file
//!   descriptor of the host.
//! - Its output goes to files that outlive the host; it never blocks on a reader (PRC-07, LOG-03).
//! - The sockets of a plugin, and of its descendants, are in a private directory that belongs to its name. The directory
//!   outlives the process and the host; only sockets that no process has open are removed (D8, TH030).
//! - Before anything is sent to a plugin's endpoint, its listener is proven to be the launched process or a descendant.

mod actor;

mod bound;
mod control_group;
mod descriptors;
mod environment;
mod executable;
mod given;
mod guard;
mod ignored;
mod keeper;
mod listener;
mod look;
mod open_sockets;
mod owned;
mod readiness;
mod sockets;
mod spawn;
mod sweep;
mod system;

mod allowance;
mod output;
mod plugin_log;
mod tail;
mod task_processes;
mod watcher;
mod words;

pub use callboard_machines::process::*;

pub use actor::{Surroundings, start};
pub use bound::{Binder, BoundError, be_bound};
pub use control_group::{ControlGroups, unified_group_of};
pub use descriptors::close_on_exec;
pub use environment::{Environment, read_environment};
pub use given::GivenPaths;
pub use guard::guard;
pub use ignored::{IgnoredSignals, catch_ignored_signals};
pub use keeper::{Keeper, keep};
pub use listener::{Impostor, Who, prove_listener};
pub use plugin_log::PluginLog;
pub use sweep::sweep;
pub use system::{ProcessStatus, boot_id, living_directory, random_bytes, since_boot, users_in};
pub use task_processes::{Intruder, TaskProcesses};
pub use watcher::Watcher;
