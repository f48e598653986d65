//! Runs the [machine of an instance](callboard_machines::instance): connects to the plugin and makes its calls.

mod actor;

pub use callboard_machines::instance::*;

pub use actor::start;
