//! Runs the [machine of the owner of the allocations](callboard_machines::allocations): holds the actors of its allocations.

mod actor;

pub use callboard_machines::allocations::*;

pub use actor::{AllocationsMemory, default_runtime_dir, start};
