//! Makes and removes directories and empty files, one name at a time below the descriptor of its parent (V6, V7).

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use super::kernel::{ids, kind};
use crate::datadir;

use super::{Made, MountId, PathKind, Place, PlaceError};

/// The mode of a directory that leads to a mount point: others may pass it, and not list it.
const PASSABLE: Mode = Mode::RWXU.union(Mode::XGRP).union(Mode::XOTH);
/// The number of times that making begins again, with the last path below it, because a directory on the way is removed meanwhile.
const RACES_MAX: usize = 10;
/// A file is opened only for its name.
const OPEN: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open file or directory on the mount of the base.
struct Entry {
    fd: OwnedFd,
    path: PathBuf,
    kind: PathKind,
    owner: u32,
    mode: Mode,
    bytes: u64,
}

/// The object that a name leads to.
enum Found {
    Absent,
    /// A mount point: the mount was not touched.
    Mounted,
    Entry(Entry),
}

/// Makes a mount point, and the directories above it.
pub(super) fn make_mount_point(place: &Place) -> Result<Made, PlaceError> {
    again_while_absent(place, |parent, _, name| Ok(parent.make(name, Mode::empty())?.map(|(made, _)| made)))
}

/// Makes the directories above a path, and looks at the path.
pub(super) fn make_parent(place: &Place) -> Result<Made, PlaceError> {
    again_while_absent(place, |parent, made, name| match parent.child(name)? {
        Found::Mounted => Ok(Some(Made::Mounted)),
        Found::Entry(Entry { kind: PathKind::Link, path, .. }) => Err(PlaceError::Link { path }),
        Found::Absent | Found::Entry(_) => Ok(Some(made)),
    })
}

/// Makes an empty file, and the directories above it.
pub(super) fn make_file(place: &Place) -> Result<Made, PlaceError> {
    again_while_absent(place, |parent, _, name| {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY;
        let path = parent.path.join(name);
        let made = match rustix::fs::openat(&parent.fd, name, flags, Mode::empty()) {
            Ok(_) => Made::New,
            Err(Errno::EXIST) => Made::AlreadyThere,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refused("make the file", &path, error)),
        };
        match parent.child(name)? {
            Found::Absent => Ok(None),
            Found::Mounted => Ok(Some(Made::Mounted)),
            Found::Entry(entry) => {
                entry.must_be(PathKind::File)?.must_be_ours()?;
                if entry.bytes != 0 {
                    return Err(PlaceError::NotEmpty { path });
                }
                entry.set_mode(Mode::empty())?;
                Ok(Some(made))
            }
        }
    })
}

/// Makes the directories above a place, then its last name. `last` receives whether the directory above is new, and answers `None` if its
/// parent is gone.
fn again_while_absent(
    place: &Place,
    last: impl Fn(&Entry, Made, &str) -> Result<Option<Made>, PlaceError>,
) -> Result<Made, PlaceError> {
    datadir::check(place.base()).map_err(|lost| failed("make", &place.path(), &io::Error::other(lost)))?;
    for _ in 0..RACES_MAX {
        let (name, above) = place.names().split_last().expect("a place has at least one name");
        let mut parent = Some((Entry::base(place.base())?, Made::AlreadyThere));
        for name in above {
            let Some((at, _)) = parent else { break };
            parent = match at.make(name, PASSABLE)? {
                None => None,
                Some((made, Some(entry))) => Some((entry, made)),
                Some((_, None)) => return Err(PlaceError::Mounted { path: at.path.join(name) }),
            };
        }
        let made = parent.map(|(parent, made)| last(&parent, made, name));
        if let Some(made) = made.transpose()?.flatten() {
            return Ok(made);
        }
    }
    let reason = "directories above it are removed again and again; try again later".to_owned();
    Err(PlaceError::Refused { attempt: "make", path: place.path(), reason })
}

