//! The go-plugin protocol with a plugin process: connection, base service, output, graceful shutdown, diagnosis.
//!
//! A module, not an actor: `process` starts plugins and reads their output, `driver` and others are clients of their
//! services. Its parsed data is [plain data](callboard_machines::goplugin).
//!
//! ```text
//!                    Handshake
//!                        |
//!                 Connection::dial                                       (D40 to D43)
//!                        |
//!     ping | plugin_info | config_schema | set_config | stdio | shutdown (D50, D51, D55, D102)
//!     and the channel for the plugin's own service
//! ```
//!
//! [`diagnose`] explains why a plugin did not start, from its file and its last output (D34, D36).
//!
//! A connection belongs to one process and never reconnects by itself. Every call except the stream has its own deadline;
//! every answer is bounded and checked.

mod tell;

mod executable;

mod connection;
mod info;
mod stdio;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::goplugin::*;

pub use connection::{CallError, Connection, Limits, ShutdownAnswer, Step};
pub use executable::diagnose;
pub use info::{API_VERSIONS_MAX, PluginConfig, PluginInfo, VERSION_BYTES_MAX};
pub use stdio::{Output, Printed, Stdio};
pub(crate) use tell::tell;
