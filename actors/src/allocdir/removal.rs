//! Removes the directories of a task: by file descriptor, never across a mount point or symlink (T050, TH060).

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, StatxFlags};
use rustix::io::Errno;

use super::TaskNames;
use super::error::{AllocDirError, Left, NAMED_MAX};
use super::roots::AllocDirs;
use super::tree::Dir;

/// The limit of nested open directories; deeper ones are moved up first, so that neither stack nor file descriptors run out.
const DEPTH_MAX: usize = 32;
/// How many entries of a directory are read before they are removed.
const BATCH: usize = 1_024;
/// How many entries of one directory may fail before the attempt ends.
const REFUSED_MAX: usize = 4_096;

impl AllocDirs {
    /// Removes the directory of a task and its mounts, and with the last task the allocation. Idempotent. It must not run.
    ///
    /// # Errors
    /// [`AllocDirError::Left`] with what is left and why. If there is still a mount below, nothing is removed.
    pub fn remove(&self, names: &TaskNames) -> Result<(), AllocDirError> {
        self.release(names)?;
        let layout = self.layout(names);
        Self::still_mounted(&layout.mounts_dir)?;
        let (root, mounts) = (self.opened(&self.root)?, self.opened(&self.mounts)?);
        match rustix::fs::unlinkat(mounts.fd(), names.joined(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(AllocDirError::refused("remove", &layout.mounts_dir)(error)),
        }
        let Some(allocation) = root.open_if_there(names.allocation.as_str())? else { return Ok(()) };
        Self::still_mounted(&layout.task_dir)?;
        remove_tree(&allocation, names.task.as_str())?;
        let all = self.list()?;
        let others = all.iter().find(|(allocation, _)| allocation == names.allocation.as_str());
        if others.is_some_and(|(_, tasks)| !tasks.is_empty()) {
            return Ok(());
        }
        Self::still_mounted(&layout.allocation_dir)?;
        remove_tree(&root, names.allocation.as_str())
    }
}

fn remove_tree(parent: &Dir, name: &str) -> Result<(), AllocDirError> {
    let path = parent.path.join(name);
    let Some(known) = parent.look(name)? else { return Ok(()) };
    let refused = |error| AllocDirError::refused("remove", &path)(error);
    if known.kind != FileType::Directory {
        return rustix::fs::unlinkat(parent.fd(), name, AtFlags::empty()).map_err(refused);
    }
    let top = parent.open(name)?;
    if top.known.mount != parent.known.mount {
        return Err(AllocDirError::Mounted { path, found: "something".to_owned() });
    }
    let device = (top.known.device, top.known.mount);
    let mut removal = Removal { top: top.fd(), place: device, moved: 0, left: Vec::new(), more: 0 };
    let is_empty = removal.empty(top.fd(), &path, 0);
    let Removal { left, more, .. } = removal;
    if !is_empty {
        return Err(AllocDirError::Left { path, left, more });
    }
    rustix::fs::unlinkat(parent.fd(), name, AtFlags::REMOVEDIR).map_err(refused)
}

struct Removal<'a> {
    top: BorrowedFd<'a>,
    /// Device and mount id of everything that may be removed.
    place: ((u32, u32), u64),
    moved: u64,
    left: Vec<Left>,
    more: usize,
}

/// Why something was not removed; `None` if the problem in it was reported already.
type Refusal = Option<String>;

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

