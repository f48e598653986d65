//! The reference plugin: a real CSI plugin in a process of its own, and an example of how to write one in Rust.
//!
//! A CSI plugin is a gRPC server on one Unix socket. Whoever runs it says in `CSI_ENDPOINT` where the socket goes (C171);
//! the plugin listens there, with all its services on the one socket (C173), and says who it is and what it can do. That
//! is this module, file by file:
//!
//! ```text
//!   arguments   what can be told to it: endpoint, role, name, node
//!   serve       its life: wait, listen, serve until told to stop, leave no socket behind
//!      socket   takes the place of a dead plugin, never of a living one
//!   identity    who it is, what it offers, whether it is ready     every plugin has this service
//!   controller  what its controller can do                         controller and monolith
//!   node        what its node half can do, and which node it is    node and monolith
//!   faults      how it misbehaves when told to: what tests and demonstrations are for
//! ```
//!
//! Each service is a trait generated from `csi.proto`. A call that the plugin leaves out needs no code: the trait's own
//! answer is `UNIMPLEMENTED`, and so is the server's for services it does not have. Volumes are not served yet, and so no
//! capability for them is claimed unless an argument claims it.
//!
//! `examples/csi_plugin.rs` is the same without arguments and faults, in forty lines.

mod arguments;
mod serve;

mod identity;

mod controller;
mod node;

mod faults;
mod socket;

mod error;

pub use arguments::HostpathArgs;
pub use error::HostpathError;
pub use faults::{FaultArgs, Garbage};
pub use serve::serve;
