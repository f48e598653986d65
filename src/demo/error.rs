//! Errors that end the demo.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::vocabulary::MalformedEndpoint;

use super::disk::ELSEWHERE;
use crate::admin::AdminError;

/// Why the demo cannot continue. A failed check is not among these.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    /// Without the keeper, processes would be left if the demo were killed.
    #[error("cannot start the keeper of what the demo starts: {0}")]
    Keeper(io::Error),
    /// A file operation failed.
    #[error("cannot {what} {path}: {source}{}", advice(source))]
    File {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path of the temporary directory is too long.
    #[error("the admin socket cannot have the path {path}: {source}; set TMPDIR to a shorter path")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The error in that path.
        source: MalformedEndpoint,
    },
    /// Our own program cannot be found or started.
    #[error("cannot start a host from {program}: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The host ended without a request.
    #[error("the host has ended by itself ({how}); the end of its log:\n{log}")]
    HostEnded {
        /// How it ended.
        how: String,
        /// The end of its log.
        log: String,
    },
    /// The host ended before it served its admin socket.
    #[error("the host has not started ({how}); the end of its log:\n{log}\n{}", of_the_disk(directory))]
    HostNotStarted {
        /// How it ended.
        how: String,
        /// The end of its log.
        log: String,
        /// Everything of the demo is below this.
        directory: PathBuf,
    },
    /// The host does not answer in time.
    #[error(
        "the host did not serve its admin socket within {timeout:?}; the end of its log:\n{log}\n{}",
        of_the_disk(directory)
    )]
    HostSilent {
        /// The timeout.
        timeout: Duration,
        /// The end of its log.
        log: String,
        /// Everything of the demo is below this.
        directory: PathBuf,
    },
    /// No host runs, but one is needed.
    #[error("no host runs")]
    NoHost,
    /// A request to the host failed.
    #[error("cannot {what}: {source}")]
    Asked {
        /// The request.
        what: String,
        /// Its error.
        source: AdminError,
    },
    /// The host ended an endless stream.
    #[error("the host ended its {stream} without a request")]
    StreamEnded {
        /// The stream.
        stream: &'static str,
    },
    /// A process cannot be watched.
    #[error("cannot watch process {pid} of {name}: {source}")]
    Watch {
        /// The owner of the process.
        name: String,
        /// The process id.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// A process cannot be signalled.
    #[error("cannot kill process {pid} of {name}: {source}")]
    Signal {
        /// The owner of the process.
        name: String,
        /// The process id.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The signal handlers cannot be installed.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    /// The reader of standard output is gone.
    #[error("its reader is gone")]
    ReaderLeft,
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// A check failed that later steps depend on.
    #[error("a failed step makes the next ones meaningless")]
    StepFailed,
}

/// What to do about an error of a file operation that the disk causes.
fn advice(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem => {
            format!("; {ELSEWHERE}")
        }
        _ => String::new(),
    }
}

/// What to do if the disk is the reason, which only a log can show.
fn of_the_disk(directory: &Path) -> String {
    format!("if the disk below {} takes no writes or does not answer: {ELSEWHERE}", directory.display())
}
