//! The directory in which a task runs.
//!
//! A host closes its directories to other users, and with them the path to the directory of a task that runs as another user.
//! So such a task starts through a file descriptor of its directory, and no directory above it has to be opened. In its
//! directory the task may create and remove its own files, but not the driver's: it does not own the directory, which has the
//! sticky bit.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::record::{TaskContext, TaskUser};

/// The permissions of others.
const OTHERS: u32 = 0o007;
/// The permissions for the group of the task's user: everything except to remove files of other users.
const GROUP_STICKY: u32 = 0o1070;

/// The directory of a task, for a process of the task to start in.
#[derive(Debug)]
pub(super) struct TaskDirectory {
    path: PathBuf,
    /// The descriptor in the path.
    _held: Option<File>,
}

impl TaskDirectory {
    /// Opens the directory of a task, and gives the task's user access to one that only root could enter.
    pub(super) fn open(context: &TaskContext) -> io::Result<Self> {
        match &context.user {
            Some(user) if rustix::process::geteuid().is_root() => Self::of_user(&context.directory, user),
            Some(_) | None => Ok(Self { path: context.directory.clone(), _held: None }),
        }
    }

    fn of_user(path: &Path, user: &TaskUser) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let flags = i32::try_from(flags.bits()).expect("the flags have small values");
        let held = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = held.metadata()?;
        if found.uid() != user.uid && found.mode() & OTHERS != OTHERS {
            fchown(&held, None, Some(user.gid))?;
            held.set_permissions(Permissions::from_mode(found.mode() & 0o7777 | GROUP_STICKY))?;
        }
        // The new process has the descriptor until it execs.
        Ok(Self { path: format!("/proc/self/fd/{}", held.as_raw_fd()).into(), _held: Some(held) })
    }

    /// The path by which a child of this process reaches it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
