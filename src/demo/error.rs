//! What can keep the demo from going on.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::vocabulary::MalformedEndpoint;

use crate::admin::AdminError;

/// Why the demo cannot go on. A check that does not hold is none of these.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    /// Nothing would end what the demo leaves behind if it were killed.
    #[error("cannot start the keeper of what the demo starts: {0}")]
    Keeper(io::Error),
    /// Something about its files.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory for temporary files has too long a path.
    #[error("no admin socket can be at {path}: {source}; set TMPDIR to a shorter path")]
    Socket {
        /// Where it was to be.
        path: PathBuf,
        /// What is wrong with that.
        source: MalformedEndpoint,
    },
    /// Its own program cannot be found or started.
    #[error("cannot start a host from {program}: {source}")]
    Start {
        /// Which program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The host ended although nobody asked it to.
    #[error("the host has ended by itself ({how}); the end of its log:\n{log}")]
    HostEnded {
        /// How it ended.
        how: String,
        /// What it logged last.
        log: String,
    },
    /// The host does not answer.
    #[error("the host did not serve its admin socket within {patience:?}; the end of its log:\n{log}")]
    HostSilent {
        /// How long it was waited for.
        patience: Duration,
        /// What it logged last.
        log: String,
    },
    /// No host runs, and one is needed.
    #[error("no host runs")]
    NoHost,
    /// A question to the host has no answer.
    #[error("cannot {what}: {source}")]
    Asked {
        /// What was tried.
        what: String,
        /// What came of it.
        source: AdminError,
    },
    /// The host ended a stream that was to go on.
    #[error("the host ended its {stream} although nobody asked it to")]
    StreamEnded {
        /// Which stream.
        stream: &'static str,
    },
    /// A process cannot be watched.
    #[error("cannot watch process {pid} of {name}: {source}")]
    Watch {
        /// Whose process.
        name: String,
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// A process cannot be signalled.
    #[error("cannot kill process {pid} of {name}: {source}")]
    Signal {
        /// Whose process.
        name: String,
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot hear Ctrl-C.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    /// Nobody reads standard output any more.
    #[error("nobody reads it any more")]
    ReaderLeft,
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// A step did not hold, and what comes next rests on it.
    #[error("what comes next rests on a step that does not hold")]
    StepFailed,
}
