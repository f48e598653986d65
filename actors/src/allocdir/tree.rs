//! Directories held open by file descriptor, so that no path is resolved twice: the only way to descend a tree here.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Statx, StatxFlags, Uid};
use rustix::io::Errno;

use super::error::AllocDirError;
use crate::datadir;
use crate::users::POOL;

/// The owner of a directory: user id and group id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The desired state of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) mode: u32,
    /// `None` leaves it to the creator.
    pub(super) owner: Option<Owner>,
    pub(super) accepted: &'a Accepted,
}

/// The accepted owners of existing directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) users: BTreeSet<u32>,
    /// Also any dynamic user: an earlier run of the task may have had another one.
    pub(super) dynamic: bool,
}

impl Accepted {
    fn contains(&self, uid: u32) -> bool {
        self.users.contains(&uid) || (self.dynamic && POOL.contains(&uid))
    }
}

/// The kernel's facts about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) owner: Owner,
    pub(super) device: (u32, u32),
    pub(super) inode: u64,
    pub(super) mount: u64,
}

/// An open directory, and its path for messages.
#[derive(Debug)]
pub(super) struct Dir {
    fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) known: Known,
}

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

impl Dir {
    /// Opens a directory by its path, following symlinks outside of the data directory: only for paths that the operator has configured.
    pub(super) fn named(path: &Path) -> Result<Self, AllocDirError> {
        let flags = OPEN.difference(OFlags::NOFOLLOW);
        let fd = datadir::enter(path, flags).map_err(AllocDirError::refused("open", path))?;
        Self::of(fd, path.to_owned())
    }

    fn of(fd: OwnedFd, path: PathBuf) -> Result<Self, AllocDirError> {
        let known =
            known(fd.as_fd(), "", AtFlags::EMPTY_PATH).map_err(AllocDirError::refused("look at", &path))?;
        Ok(Self { fd, path, known })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A path that refers to exactly this open directory, for calls that accept only paths.
    pub(super) fn magic_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// The entry of this name, without following a symlink; the mount on it if there is one.
    pub(super) fn look(&self, name: &str) -> Result<Option<Known>, AllocDirError> {
        match known(self.fd(), name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT) {
            Ok(known) => Ok(Some(known)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(AllocDirError::refused("look at", &self.path.join(name))(error)),
        }
    }

    /// Opens a subdirectory, which may be a mount point.
    pub(super) fn open(&self, name: &str) -> Result<Self, AllocDirError> {
        let path = self.path.join(name);
        match rustix::fs::openat(self.fd(), name, OPEN, Mode::empty()) {
            Ok(fd) => Self::of(fd, path),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let found = self.look(name)?.map_or("nothing", |known| kind_word(known.kind));
                Err(AllocDirError::NotADirectory { path, found })
            }
            Err(error) => Err(AllocDirError::refused("open", &path)(error)),
        }
    }

    /// Like [`open`](Self::open); `None` if it does not exist.
    pub(super) fn open_if_there(&self, name: &str) -> Result<Option<Self>, AllocDirError> {
        if self.look(name)?.is_none() { Ok(None) } else { self.open(name).map(Some) }
    }

    /// Creates a subdirectory, or reuses an existing one if its owner is accepted; sets its mode and owner.
    pub(super) fn make(&self, name: &str, wanted: &Wanted<'_>) -> Result<Self, AllocDirError> {
        let dir = self.make_or_mounted(name, wanted)?;
        if dir.known.mount != self.known.mount {
            return Err(AllocDirError::Mounted { path: dir.path, found: "something".to_owned() });
        }
        Ok(dir)
    }

    /// Like [`make`](Self::make); but it may be a mount point, and then the mounted directory is returned.
    pub(super) fn make_or_mounted(&self, name: &str, wanted: &Wanted<'_>) -> Result<Self, AllocDirError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(self.fd(), name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(AllocDirError::refused("make the directory", &path)(error)),
        }
        let dir = self.open(name)?;
        if !wanted.accepted.contains(dir.known.owner.uid) {
            return Err(AllocDirError::Foreign { path: dir.path, owner: dir.known.owner.uid });
        }
        dir.become_wanted(wanted)?;
        Ok(dir)
    }

    pub(super) fn become_wanted(&self, wanted: &Wanted<'_>) -> Result<(), AllocDirError> {
        if let Some(owner) = wanted.owner.filter(|owner| *owner != self.known.owner) {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::fchown(self.fd(), Some(uid), Some(gid)).map_err(AllocDirError::refused(
                format!("give user {} the directory", owner.uid),
                &self.path,
            ))?;
        }
        if self.known.mode != wanted.mode {
            rustix::fs::fchmod(self.fd(), Mode::from_raw_mode(wanted.mode))
                .map_err(AllocDirError::refused(format!("give mode {:o} to", wanted.mode), &self.path))?;
        }
        Ok(())
    }

    /// Whether the two are the same directory, even through different mounts.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (self.known.device, self.known.inode) == (other.known.device, other.known.inode)
    }
}

pub(super) const fn kind_word(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a link",
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}

fn known(at: BorrowedFd<'_>, name: &str, flags: AtFlags) -> Result<Known, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let found: Statx = rustix::fs::statx(at, name, flags, wanted)?;
    let raw_mode = u32::from(found.stx_mode);
    Ok(Known {
        kind: FileType::from_raw_mode(raw_mode),
        mode: raw_mode & 0o7777,
        owner: Owner { uid: found.stx_uid, gid: found.stx_gid },
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        mount: found.stx_mnt_id,
    })
}
