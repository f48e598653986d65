//! The reference plugin: a real CSI plugin in a process of its own, and an example of how to write one in Rust.
//!
//! A CSI plugin is a gRPC server on one Unix socket. Its host sets the path of the socket in `CSI_ENDPOINT` (C171). The plugin
//! serves all its services on that socket (C173), and reports its identity and capabilities. The files of this module:
//!
//! ```text
//!   arguments   the command line: endpoint, role, name, node
//!   serve       its lifecycle: wait, listen, serve until requested to stop, remove the socket
//!      socket   replaces the socket of a dead plugin, never of a living one
//!   identity    its identity, its offers, whether it is ready    every plugin has this service
//!   controller  volumes and snapshots                            controller and monolith
//!   group       snapshots of several volumes                     controller and monolith
//!   node        volumes on its node, and the node's id           node and monolith
//!   calls       answers calls on volumes: one at a time for each volume
//!   volumes     the effects of calls, in a directory of the node
//!   fault       a fault of one call, as it is given on the command line
//!   faults      misbehaviour on request, for tests and demonstrations
//! ```
//!
//! Each service is a trait generated from `csi.proto`. An unsupported call needs no code: the default of the trait is
//! `UNIMPLEMENTED`, and so is the server's answer for a missing service. Volumes are supported with `--volumes`; without it, their
//! capabilities are claimed only on request.
//!
//! `examples/csi_plugin.rs` is the same without arguments and faults, in 40 lines.

mod arguments;
mod serve;

mod identity;

mod controller;
mod group;
mod node;
mod volumes;

mod calls;

mod fault;
mod faults;
mod socket;

mod error;

pub use arguments::HostpathArgs;
pub use callboard_actors::csi::Call;
pub use error::HostpathError;
pub use fault::{Action, Fault, Moment, When};
pub use faults::{FaultArgs, Garbage};
pub use serve::serve;
pub(crate) use serve::{Plugin, serve_as};
