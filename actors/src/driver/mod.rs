//! One driver: its process is found or launched, asked who it is, configured, and watched.

pub mod client;

mod events;

mod recent;

mod report;

mod spec;

pub use events::*;
pub use recent::{Folded, RECENT_ENTRIES, Recent};
pub use report::*;
pub use spec::{DriverLimits, DriverSpec, NodeFacts, process_name};
