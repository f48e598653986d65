//! The roots of all task directories, and the privileges of this host for them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_machines::allocdir::{Layout, SHARED, TaskNames};

use super::error::AllocDirError;
use super::tree::{Accepted, Dir, Owner};
use crate::datadir;
use crate::users::accounts;

/// The default content of a chroot (T047).
pub const CHROOT: [&str; 9] =
    ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/run/resolvconf", "/sbin", "/usr", "/run/systemd/resolve"];
/// The mode of the two roots: every user may traverse them, and only the owner may list them (T040).
const ROOT_MODE: u32 = 0o711;
/// The default timeout for a busy unmount.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The directories of tasks below one root. Cheap to clone; holds no file descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocDirs {
    pub(super) root: PathBuf,
    pub(super) mounts: PathBuf,
    pub(super) chroot: Vec<PathBuf>,
    pub(super) timeout: Duration,
    /// The owner of directories that are open to everybody; `None` when this host is not root.
    pub(super) everybody: Option<(u32, u32)>,
}

impl AllocDirs {
    /// The directories below this root. Drivers with `unveil` isolation find their tasks below `mounts`. Both paths are
    /// absolute, and are created with mode 0711 if missing.
    ///
    /// As root this requires the user `nobody`.
    ///
    /// # Errors
    /// [`AllocDirError`] when the root cannot be created, or belongs to another user.
    pub fn open(root: impl Into<PathBuf>, mounts: impl Into<PathBuf>) -> Result<Self, AllocDirError> {
        let chroot = CHROOT.iter().map(PathBuf::from).collect();
        let (root, mounts) = (root.into(), mounts.into());
        let is_root = rustix::process::geteuid().is_root();
        let everybody = if is_root { Some(user_nobody()?) } else { None };
        let mut dirs = Self { root, mounts, chroot, timeout: TIMEOUT, everybody };
        for root in [dirs.root.clone(), dirs.mounts.clone()] {
            dirs.opened(&root)?;
        }
        // The mount table contains canonical paths only.
        for root in [&mut dirs.root, &mut dirs.mounts] {
            *root = root.canonicalize().map_err(AllocDirError::refused::<io::Error>("look at", root))?;
        }
        Ok(dirs)
    }

    /// Shows these paths of the host in tasks of drivers with `chroot` isolation, instead of [`CHROOT`]. Each is
    /// bind-mounted read-only; missing ones are skipped.
    #[must_use]
    pub fn with_chroot(self, chroot: Vec<PathBuf>) -> Self {
        Self { chroot, ..self }
    }

    /// The timeout for a busy unmount; 2 s by default.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The paths of a task.
    #[must_use]
    pub fn layout(&self, names: &TaskNames) -> Layout {
        Layout::of(&self.root, &self.mounts, names)
    }

    /// The names of the allocations that have a directory, and of the tasks in each.
    ///
    /// # Errors
    /// [`AllocDirError`] when the root cannot be read.
    pub fn list(&self) -> Result<Vec<(String, Vec<String>)>, AllocDirError> {
        let mut all = Vec::new();
        for allocation in directories(&self.root)? {
            let mut tasks = directories(&self.root.join(&allocation))?;
            tasks.retain(|task| task != SHARED);
            all.push((allocation, tasks));
        }
        Ok(all)
    }

    pub(super) fn opened(&self, root: &Path) -> Result<Dir, AllocDirError> {
        let made = datadir::enter_or_make(root, ROOT_MODE);
        made.map_err(AllocDirError::refused("make the directory", root))?;
        let dir = Dir::named(root)?;
        let us = rustix::process::geteuid().as_raw();
        if dir.known.owner.uid != us {
            return Err(AllocDirError::Foreign { path: root.to_owned(), owner: dir.known.owner.uid });
        }
        if dir.known.mode != ROOT_MODE {
            rustix::fs::fchmod(dir.fd(), rustix::fs::Mode::from_raw_mode(ROOT_MODE))
                .map_err(AllocDirError::refused("give mode 711 to", root))?;
        }
        Ok(dir)
    }

    pub(super) fn everybody(&self) -> Option<Owner> {
        self.everybody.map(|(uid, gid)| Owner { uid, gid })
    }

    /// The accepted owners of directories that only this host creates.
    pub(super) fn hosts(&self) -> Accepted {
        let us = rustix::process::geteuid().as_raw();
        let users: BTreeSet<u32> = std::iter::once(us).chain(self.everybody.map(|(uid, _)| uid)).collect();
        Accepted { users, dynamic: false }
    }
}

fn user_nobody() -> Result<(u32, u32), AllocDirError> {
    let found = accounts::user("nobody").map_err(|error| {
        AllocDirError::Name(format!("task directories belong to `nobody` when the host is root: {error}"))
    })?;
    Ok((found.uid, found.gid))
}

/// The names of the directories in one, sorted. Names that are not UTF-8 are not ours.
fn directories(path: &Path) -> Result<Vec<String>, AllocDirError> {
    let refused = |error| AllocDirError::refused::<io::Error>("list", path)(error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(refused)? {
        let entry = entry.map_err(|error| AllocDirError::refused::<io::Error>("list", path)(error))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}
