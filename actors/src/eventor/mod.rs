//! Runs the [machine of an eventor](callboard_machines::eventor): reads the stream of a driver, and puts its events into the journals
//! of their tasks.

mod journals;

mod actor;

#[cfg(test)]
mod tests;

pub use callboard_machines::eventor::*;

pub use actor::start;
pub use journals::{TaskEvents, TaskJournals};
