//! The plugin's side: what a task driver written in Rust needs to be one.
//!
//! A driver is a program that a host starts. It says on its standard output where it listens, in one line, and then serves gRPC
//! on a Unix socket until it is told to stop. This module does all of that; an author writes the [`Driver`] and hands it to
//! [`run`].
//!
//! ```text
//!  run ─► cookie there? ─ no ─► a word for the person who started it by hand, exit code 1          D3, D36
//!           │ yes
//!         choose the version ─► listen on a socket ─► print 1|2|unix|/path|grpc|                   D23, D8, D20
//!           │
//!         serve: health, controller, stdio, base, driver      SIGINT is ignored                    D50, D51, D55, D31
//!           │ Shutdown or SIGTERM
//!         streams end ─► calls in flight end within a second ─► the socket goes
//! ```
//!
//! - The log is what [`tracing`] is told: [`log_to_host`] writes it to standard error in the form that hosts read (D72).
//! - What the driver prints goes to the host through `StreamStdio`, and can neither block the driver nor spoil the line.
//! - Task events are announced in [`Events`], which loses and doubles nothing across broken streams and restarts.
//! - Schemas are built with [`schema`], and what comes of them is read with [`decode`].
//! - A no is a [`Refusal`], which tells hosts whether trying again can help.
//!
//! Certificates (AutoMTLS), the broker and multiplexing are not served; a host that asks for them is told so in the line.
//!
//! `examples/driver.rs` is a whole driver in some sixty lines, the module `exec` one that runs real commands.

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
pub(crate) use accepted::accepted;
#[cfg(feature = "cli")]
pub(crate) use serve::{Conduct, Listening, print};
