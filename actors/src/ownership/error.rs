//! Why a data directory has no usable mark.

use std::io;
use std::path::{Path, PathBuf};

/// Why the owner of a data directory is not settled. Nothing was started, and no process was inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnershipError {
    /// An error of the system.
    #[error("cannot {what} {}: {source}; the identity of the host is kept there, so make it possible and start again", path.display())]
    System {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The file is malformed.
    #[error(
        "cannot use {}: {problem}; restore it from a backup. Or, if nothing of this host runs any more, remove it together with \
         callboard.redb beside it: the host then gets another identity, and knows none of its former tasks", path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The file was written by a newer version of this program.
    #[error(
        "cannot use {}: it has format {theirs}, and {ours} is the newest known here; run the version that wrote it, or a later \
         one", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        theirs: u32,
        /// The newest version that is supported.
        ours: u32,
    },
    /// Two data directories have the same mark: processes and directories of one would be taken for those of the other.
    #[error(
        "cannot use data directory {}: it and {} have the same identity {mark}, so one is a copy of the other. For {} to be a host \
         of its own, remove callboard.identity and callboard.redb from it: its database speaks of tasks of the other. For it to \
         take the place of {}, stop that host and remove callboard.identity there",
        data_dir.display(), other.display(), data_dir.display(), other.display()
    )]
    Copied {
        /// The directory to be used.
        data_dir: PathBuf,
        /// The other one.
        other: PathBuf,
        /// The mark of both.
        mark: String,
    },
    /// A running host uses this mark already, on another directory.
    #[error(
        "cannot use data directory {}: a host that runs has its identity {mark} already{}, so one data directory is a copy of the \
         other; see which process it is: fuser -v {}. For {} to be a host of its own, remove callboard.identity and callboard.redb \
         from it: its database speaks of tasks of the other. For it to take the place of the other, stop that host and remove \
         callboard.identity there",
        data_dir.display(),
        other.as_ref().map_or_else(String::new, |other| format!(", on data directory {}", other.display())),
        lock.display(), data_dir.display()
    )]
    Held {
        /// The directory to be used.
        data_dir: PathBuf,
        /// The directory of the running host, if known.
        other: Option<PathBuf>,
        /// The mark of both.
        mark: String,
        /// The lock file of the other host.
        lock: PathBuf,
    },
    /// A host runs on another directory that was at this path before.
    #[error(
        "cannot use data directory {}: a host that runs had its data at this path before the directory was removed or replaced; see \
         which process it is: fuser -v {}. Stop that host first, or put its directory back",
        data_dir.display(), lock.display()
    )]
    Replaced {
        /// The directory to be used.
        data_dir: PathBuf,
        /// The lock file of the other host.
        lock: PathBuf,
    },
    /// It is unknown whether there is another directory with the same mark.
    #[error(
        "cannot tell whether data directory {} is a copy of {}, from where its identity comes: {reason}. Make that place readable \
         for this user; or, if no data directory is there any more, write `path {here}` as third line of callboard.identity in {}",
        data_dir.display(), other.display(), data_dir.display()
    )]
    Unclear {
        /// The directory to be used.
        data_dir: PathBuf,
        /// The path at which its mark was written.
        other: PathBuf,
        /// Its own path, as written in the file.
        here: String,
        /// The reason why the other path cannot be inspected.
        reason: String,
    },
}

impl OwnershipError {
    /// Whether a retry of the start may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::System { .. } => true,
            Self::Malformed { .. }
            | Self::Newer { .. }
            | Self::Copied { .. }
            | Self::Held { .. }
            | Self::Replaced { .. }
            | Self::Unclear { .. } => false,
        }
    }

    pub(super) fn system(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::System { what, path, source }
    }
}
