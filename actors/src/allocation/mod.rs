//! Runs the [machine of an allocation](callboard_machines::allocation): creates and removes its directories, and calls its plugin.

mod neighbours;

mod actor;
mod directory;
mod removal;

pub use callboard_machines::allocation::*;

pub use actor::start;
pub use neighbours::{Addresses, Neighbours};
pub use removal::{clear, departed, sweep};
