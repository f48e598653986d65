//! Runs the [machine of the owner of the volumes](callboard_machines::volumes): holds the actors of its volumes.

mod actor;

pub use callboard_machines::volumes::*;

pub use actor::start;
