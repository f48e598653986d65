//! Why a script cannot be played.

use std::io;
use std::path::PathBuf;

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// A line is no line of a script, or its verb cannot do what it says. Shown as `file:line: what, and what was expected`.
    #[error("{}:{line}: {reason}", .path.display())]
    Mistake {
        /// The script; `script` if it came from no file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u32,
        /// What was found, and what was expected.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written; it is as it was.
    #[error("{}: cannot be written: {source}", .path.display())]
    Unwritten {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The script is too long.
    #[error("{} is longer than {limit} bytes, the limit of a script; split it into several", .path.display())]
    TooLong {
        /// Which file.
        path: PathBuf,
        /// How long it may be.
        limit: usize,
    },
    /// The stage cannot be set up: no runtime, or no temporary directory.
    #[error("cannot set up the stage of a script: {0}")]
    Stage(#[source] io::Error),
}

impl ScriptError {
    /// Whether the same script may well be played later, as it is.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Mistake { .. } | Self::TooLong { .. } => false,
            Self::File { .. } | Self::Unwritten { .. } | Self::Stage(_) => true,
        }
    }
}
