//! The results and the errors of a look at one path.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mount::{BlockDevice, DeviceNumber, Mount, UniqueMountId};
use super::record::MountIdentity;
use super::table::MountTable;

/// The kind of a path, without following a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// Nothing is there.
    Absent,
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice(BlockDevice),
    /// A symbolic link.
    Link,
    /// A socket, a pipe or a character device.
    Other,
}

/// The identity of a file or directory: two paths with the same identity lead to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device of its file system.
    pub device: DeviceNumber,
    /// Its number there.
    pub inode: u64,
}

/// The result of a look at a path. The path answered in time, so a mount there is alive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathLook {
    /// The path.
    pub path: PathBuf,
    /// Its kind, as seen through the topmost mount.
    pub kind: PathKind,
    /// Its permissions, without the bits of its kind.
    pub mode: u32,
    /// The identity of the file in its file system. `None` if it is absent.
    pub file: Option<FileId>,
    /// The mounts there.
    pub mounts: MountsAt,
}

/// The mounts that a look found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a look is read at once and not kept")]
pub enum MountsAt {
    /// The kernel was asked for the path alone: the unique id of the mount that a process reaches there. `None` if the path is not a
    /// mount point.
    Unique(Option<UniqueMountId>),
    /// The mount table was read.
    Listed {
        /// The mount that contains the path. `None` if the process sees none above it.
        mount: Option<Mount>,
        /// The hidden mounts at exactly this path, which no path reaches.
        hidden: Vec<Mount>,
    },
}

impl PathLook {
    /// The entry of the table for a path. The rest is unknown to the table: [`PathKind::Absent`], mode 0 and no file.
    #[must_use]
    pub fn of(path: &Path, table: &MountTable) -> Self {
        let mounts = MountsAt::Listed {
            mount: table.visible_at(path).cloned(),
            hidden: table.hidden_at(path).into_iter().cloned().collect(),
        };
        Self { path: path.to_owned(), kind: PathKind::Absent, mode: 0, file: None, mounts }
    }

    /// Adds the unique id of the mount that contains the path, if the kernel provides it. It is not part of the table.
    pub fn set_unique_id(&mut self, unique_id: Option<UniqueMountId>) {
        if let MountsAt::Listed { mount: Some(mount), .. } = &mut self.mounts {
            mount.unique_id = unique_id;
        }
    }

    /// The identity of the mount whose mount point is the path.
    #[must_use]
    pub fn mounted(&self) -> Option<MountIdentity> {
        match &self.mounts {
            MountsAt::Unique(id) => id.map(MountIdentity::Unique),
            MountsAt::Listed { mount, .. } => {
                mount.as_ref().filter(|mount| mount.is_at(&self.path)).map(Mount::identity)
            }
        }
    }

    /// Whether the path leads to a directory at which nothing is mounted, and the other path to the same directory.
    #[must_use]
    pub fn is_bare_and_same_as(&self, other: &Self) -> bool {
        self.mounted().is_none() && self.file.is_some() && self.file == other.file
    }

    /// The mount that a process reaches instead, if one of the hidden mounts is this one. A look that did not read the table knows
    /// no hidden mounts.
    pub(super) fn covering(&self, is_this: impl Fn(&Mount) -> bool) -> Option<&Mount> {
        match &self.mounts {
            MountsAt::Listed { mount: Some(by), hidden } if hidden.iter().any(is_this) => Some(by),
            MountsAt::Listed { .. } | MountsAt::Unique(_) => None,
        }
    }
}

/// A look that failed. The path is then neither good nor absent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookError {
    /// The file system did not answer in time. Its thread keeps waiting.
    #[error(
        "{path} did not answer within {limit:?}: the server or helper behind its file system hangs or is gone; restart it, or \
         unmount the path with umount --lazy",
        path = path.display()
    )]
    Hung {
        /// The path.
        path: PathBuf,
        /// The time limit.
        limit: Duration,
    },
    /// The file system answers that it is dead.
    #[error(
        "the file system at {path} is dead: {reason}; unmount it (umount --lazy), and it is mounted again when it is next used",
        path = path.display()
    )]
    Dead {
        /// The path.
        path: PathBuf,
        /// The answer.
        reason: String,
    },
    /// The limit of hanging looks is reached; this look was not started.
    #[error(
        "{path} was not checked: {hanging} paths already hang, which is the limit; the first of them is {first}",
        path = path.display(),
        first = first.display()
    )]
    TooManyHang {
        /// The path.
        path: PathBuf,
        /// The number of paths that hang.
        hanging: usize,
        /// The path that has been hanging for the longest time.
        first: PathBuf,
    },
    /// The kernel refused, the path is not valid or not stable, or no thread could make the look.
    #[error("cannot look at {path}: {reason}", path = path.display())]
    Refused {
        /// The path.
        path: PathBuf,
        /// The refusal.
        reason: String,
    },
}

impl LookError {
    /// Whether the mount at the path is known to be dead or hung: it is not dispensed, and is set up again (VOL-07).
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        match self {
            Self::Hung { .. } | Self::Dead { .. } => true,
            Self::TooManyHang { .. } | Self::Refused { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_failed_names_the_path_and_what_to_do_v7_vol_07() {
        let path = PathBuf::from("/v");
        let hung = LookError::Hung { path: path.clone(), limit: Duration::from_secs(2) };
        let dead = LookError::Dead { path: path.clone(), reason: "not connected".into() };
        let many = LookError::TooManyHang { path: path.clone(), hanging: 16, first: "/w".into() };
        let refused = LookError::Refused { path, reason: "permission denied".into() };
        assert!(hung.is_dead() && dead.is_dead() && !many.is_dead() && !refused.is_dead());
        for (error, wanted) in [
            (hung, "/v did not answer within 2s"),
            (dead, "not connected; unmount it"),
            (many, "16 paths already hang, which is the limit; the first of them is /w"),
            (refused, "cannot look at /v: permission denied"),
        ] {
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}
