//! All drivers: a summary of their states.

mod summary;

pub use summary::DriverSummary;
