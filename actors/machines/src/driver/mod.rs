//! Drivers: what is known of one, what it reports of its tasks, and why a call to it fails.

mod report;

mod events;
mod recent;

mod usage;

mod call_error;

pub use call_error::{Asked, DriverError, DriverRpc};
pub use events::*;
pub use recent::{Folded, RECENT_ENTRIES, Recent};
pub use report::*;
pub use usage::*;
