//! Removes the mounts of a task, by the mount table (T050, T202).

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use callboard_machines::allocdir::{SHARED, TaskNames};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::chroot;
use super::error::{AllocDirError, Left, NAMED_MAX};
use super::roots::AllocDirs;
use super::tree::Dir;
use crate::mounts::{Mount, mounts_of_this_process};

/// The pause between two attempts on a busy mount.
const PAUSE: Duration = Duration::from_millis(20);
/// The limit of stacked mounts on one mount point.
const STACKED_MAX: usize = 1_024;

impl AllocDirs {
    /// Unmounts the mounts of a task at the end of its last run; the next start mounts them again. Mounts of others stay.
    ///
    /// # Errors
    /// [`AllocDirError::Left`] when a mount is busy; retry later.
    pub fn release(&self, names: &TaskNames) -> Result<(), AllocDirError> {
        self.release_unveiled(names)?;
        let Some(allocation) = self.opened(&self.root)?.open_if_there(names.allocation.as_str())? else {
            return Ok(());
        };
        let Some(task) = allocation.open_if_there(names.task.as_str())? else { return Ok(()) };
        let mut places: Vec<Vec<&str>> = vec![vec![SHARED]];
        for shown in self.chroot.iter().rev() {
            places.extend(chroot::names(shown));
        }
        // A driver may have left the last two.
        places.extend(["secrets", "private", "dev", "proc"].map(|name| vec![name]));
        places.iter().try_for_each(|place| unmount_below(&task, place, self.timeout))
    }

    fn release_unveiled(&self, names: &TaskNames) -> Result<(), AllocDirError> {
        let (mounts, name) = (self.opened(&self.mounts)?, names.joined());
        if mounts.look(&name)?.is_none_or(|known| known.mount == mounts.known.mount) {
            return Ok(());
        }
        for inner in [SHARED, "secrets"] {
            let shown = mounts.open(&name)?;
            unmount(&shown, inner, self.timeout)?;
        }
        unmount(&mounts, &name, self.timeout)
    }

    /// Fails if there is a mount on a directory or below it.
    pub(super) fn still_mounted(place: &Path) -> Result<(), AllocDirError> {
        let table = mounts_of_this_process()
            .map_err(AllocDirError::refused("read", Path::new("/proc/self/mountinfo")))?;
        let mounts = table.at_or_below(place);
        if mounts.is_empty() {
            return Ok(());
        }
        let left = |mount: &&Mount| Left {
            path: mount.mount_point.clone(),
            reason: format!(
                "a {} is mounted on it that is not this host's; unmount it: umount {}",
                mount.fs_type,
                mount.mount_point.display()
            ),
        };
        let named: Vec<Left> = mounts.iter().take(NAMED_MAX).map(left).collect();
        Err(AllocDirError::Left { path: place.to_owned(), more: mounts.len() - named.len(), left: named })
    }
}

/// Unmounts a mount point some levels below a task's directory. Each component must be a directory of the same file system:
/// a symlink cannot redirect the unmount to the host.
fn unmount_below(task: &Dir, place: &[&str], timeout: Duration) -> Result<(), AllocDirError> {
    let Some((last, above)) = place.split_last() else { return Ok(()) };
    let mut parent = None;
    for name in above {
        let at: &Dir = parent.as_ref().unwrap_or(task);
        match at.open_if_there(name) {
            Ok(Some(next)) if next.known.mount == task.known.mount => parent = Some(next),
            Ok(_) | Err(AllocDirError::NotADirectory { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    unmount(parent.as_ref().unwrap_or(task), last, timeout)
}

/// Unmounts everything on one name in a directory, the topmost first.
pub(super) fn unmount(parent: &Dir, name: &str, timeout: Duration) -> Result<(), AllocDirError> {
    // The directory is addressed by its file descriptor, and the last component is not followed if it is a symlink.
    let (target, path): (PathBuf, PathBuf) = (parent.magic_path().join(name), parent.path.join(name));
    let began = Instant::now();
    for _ in 0..STACKED_MAX {
        let is_mounted = parent.look(name)?.is_some_and(|known| known.mount != parent.known.mount);
        if !is_mounted {
            return Ok(());
        }
        match rustix::mount::unmount(&target, UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
            Err(Errno::BUSY) if began.elapsed() < timeout => thread::sleep(PAUSE),
            Err(Errno::BUSY) => {
                let reason = "a process still uses it; it is unmounted when that is gone".to_owned();
                return Err(AllocDirError::Left {
                    left: vec![Left { path: path.clone(), reason }],
                    path,
                    more: 0,
                });
            }
            Err(error) => return Err(AllocDirError::refused("unmount", &path)(error)),
        }
    }
    let reason = "it cannot be unmounted, or another process mounts on it again and again".to_owned();
    Err(AllocDirError::Left { left: vec![Left { path: path.clone(), reason }], path, more: 0 })
}
