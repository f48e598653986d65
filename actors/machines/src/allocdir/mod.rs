//! The directories of a task: their paths on the host, and as the task sees them.

mod layout;

pub use layout::{Layout, SHARED, Seen, TaskNames};
