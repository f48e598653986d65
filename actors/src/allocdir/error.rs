//! The errors of task directories.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub(super) const NAMED_MAX: usize = 16;

/// A file that a removal could not remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.reason)
    }
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum AllocDirError {
    /// An error of the kernel.
    #[error("cannot {doing} {}: {source}", path.display())]
    Refused {
        /// The operation: `make the directory`, `mount a tmpfs on`.
        doing: String,
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The name is invalid.
    #[error("{0}")]
    Name(String),
    /// Another file has the place of a task directory.
    #[error("{} is {found} and has to be a directory of the task; look at it and remove it", path.display())]
    NotADirectory {
        /// Its path.
        path: PathBuf,
        /// Its type: `a link`, `a file`.
        found: &'static str,
    },
    /// A directory belongs to a user who is unrelated to the task.
    #[error(
        "{} belongs to user {owner}, who is neither this host nor the task's user; look at it and remove it", path.display()
    )]
    Foreign {
        /// Its path.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
    },
    /// There is an unexpected mount.
    #[error("{} has {found} mounted on it, which is not this host's; unmount it: umount {}", path.display(), path.display())]
    Mounted {
        /// The mount point.
        path: PathBuf,
        /// The mounted file system.
        found: String,
    },
    /// The chroot list would expose directories of the host's own state to tasks.
    #[error("{} cannot be shown in a chroot, since {} lies in it; leave it out of `chroot`", shown.display(), kept.display())]
    OwnRoot {
        /// The path in the list.
        shown: PathBuf,
        /// The directory that it contains.
        kept: PathBuf,
    },
    /// The removal is incomplete.
    #[error("{} is not removed: {}", path.display(), told(left, *more))]
    Left {
        /// The path that was to be removed.
        path: PathBuf,
        /// The remaining files, at most 16.
        left: Vec<Left>,
        /// The number of further ones.
        more: usize,
    },
}

fn told(left: &[Left], more: usize) -> String {
    let named: Vec<String> = left.iter().map(ToString::to_string).collect();
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{} left{rest}", named.join("; "))
}

impl AllocDirError {
    pub(super) fn refused<E: Into<io::Error>>(
        doing: impl Into<String>,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        let (doing, path) = (doing.into(), path.to_owned());
        move |source| Self::Refused { doing, path, source: source.into() }
    }

    /// Whether a retry may succeed without a repair.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Left { .. } => true,
            Self::Refused { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
                    | io::ErrorKind::InvalidFilename
            ),
            Self::Name(_)
            | Self::NotADirectory { .. }
            | Self::Foreign { .. }
            | Self::Mounted { .. }
            | Self::OwnRoot { .. } => false,
        }
    }
}
