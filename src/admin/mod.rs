//! The admin socket: how `callboard status`, `tree`, `watch`, `start`, `stop`, `volume` and `shutdown` reach a running host.
//!
//! ```text
//!  command line                                host
//!  ┌────────┐   gRPC over a Unix socket   ┌──────────┐ views  ┌ registry, instances, inventory, allocations
//!  │ client │ ──────────────────────────► │ service  │ ─────► ┤
//!  └────────┘   mode 0600, peer's uid     └──────────┘ asks   └ drivers, agent, tasks, volumes
//!               asked of the kernel
//! ```
//!
//! Only the user of the host and root are answered. A dead socket is replaced, a live socket is left alone, and files of others are not
//! touched (SEC-02). A lock on a file beside the socket decides which host has a path. The socket lies in the data directory. If its path
//! would be too long there, it lies in a directory of its own below the runtime directory, and a link in the data directory points to it
//! (SEC-01).

mod place;

mod client;
mod error;
mod volume_client;

mod claim;
mod connections;
mod drivers;
mod long_calls;
mod server;
mod service;
mod socket;
mod volume_calls;
mod volume_ends;
mod volume_orders;
mod volume_reads;
mod watch;
mod workloads;

mod gather;

mod compose;
mod convert;
mod disk;
mod driven;
mod events;
mod plugins;
mod stopping;
mod tree;
mod volumes;

pub use client::{AdminClient, Told};
pub use convert::stopped;
pub use error::{AdminError, SocketError};
pub use events::EventLog;
pub use place::{SOCKET_FILE, find_socket, socket_path};
pub use server::{AdminServer, AdminSocket, ShutdownOrder, Sources};
pub use stopping::{Stopping, awaited};
pub use tree::host as host_tree;