impl Removal<'_> {
    /// Removes everything in a directory, as far as possible. Returns whether it is empty.
    fn empty(&mut self, dir: BorrowedFd<'_>, path: &Path, depth: usize) -> bool {
        let mut refused: BTreeSet<CString> = BTreeSet::new();
        loop {
            let names = match batch(dir, &refused) {
                Ok(names) => names,
                Err(error) => {
                    self.tell(path.to_owned(), format!("cannot be read: {error}"));
                    return false;
                }
            };
            if names.is_empty() {
                return refused.is_empty();
            }
            for name in names {
                let inner = path.join(OsStr::from_bytes(name.to_bytes()));
                if let Err(reason) = self.remove(dir, &name, &inner, depth) {
                    if let Some(reason) = reason {
                        self.tell(inner, reason);
                    }
                    refused.insert(name);
                }
            }
            if refused.len() > REFUSED_MAX {
                return false;
            }
        }
    }

    fn tell(&mut self, path: PathBuf, reason: String) {
        if self.left.len() < NAMED_MAX {
            self.left.push(Left { path, reason });
        } else {
            self.more += 1;
        }
    }

    fn remove(&mut self, dir: BorrowedFd<'_>, name: &CStr, path: &Path, depth: usize) -> Result<(), Refusal> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let kind = match self.kind(dir, name, flags) {
            Ok(kind) => kind,
            Err(reason) => return reason.map_or(Ok(()), |reason| Err(Some(reason))),
        };
        if kind != FileType::Directory {
            return unlink(dir, name, AtFlags::empty());
        }
        let child = open(dir, name)?;
        // The name may refer to another directory by now (race).
        if let Err(Some(reason)) = self.kind(child.as_fd(), c"", AtFlags::EMPTY_PATH) {
            return Err(Some(reason));
        }
        if depth >= DEPTH_MAX {
            return self.move_up(dir, name);
        }
        if !self.empty(child.as_fd(), path, depth + 1) {
            return Err(None);
        }
        unlink(dir, name, AtFlags::REMOVEDIR)
    }

    /// The file type of an entry. `Err(None)` if it does not exist, `Err(Some)` if it is on another mount or device.
    fn kind(&self, dir: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> Result<FileType, Refusal> {
        let found = match rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Err(None),
            Err(error) => return Err(Some(format!("cannot be looked at: {error}"))),
        };
        if ((found.stx_dev_major, found.stx_dev_minor), found.stx_mnt_id) != self.place {
            return Err(Some("it is mounted, or of another file system, and is not entered".to_owned()));
        }
        Ok(FileType::from_raw_mode(found.stx_mode.into()))
    }

    /// Moves a directory that is too deep to the top, where it is found again.
    fn move_up(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Refusal> {
        loop {
            self.moved += 1;
            let to = format!(".removed-{}", self.moved);
            match rustix::fs::renameat_with(dir, name, self.top, to, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Some(format!("lies too deep and cannot be moved up: {error}"))),
            }
        }
    }
}

/// Entries of a directory without those that failed.
fn batch(dir: BorrowedFd<'_>, refused: &BTreeSet<CString>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let name = entry?.file_name().to_owned();
        let is_itself = name.as_c_str() == c"." || name.as_c_str() == c"..";
        if !is_itself && !refused.contains(&name) {
            names.push(name);
        }
        if names.len() >= BATCH {
            break;
        }
    }
    Ok(names)
}

/// Opens a directory; adds permissions first if its owner has removed them.
fn open(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Refusal> {
    let opened = rustix::fs::openat(dir, name, OPEN, Mode::empty());
    let child = match opened {
        Err(Errno::ACCESS) => {
            let path_only = OPEN.difference(OFlags::NONBLOCK).union(OFlags::PATH);
            let held = rustix::fs::openat(dir, name, path_only, Mode::empty()).map_err(not_opened)?;
            rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)
                .map_err(not_opened)?;
            rustix::fs::openat(dir, name, OPEN, Mode::empty()).map_err(not_opened)?
        }
        other => other.map_err(not_opened)?,
    };
    let mode = rustix::fs::fstat(&child).map(|found| found.st_mode & 0o700).unwrap_or(0o700);
    if mode != 0o700 {
        // If it fails, so does the open, and that is reported.
        let _ = rustix::fs::fchmod(&child, Mode::RWXU);
    }
    Ok(child)
}

fn not_opened(error: Errno) -> Refusal {
    Some(format!("cannot be opened: {error}"))
}

fn unlink(dir: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> Result<(), Refusal> {
    match rustix::fs::unlinkat(dir, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::PERM) => Err(Some("may not be removed; it may be immutable: see lsattr".to_owned())),
        Err(Errno::NOTEMPTY) => Err(Some("another process writes into it".to_owned())),
        Err(error) => Err(Some(error.to_string())),
    }
}
