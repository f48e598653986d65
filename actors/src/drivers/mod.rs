//! Runs the [machine of the drivers](callboard_machines::drivers): holds their actors and those of their eventors, and leases their
//! connections.

mod actor;
mod leasing;

pub use callboard_machines::drivers::*;

pub use actor::{DriversMemory, start};
pub use leasing::{DriverLeases, DriverNotLeased};
