//! Errors that end the examiner.

use std::io;
use std::path::PathBuf;

use crate::hostpath::HostpathError;

/// Why the examiner ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum ExaminerError {
    /// Without volumes there is nothing to examine.
    #[error("an exam needs volumes: say with --volumes where they are kept")]
    NoVolumes,
    /// A report cannot be written.
    #[error("cannot write the report to {file}")]
    Report {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The journal cannot be read or written.
    #[error("cannot keep the journal of the exam in {file}")]
    Journal {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The journal contains something other than observations.
    #[error(
        "line {line} of {file} is no observation of an exam; name another file with --journal, or remove it"
    )]
    JournalContent {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
    /// The signal for a report cannot be installed.
    #[error("cannot listen for SIGUSR1")]
    Signals {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The plugin itself.
    #[error(transparent)]
    Plugin(#[from] HostpathError),
}

impl ExaminerError {
    /// The exit code for this error.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Plugin(error) => error.exit_code(),
            Self::NoVolumes => 2,
            Self::Report { .. }
            | Self::Journal { .. }
            | Self::JournalContent { .. }
            | Self::Signals { .. } => 1,
        }
    }

    /// Whether a retry may succeed without any change.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Plugin(error) => error.is_transient(),
            Self::NoVolumes
            | Self::Report { .. }
            | Self::Journal { .. }
            | Self::JournalContent { .. }
            | Self::Signals { .. } => false,
        }
    }
}
