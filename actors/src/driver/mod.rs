//! Runs the [machine of a driver](callboard_machines::driver): finds or launches its process, connects, and passes its answers on.
//!
//! Generations come from a counter that the host keeps for all drivers, and each run of the host has greater ones than every run
//! before it.

pub mod client;

mod change;

mod owner;

mod generations;

mod link;
mod stdio;

mod actor;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::driver::*;

pub use actor::start;
pub use generations::Generations;
pub use owner::{Ordered, ProcessOwner};
