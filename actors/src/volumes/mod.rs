//! Runs the [machine of the owner of the volumes](callboard_machines::volumes): holds the actors of its volumes.

pub use callboard_machines::volumes::*;
