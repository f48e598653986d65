//! The go-plugin protocol: handshake, log output and gRPC connection of a plugin process.
//!
//! A module, not an actor: `process` starts plugins and reads their output, `driver` and others are clients of their
//! services. Parsing is plain data and functions; only a connection performs I/O.
//!
//! ```text
//!  HandshakeTerms --environment--> the child process                     (D3 to D9, D100)
//!                                     |           |
//!                                  stdout       stderr
//!                                     |           |
//!   LineSplitter: lines, long ones in pieces (LOG-02)
//!                                     |           |
//!                              HandshakeScan   LineReader --> PluginLine (D70 to D77)
//!                                     |
//!                   Handshake  or  HandshakeError: one per refusal       (D20 to D28, D33, PRC-06)
//!                                     |
//!                              Connection::dial                          (D40 to D43)
//!                                     |
//!     ping | plugin_info | config_schema | set_config | stdio | shutdown (D50, D51, D55, D102)
//!     and the channel for the plugin's own service
//! ```
//!
//! [`diagnose`] explains why a plugin did not start, from its file and its last output (D34, D36).
//!
//! A connection belongs to one process and never reconnects by itself. Every call except the stream has its own deadline;
//! every answer is bounded and checked.
//!
//! Automatic mutual TLS, the broker and its multiplexing are not implemented: a plugin that requires one of them is refused
//! with an error that says so.

mod handshake;
mod tell;
mod terms;

mod handshake_error;
mod handshake_line;
mod scan;

mod lines;
mod log_line;

mod diagnosis;
mod executable;
mod program;

mod connection;
mod info;
mod stdio;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use crate::rpc::Listener;
pub use connection::{CallError, Connection, Limits, ShutdownAnswer, Step};
pub use diagnosis::{Diagnosis, ExecutableFacts, Finding};
pub use executable::diagnose;
pub use handshake::{Handshake, PluginEndpoint};
pub use handshake_error::{HandshakeError, StrayLines, Versions};
pub use handshake_line::{is_meant_as_handshake, read_line};
pub use info::{API_VERSIONS_MAX, PluginConfig, PluginInfo, VERSION_BYTES_MAX};
pub use lines::{LineSplitter, PIECE_BYTES_MAX, Part, Piece};
pub use log_line::{FIELDS_MAX, LineLevel, LineReader, Origin, PluginLine};
pub use program::{HEAD_BYTES_MAX, HostMachine, Machine, Program};
pub use scan::{HandshakeScan, ScanLimits};
pub use stdio::{Output, Printed, Stdio};
pub(crate) use tell::tell;
pub use terms::{HandshakeTerms, SOCKET_DIR_VARIABLE, TermsError};
