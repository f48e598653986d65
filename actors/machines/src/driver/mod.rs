//! Drivers: what is known of one.

mod report;

pub use report::*;
