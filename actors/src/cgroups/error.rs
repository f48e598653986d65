//! The errors of cgroups.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// An error of the kernel.
    #[error("cannot {doing} {}: {source}", path.display())]
    Refused {
        /// The operation: `make the control group`, `write "+memory" to`.
        doing: String,
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Processes, or nested cgroups, did not go away.
    #[error(
        "the control group {} is not empty {within:?} after everything in it was killed: processes {pids:?} are left; look \
         at them (a process that waits for a disk or a network file system cannot be killed)", path.display()
    )]
    NotEmpty {
        /// The cgroup.
        path: PathBuf,
        /// The timeout.
        within: Duration,
        /// The PIDs in it, at most 16.
        pids: Vec<u32>,
    },
}

impl CgroupError {
    pub(super) fn refused(doing: impl Into<String>, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let (doing, path) = (doing.into(), path.to_owned());
        move |source| Self::Refused { doing, path, source }
    }

    /// Whether a retry may succeed.
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
