//! The supervisor of the instances: keeps exactly one instance for each active registration.

mod messages;

pub use messages::*;
