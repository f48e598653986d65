//! Runs the [machine of the supervisor](callboard_machines::supervisor): starts, watches, stops and kills its children.

mod actor;
mod child;

pub use callboard_machines::supervisor::*;

pub use actor::start;
pub use child::Child;
