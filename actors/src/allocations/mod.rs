//! The supervisors of allocations: one for each plugin workload, by ownership (A5).

mod messages;

pub use messages::*;
