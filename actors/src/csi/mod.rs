//! One CSI plugin's socket: dial, call with a deadline, check and convert the answer, classify the error.
//!
//! A module, not an actor: whoever owns a [`Connection`] decides when to dial and what to call. Everything but the
//! connection itself is plain data, so that pure machines can name what they want called and what came back.
//!
//! ```text
//!  SocketPath --at--> SocketFile          absent | no socket | denied: known before anything is dialled (REG-10, SEC-03)
//!      |
//!     dial -----------> Connection        refused | busy | slow: each its own cause
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
//! A connection is one conversation with one process. It never connects again by itself, since what listens on the same
//! path later may be another process with another identity: after [`Class::Disconnected`] the owner dials anew and reads
//! identity and capabilities again (I3).

mod rpc;

mod error;

mod code;
mod fault;

mod connection;
mod socket;
mod status;

mod check;
mod convert;

mod continuity;

pub use crate::rpc::{TEXT_BYTES_MAX, quoted};
pub use code::Code;
pub use connection::{Connection, Limits};
pub use continuity::{check_same_plugin, check_same_provider};
pub use error::{CallError, Cause, Class, Denial, Step};
pub use fault::{Fault, Problem};
pub use rpc::{Answer, Readiness, Rpc};
pub use socket::SocketFile;
