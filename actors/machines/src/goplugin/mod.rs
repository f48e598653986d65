//! The go-plugin protocol as plain data: terms and handshake line, log output, and why a plugin did not start.
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
//! ```
//!
//! A [`Diagnosis`] explains why a plugin did not start, from its file and its last output (D34, D36).
//!
//! Automatic mutual TLS, the broker and its multiplexing are not implemented: a plugin that requires one of them is refused
//! with an error that names it.

mod handshake;
mod terms;

mod handshake_error;
mod handshake_line;
mod scan;

mod lines;
mod log_line;

mod diagnosis;
mod program;

pub use crate::rpc::Listener;
pub use diagnosis::{Diagnosis, ExecutableFacts, Finding};
pub use handshake::{Handshake, PluginEndpoint};
pub use handshake_error::{HandshakeError, StrayLines, Versions};
pub use handshake_line::{is_meant_as_handshake, read_line};
pub use lines::{LineSplitter, PIECE_BYTES_MAX, Part, Piece};
pub use log_line::{FIELDS_MAX, LineLevel, LineReader, Origin, PluginLine};
pub use program::{HEAD_BYTES_MAX, HostMachine, Machine, Program};
pub use scan::{HandshakeScan, ScanLimits};
pub use terms::{HandshakeTerms, SOCKET_DIR_VARIABLE, TermsError};
