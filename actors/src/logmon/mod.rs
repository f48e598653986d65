//! Logs of tasks: pipes with a reader process that survives the host, and rotated files.
//!
//! ```text
//!                    pipe, 0600                          stage, a pipe too
//!  task ── write ──► .NAME.stdout.fifo ── splice ──► KEY.stdout.stage ── splice ──► NAME.stdout.0, .1, .2 ...
//!                      ▲          ▲                    ▲          ▲                     rotated, the oldest removed
//!        held open by: host   log writer             host   log writer
//!
//!  host (`Logs`) ── control.sock: open, close, welcome ──► log writer (`write_logs`), one per directory
//!                ◄── reports: opened, fault, dropped bytes ──────────┘
//! ```
//!
//! Invariants:
//!
//! - Host and log writer both hold every pipe open for reading *and* writing, so either may die at any moment: no writer
//!   gets EPIPE, and the content of a pipe is kept (T063, TH020). A task that finds its pipe full blocks until it is read
//!   again.
//! - Bytes move from pipe to pipe to file inside the kernel (`splice`), and each is in exactly one of the three at any
//!   instant of a SIGKILL. So none is lost and none is written twice, whichever process is killed; only if host *and* log
//!   writer die at once, a task may get EPIPE, unless its driver holds the pipe open for reading too. The files are not
//!   synced: a power cut may lose what the kernel had not written back. On a file system without `splice` bytes are read and
//!   written, and a kill in between loses at most one piece of 64 KiB.
//! - The second pipe, the *stage*, exists because `splice` into a file keeps its pipe locked for as long as the disk takes:
//!   a hanging disk must not block the task.
//! - There is at most one log writer per directory (a file lock), found again by its socket. Its end closes the connection,
//!   which notifies the host at once; it is restarted and continues at the end of the files (TH021).
//! - While a disk fails or hangs, output is buffered in the pipe. After some seconds with a full pipe, its content is
//!   dropped and counted, so that the task continues; a line in the log of the task says how many bytes are missing (TH022).
//! - Pipes are created and opened relative to an open directory that is reached without following symlinks, and are verified
//!   to be the ones that were created (TH023). Files are never followed through symlinks either, and only files of ours are
//!   appended to.
//! - A line of up to 32 KiB is never split between two files (TH024). The space per stream is bounded on disk, in its two
//!   pipes and in the memory of the log writer, which buffers no bytes.
//!
//! The decisions are pure, in `rotation` (which bytes go into which file) and `timeout` (when to drop). An embedder names
//! the log writer program ([`LogProgram`]) and calls [`write_logs`] in it.

use callboard_machines::logmon::{dropping, protocol, rotation};

mod logs;
mod reader;

mod held;
mod pipes;
mod program;
mod record;

mod disk;
mod files;
mod sink;
mod stream;
mod writer;

pub use callboard_machines::logmon::{
    Collection, LogPaths, LogSpec, LogState, LogStream, LogsView, MalformedLogSpec, Retention, StreamReport,
    TaskLogs,
};
pub use logs::{ClosedLogs, Logs, LogsError, LogsOptions};
pub use program::LogProgram;
pub use reader::{LogPlace, LogReader};
pub use record::places;
pub use writer::{WriterError, write_logs};