/// Removes a place if it is empty and ours, and the empty directories above it, except those that are kept.
pub(super) fn remove(place: &Place) -> Result<Vec<PathBuf>, PlaceError> {
    let mut parents = vec![Entry::base(place.base())?];
    let (last, above) = place.names().split_last().expect("a place has at least one name");
    for name in above {
        let parent = &parents[parents.len() - 1];
        match parent.child(name)? {
            Found::Absent => break,
            Found::Mounted => return Err(PlaceError::Mounted { path: parent.path.join(name) }),
            Found::Entry(entry) => {
                entry.must_be(PathKind::Directory)?;
                parents.push(entry);
            }
        }
    }
    let mut removed = Vec::new();
    if parents.len() == place.names().len() {
        removed.extend(parents[parents.len() - 1].remove(last)?);
    }
    // The kernel decides whether a directory is empty. A directory that stays is used by another place, or is not ours.
    for (parent, name) in parents.iter().zip(place.names()).take(parents.len() - 1).skip(place.kept()).rev() {
        match parent.remove(name) {
            Ok(Some(path)) => removed.push(path),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    Ok(removed)
}

impl Entry {
    /// Opens the base by its path, which the operator has configured.
    fn base(path: &Path) -> Result<Self, PlaceError> {
        let flags = OPEN.difference(OFlags::NOFOLLOW) | OFlags::DIRECTORY;
        let fd = datadir::enter(path, flags).map_err(|error| failed("open", path, &error))?;
        Self::of(fd, path.to_owned())
    }

    fn of(fd: OwnedFd, path: PathBuf) -> Result<Self, PlaceError> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let facts = rustix::fs::statx(&fd, "", flags, StatxFlags::BASIC_STATS)
            .map_err(|error| refused("look at", &path, error))?;
        let mode = Mode::from_raw_mode(facts.stx_mode.into());
        Ok(Self { fd, path, kind: kind(&facts), owner: facts.stx_uid, mode, bytes: facts.stx_size })
    }

    /// The object that a name in this directory leads to. Neither a link nor a mount is followed.
    fn child(&self, name: &str) -> Result<Found, PlaceError> {
        let path = self.path.join(name);
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_XDEV
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS;
        let opened = match rustix::fs::openat2(&self.fd, name, OPEN, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => return self.child_by_mount_id(name),
            opened => opened,
        };
        match opened {
            Ok(fd) => Self::of(fd, path).map(Found::Entry),
            Err(Errno::NOENT) => Ok(Found::Absent),
            Err(Errno::XDEV) => Ok(Found::Mounted),
            Err(error) => Err(refused("open", &path, error)),
        }
    }

    /// [`child`](Self::child) for a kernel without `openat2`.
    fn child_by_mount_id(&self, name: &str) -> Result<Found, PlaceError> {
        let path = self.path.join(name);
        let fd = match rustix::fs::openat(&self.fd, name, OPEN, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(Found::Absent),
            Err(error) => return Err(refused("open", &path, error)),
        };
        match (mount_of(&self.fd, &self.path)?, mount_of(&fd, &path)?) {
            (Some(ours), Some(its)) if ours == its => Self::of(fd, path).map(Found::Entry),
            (Some(_), Some(_)) => Ok(Found::Mounted),
            _ => {
                let reason =
                    "the kernel says neither by openat2 nor by statx whether something is mounted there; \
                              Linux 5.8 or later does"
                        .to_owned();
                Err(PlaceError::Refused { attempt: "look at", path, reason })
            }
        }
    }

    /// Makes a directory in this one, or takes one of ours that is there, and sets its mode. `None` if this one has been removed. For a
    /// mount point there is no entry.
    fn make(&self, name: &str, mode: Mode) -> Result<Option<(Made, Option<Self>)>, PlaceError> {
        let made = match rustix::fs::mkdirat(&self.fd, name, mode) {
            Ok(()) => Made::New,
            Err(Errno::EXIST) => Made::AlreadyThere,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refused("make the directory", &self.path.join(name), error)),
        };
        match self.child(name)? {
            Found::Absent => Ok(None),
            Found::Mounted => Ok(Some((Made::Mounted, None))),
            Found::Entry(entry) => {
                entry.must_be(PathKind::Directory)?.must_be_ours()?;
                // The owner may have closed an existing directory on the way; a bare mount point is always closed.
                if made == Made::New || mode.is_empty() {
                    entry.set_mode(mode)?;
                }
                Ok(Some((made, Some(entry))))
            }
        }
    }

    /// Removes a directory or file in this one, if it is empty, ours and no mount point. `None` if it is not there.
    fn remove(&self, name: &str) -> Result<Option<PathBuf>, PlaceError> {
        let path = self.path.join(name);
        let entry = match self.child(name)? {
            Found::Absent => return Ok(None),
            Found::Mounted => return Err(PlaceError::Mounted { path }),
            Found::Entry(entry) => entry,
        };
        entry.must_be_ours()?;
        let flags = match entry.kind {
            PathKind::File if entry.bytes != 0 => return Err(PlaceError::NotEmpty { path }),
            PathKind::File => AtFlags::empty(),
            _ => {
                entry.must_be(PathKind::Directory)?;
                AtFlags::REMOVEDIR
            }
        };
        match rustix::fs::unlinkat(&self.fd, name, flags) {
            Ok(()) => Ok(Some(path)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(PlaceError::NotEmpty { path }),
            Err(Errno::BUSY) => Err(PlaceError::Mounted { path }),
            Err(error) => Err(refused("remove", &path, error)),
        }
    }

    fn must_be(&self, wanted: PathKind) -> Result<&Self, PlaceError> {
        let path = || self.path.clone();
        match self.kind {
            found if found == wanted => Ok(self),
            PathKind::Link => Err(PlaceError::Link { path: path() }),
            found => Err(PlaceError::WrongKind { path: path(), found: word(found), wanted: word(wanted) }),
        }
    }

    fn must_be_ours(&self) -> Result<&Self, PlaceError> {
        if self.owner == rustix::process::geteuid().as_raw() {
            return Ok(self);
        }
        // The owner of a link does not matter: the error is that it is a link.
        self.must_be(if self.kind == PathKind::Link { PathKind::Directory } else { self.kind })?;
        Err(PlaceError::Foreign { path: self.path.clone(), owner: self.owner })
    }

    /// Sets the mode of exactly this file, even if its name leads elsewhere now, unless it has that mode already.
    fn set_mode(&self, mode: Mode) -> Result<(), PlaceError> {
        if self.mode == mode {
            return Ok(());
        }
        let this = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        rustix::fs::chmod(this, mode).map_err(|error| refused("set the mode of", &self.path, error))
    }
}

fn mount_of(fd: &OwnedFd, path: &Path) -> Result<Option<MountId>, PlaceError> {
    let found = ids(fd.as_fd()).map_err(|error| refused("look at", path, error))?;
    Ok(found.map(|(id, _)| id))
}

const fn word(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Absent => "absent",
        PathKind::Directory => "a directory",
        PathKind::File => "a file",
        PathKind::BlockDevice(_) => "a block device",
        PathKind::Link => "a symbolic link",
        PathKind::Other => "a socket, pipe or character device",
    }
}

fn refused(attempt: &'static str, path: &Path, error: Errno) -> PlaceError {
    failed(attempt, path, &error.into())
}

fn failed(attempt: &'static str, path: &Path, error: &io::Error) -> PlaceError {
    PlaceError::Refused { attempt, path: path.to_owned(), reason: error.to_string() }
}
