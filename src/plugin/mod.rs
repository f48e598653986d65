//! The plugin's side of the protocol: everything that a task driver written in Rust needs.
//!
//! A driver is a program that a host starts. It prints its address on standard output, in one line, and then serves gRPC on a Unix socket
//! until it is requested to stop. This module implements that; an author implements [`Driver`] and calls [`run`].
//!
//! ```text
//!  run ─► cookie there? ─ no ─► a message for the person who started it by hand, exit code 1         D3, D36
//!           │ yes
//!         choose the version ─► listen on a socket ─► print 1|2|unix|/path|grpc|                   D23, D8, D20
//!           │
//!         serve: health, controller, stdio, base, driver      SIGINT is ignored                    D50, D51, D55, D31
//!           │ Shutdown or SIGTERM
//!         streams end ─► calls in flight end within a second ─► the socket is removed
//! ```
//!
//! - [`log_to_host`] writes the events of [`tracing`] to standard error in the format that hosts parse (D72).
//! - The driver's standard output reaches the host through `StreamStdio`; it can neither block the driver nor spoil the line.
//! - Task events are announced in [`Events`], which neither loses nor duplicates them across broken streams and restarts.
//! - [`schema`] builds schemas; [`decode`] reads configurations that were encoded by them.
//! - A call is refused with a [`Refusal`], which reports whether a retry can help.
//!
//! Certificates (AutoMTLS), the broker and multiplexing are unsupported; the handshake line reports that to a host that asks for them.
//!
//! `examples/driver.rs` is a whole driver in about 60 lines; the module `exec` is a driver that runs real commands.

mod driver;

mod events;
mod refusal;
pub mod schema;

mod accepted;
mod authority;
mod serve;
mod services;

mod environment;
mod line;
mod socket;

mod log;
mod printed;
mod silent;
mod stopping;

pub use callboard_actors::users::accounts;

mod error;
pub(crate) mod random;

pub use callboard_proto::drivers as wire;

pub use driver::{
    Answers, Driver, ExecOutput, InspectedTask, PluginConfig, PluginInfo, StartedTask, TaskExit, decode,
};
pub use environment::{Cookie, Environment, NotAPlugin};
pub use error::ServeError;
pub use events::{EVENTS_KEPT, Events, EventsFrom, position_of};
pub use line::HandshakeLine;
pub use log::{HostLog, log_to_host};
pub use refusal::{Refusal, RefusalKind};
pub use serve::{run, serve};
pub use socket::SocketError;

#[cfg(feature = "cli")]
pub(crate) use accepted::{Accepted, accepted};
#[cfg(feature = "cli")]
pub(crate) use serve::{Conduct, Listening, print};
