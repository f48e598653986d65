//! Runs the [machine of the inventory](callboard_machines::inventory): follows the instances, and logs each offer.

mod actor;

pub use callboard_machines::inventory::*;

pub use actor::{Besides, start};
