//! What can go wrong with the directories of a task.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How many things that are left an error names.
pub(super) const NAMED_MAX: usize = 16;

/// Something that a removal could not remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// What.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.reason)
    }
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum AllocDirError {
    /// The kernel refused one step.
    #[error("cannot {doing} {}: {source}", path.display())]
    Refused {
        /// What was tried: `make the directory`, `mount a tmpfs on`.
        doing: String,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The name cannot be used.
    #[error("{0}")]
    Name(String),
    /// Something else lies where a directory of a task has to be.
    #[error("{} is {found} and has to be a directory of the task; look at it and remove it", path.display())]
    NotADirectory {
        /// Where.
        path: PathBuf,
        /// What lies there: `a link`, `a file`.
        found: &'static str,
    },
    /// A directory belongs to somebody who has nothing to do with the task.
    #[error(
        "{} belongs to user {owner}, who is neither this host nor the task's user; look at it and remove it", path.display()
    )]
    Foreign {
        /// Where.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
    },
    /// Something is mounted where it does not belong.
    #[error("{} has {found} mounted on it, which is not this host's; unmount it: umount {}", path.display(), path.display())]
    Mounted {
        /// Where.
        path: PathBuf,
        /// What.
        found: String,
    },
    /// The list of the chroot's content would show the tasks what is not theirs.
    #[error("{} cannot be shown in a chroot, since {} lies in it; leave it out of `chroot`", shown.display(), kept.display())]
    OwnRoot {
        /// What the list names.
        shown: PathBuf,
        /// What lies in it.
        kept: PathBuf,
    },
    /// Not everything could be removed.
    #[error("{} is not removed: {}", path.display(), told(left, *more))]
    Left {
        /// What was to be removed.
        path: PathBuf,
        /// What is left, at most 16 of it.
        left: Vec<Left>,
        /// How much more is left.
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

    /// Whether trying again can help without anybody doing anything.
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
