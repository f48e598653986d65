//! The reasons why a script cannot be played.

use std::io;
use std::path::PathBuf;

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// A line is malformed, or its verb cannot be executed. Shown as `file:line: what, and what was expected`.
    #[error("{}:{line}: {reason}", .path.display())]
    Mistake {
        /// The script; `script` if it was not read from a file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u32,
        /// The mistake, and what was expected.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be written; it is unchanged.
    #[error("{}: cannot be written: {source}", .path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The script is too long.
    #[error("{} is longer than {limit} bytes, the limit of a script; split it into several", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its maximum length.
        limit: usize,
    },
    /// The stage cannot be set up: no runtime, or no temporary directory.
    #[error("cannot set up the stage of a script: {0}")]
    Stage(#[source] io::Error),
}

impl ScriptError {
    /// Whether the same script may succeed later without a change.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Mistake { .. } | Self::TooLong { .. } => false,
            Self::File { .. } | Self::Unwritten { .. } | Self::Stage(_) => true,
        }
    }
}
