//! What can go wrong with control groups.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The kernel refused one step.
    #[error("cannot {doing} {}: {source}", path.display())]
    Refused {
        /// What was tried: `make the control group`, `write "+memory" to`.
        doing: String,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Processes, or groups made inside, did not go away.
    #[error(
        "the control group {} is not empty {within:?} after everything in it was killed: processes {pids:?} are left; look \
         at them (a process that waits for a disk or a network file system cannot be killed)", path.display()
    )]
    NotEmpty {
        /// Which group.
        path: PathBuf,
        /// How long it was tried.
        within: Duration,
        /// Who is in it, at most 16.
        pids: Vec<u32>,
    },
}

impl CgroupError {
    pub(super) fn refused(doing: impl Into<String>, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let (doing, path) = (doing.into(), path.to_owned());
        move |source| Self::Refused { doing, path, source }
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotEmpty { .. } => true,
            Self::Refused { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound
            ),
        }
    }
}
