//! Runs the [machine of the catalog](callboard_machines::catalog): reads the directory, and launches, probes and ends temporary
//! instances.

mod launcher;
mod through;

mod directory;
mod probe;

mod actor;

pub use callboard_machines::catalog::*;

pub use actor::{start, start_with};
pub use launcher::Launcher;
