//! The directory in which a task runs.
//!
//! A host closes what it keeps to everybody else, and with it the way to the directory of a task that runs as another user. So
//! such a task starts through a descriptor of its directory: it is there without having walked there, and nothing on the way
//! has to be opened. In its directory it may make and remove what is its own. What the driver keeps there stays out of its
//! hands: the directory is not its property and has the sticky bit.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::record::{TaskContext, TaskUser};

/// Who may do everything in a directory because it is anybody.
const OTHERS: u32 = 0o007;
/// What the group of a task's user may do there: everything but to remove what is of others.
const GROUP_STICKY: u32 = 0o1070;

/// The directory of a task, ready for a process of the task to start in.
#[derive(Debug)]
pub(super) struct TaskDirectory {
    path: PathBuf,
    /// What the path leads through.
    _held: Option<File>,
}

impl TaskDirectory {
    /// Opens the directory of a task, and lets the task's user in where only root could.
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
        // Among the descriptors of the new process until that becomes the program.
        Ok(Self { path: format!("/proc/self/fd/{}", held.as_raw_fd()).into(), _held: Some(held) })
    }

    /// By which a new process of this one's gets there.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
