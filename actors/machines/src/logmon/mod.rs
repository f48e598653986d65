//! Logs of tasks: what is collected, which bytes go into which file, when they are dropped, and what is shown of it.
//!
//! `rotation` decides which bytes go into which file, `dropping` when the content of a full pipe is dropped; `protocol` is what host and
//! log writer say to each other.

mod spec;

mod view;

#[doc(hidden)]
pub mod dropping;
#[doc(hidden)]
pub mod protocol;
#[doc(hidden)]
pub mod rotation;

pub use spec::{Collection, LogPaths, LogSpec, LogStream, MalformedLogSpec, Retention};
pub use view::{LogState, LogsView, StreamReport, TaskLogs};
