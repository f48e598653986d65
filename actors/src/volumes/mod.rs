//! Runs the [machine of the owner of the volumes](callboard_machines::volumes): holds the actors of its volumes.
//!
//! [`DurableStore`] keeps the known volumes in the database, and finds there which volumes have a ledger; [`MemoryStore`] does the same
//! in memory.

mod actor;
mod reads;
mod tokens;

mod row;

mod store;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::volumes::*;

pub use actor::start;
pub use row::{DELETION_TABLE, DeletionRow, KNOWN_TABLE, KnownRow};
pub use store::{DurableStore, MemoryStore, OWNER};
