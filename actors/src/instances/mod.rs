//! Runs the [machine of the instances](callboard_machines::instances): owns the actors of all instances, and leases their
//! connections.

mod actor;
mod leasing;

pub use callboard_machines::instances::*;

pub use actor::start;
pub use leasing::{LeaseRefused, Leases};
