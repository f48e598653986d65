//! Runs the [machine of a volume](callboard_machines::volume): makes its calls to the plugin, and looks at the kernel before and after.

mod secrets;

pub use callboard_machines::volume::*;

pub use secrets::{NoSecrets, SecretSource};
