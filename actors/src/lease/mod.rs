//! Leases: calls of a host program to a plugin, over the one connection of the plugin's instance.
//!
//! A lease is bound to one connection, and so to one generation of one plugin. It never reconnects: a plugin that comes back needs a
//! new lease.
//!
//! ```text
//!                 dial              Retire, stop          no call in flight, or deadline
//!   connection ► open ───────────────► closed ───────────────► ended
//!                 │                    new calls fail:          calls in flight are cut
//!                 │                    LeaseError::Ended        LeaseError::Cut
//!                 └── the plugin ends ─► closed: calls in flight fail with the connection
//! ```
//!
//! Invariants:
//!
//! - Calls in flight are counted, including calls of the instance itself. When `InstanceLimits::calls_max` of them are in flight, a call of
//!   a lease is refused at once ([`LeaseError::TooMany`], F17); calls of the instance never are.
//! - A lease is given only over a connection that is open, and whose plugin is identified and healthy (C031).
//! - Once a connection is closed no new call begins (I6). A call that has begun ends by itself, or is cut when its connection ends.
//! - An instance that retires waits for the calls in flight within its deadline (SHD-04), so an allocation that is reported as
//!   stopped has no call in flight (A4).
//! - Each error states whether a new lease ([`NewLease`]) helps, helps once another allocation serves, or cannot help since the host is
//!   stopping.
//! - A cut call is reported to its caller, with its plugin and generation, and logged. Whether it took effect is unknown (C015).
//!
//! All types here are shared between threads. No lock is held during a call or an await.

mod channel;
mod clients;
mod connections;
mod error;
mod gate;

pub use callboard_machines::lease::{LeasedCalls, RetireCause};
pub use channel::{LeasedBody, LeasedChannel};
pub use clients::Lease;
pub use connections::Connections;
pub(crate) use connections::{OpenConnection, counts};
pub use error::{LeaseError, NewLease};
pub use gate::ConnectionEnd;
pub(crate) use gate::{Gate, NotAdmitted, Pass};
