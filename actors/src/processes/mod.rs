//! Runs the [machine of the processes](callboard_machines::processes): holds their actors, and keeps their records.

mod row;

mod store;

mod actor;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::processes::*;

pub use actor::start;
pub use row::PROCESS_TABLE;
pub use store::{DurableRecords, MemoryRecords, OWNER};
