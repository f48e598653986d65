//! Decides which bytes of a task's logs go into which file, when they are dropped, and how the state is shown.
//!
//! `rotation` decides which bytes go into which file, `dropping` when the content of a full pipe is dropped; `protocol` defines the
//! messages between host and log writer.

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
