//! Logs of tasks: pipes with a reader of ours that outlives the host, and files that are rotated.
//!
//! ```text
//!                    pipe, 0600                          stage, a pipe too
//!  task ── write ──► .NAME.stdout.fifo ── splice ──► KEY.stdout.stage ── splice ──► NAME.stdout.0, .1, .2 ...
//!                      ▲          ▲                    ▲          ▲                     rotated, the oldest removed
//!        held open by: host   log writer             host   log writer
//!
//!  host (`Logs`) ── control.sock: open, close, welcome ──► log writer (`write_logs`), one for each directory of ours
//!                ◄── what is written, what fails, what was dropped ──┘
//! ```
//!
//! What holds:
//!
//! - Host and log writer both hold every pipe open for reading *and* writing, so that either may die at any moment: no writer gets
//!   EPIPE, and what is in a pipe stays there (T063, TH020). A task that finds its pipe full waits until it is read again.
//! - Bytes move from pipe to pipe to file inside the kernel (`splice`), and each is in exactly one of the three at any instant that a
//!   SIGKILL can hit. So none is lost and none is written twice, whichever process is killed; only if host *and* log writer die at
//!   once may a task see EPIPE, unless its driver holds the pipe open for reading too. The files are not synced: a power cut may
//!   cost what the kernel had not written back. On a file system without `splice` bytes are read and written, and a kill in between
//!   loses at most one piece of 64 KiB.
//! - The second pipe, the *stage*, is there because `splice` into a file keeps its pipe locked for as long as the disk takes: a
//!   disk that hangs must not hang the task.
//! - There is at most one log writer for a directory (a lock on a file), found again by its socket; its end closes the connection,
//!   which the host hears at once; it is started again and goes on where the files end (TH021).
//! - While a disk refuses or hangs, output waits in the pipe. Once that has lasted for some seconds and the pipe is full, what is in
//!   it is dropped and counted, so that the task goes on; a line in the log of the task says how many bytes are missing (TH022).
//! - Pipes are made and opened relative to a held directory that is reached without following links, and are the very ones that
//!   were made (TH023). Files are never followed through links either, and only those that are ours are appended to.
//! - A line of up to 32 KiB is never split between two files (TH024). What is kept of a stream is bounded on disk, in its two pipes
//!   and in the memory of the log writer, which holds no bytes of it.
//!
//! What decides is pure: `rotation` (what goes into which file) and `patience` (when to drop). An embedder names the program that
//! is to be the log writer ([`LogProgram`]) and calls [`write_logs`] in it.

mod spec;

mod patience;
mod protocol;
mod rotation;

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

pub use logs::{ClosedLogs, LogState, Logs, LogsError, LogsOptions, LogsView, StreamReport, TaskLogs};
pub use program::LogProgram;
pub use reader::{LogPlace, LogReader};
pub use record::places;
pub use spec::{Collection, LogPaths, LogSpec, LogStream, MalformedLogSpec, Retention};
pub use writer::{WriterError, write_logs};
