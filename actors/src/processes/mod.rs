//! The one registry of processes: it owns them by name, and adopts or ends what an earlier run of the host left.

mod messages;

pub use messages::*;
