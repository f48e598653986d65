//! The clients of one CSI plugin's socket: dial, call with a deadline, check and convert the answer, classify the error.
//!
//! A module, not an actor: the owner of a [`Connection`] decides when to dial and what to call. Everything but the
//! connection itself is plain data, so that pure machines can express calls and outcomes.
//!
//! ```text
//!  SocketPath --at--> SocketFile          absent | no socket | denied: known before the dial (REG-10, SEC-03)
//!      |
//!     dial -----------> Connection        refused | busy | slow: a cause each
//!                           |
//!            call(Rpc, deadline)
//!                           |
//!             +-------------+--------------+
//!             v                            v
//!     wire answer -> checked -> Answer    Cause -> Class: Final, Unclear, ... (table C.6)
//!                        |                 ^
//!                        +---- Fault ------+   an answer that breaks a rule is an error, never a crash (C011)
//! ```
//!
//! An instance dials and asks about the plugin itself. Calls about volumes and snapshots go through [`Client`], over a lease of the
//! connection of that instance:
//!
//! ```text
//!  Lease --Client::new--> Client --create_volume(request, deadline)--> Volume | FailedCall -> Outcome (table C.6)
//! ```
//!
//! A connection belongs to one process. It never reconnects by itself, since another process with another identity may
//! listen on the same path later: after [`Class::Disconnected`] the owner dials again and reads identity and capabilities
//! again (I3).

mod connection;
mod listener_check;

mod check;
mod convert;
mod wire;

mod client;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::csi::*;

pub use crate::rpc::{Listener, socket_file};

pub use client::{BlockReader, Client, StreamRequest, UnaryRequest};
pub use connection::Connection;
pub use listener_check::ListenerCheck;
pub use wire::WireRequest;
