//! The shared state of the hosts of one machine: directories and locked files below [`MACHINE`]. A module, not an actor.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The directory shared by all root hosts of a machine. Every user may traverse it and none may list it: sockets of plugins
/// that run as other users are below.
pub const MACHINE: &str = "/run/callboard";

/// Every user may traverse it, only its owner may list it.
const PASSABLE: u32 = 0o711;
/// Only its owner has access.
const PRIVATE: u32 = 0o700;
const PAUSE: Duration = Duration::from_millis(5);

/// Creates a directory that every user may traverse, independent of the umask; false if it exists.
///
/// # Errors
/// When it cannot be created, for example without its parent.
pub fn make_passable(directory: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(PASSABLE).create(directory) {
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(PASSABLE)).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a private directory of this user, in a traversable one, which is created too if missing.
///
/// # Errors
/// When one of them cannot be created, or an existing one is not a directory that only this user may write to.
pub fn make_private(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        make_passable(parent)?;
    }
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(directory)?;
    let us = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != us || found.mode() & 0o022 != 0 {
        let reason = format!("it is no directory that only user {us} may write to; look at it and remove it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// A file that is locked until this is dropped or the process ends.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Locks an open file; `None` if another process keeps the lock for the whole timeout `timeout`.
    ///
    /// # Errors
    /// When the file system does not support locks.
    pub fn within(file: File, timeout: Duration) -> io::Result<Option<Self>> {
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self(file))),
                Err(Errno::WOULDBLOCK) if began.elapsed() < timeout => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    /// Unlocks explicitly. Closing the file descriptor is not enough: a child process before its exec has a copy.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "cannot unlock a file; its lock is released when it is closed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_private_directory_lies_in_one_that_others_may_pass_and_one_that_is_there_keeps_its_mode_sec_01() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("callboard");
        make_private(&parent.join("users")).unwrap();
        assert_eq!((mode(&parent), mode(&parent.join("users"))), (0o711, 0o700));
        fs::set_permissions(&parent, Permissions::from_mode(0o750)).unwrap();
        make_private(&parent.join("marks")).unwrap();
        make_private(&parent.join("users")).unwrap();
        assert_eq!((mode(&parent), mode(&parent.join("marks"))), (0o750, 0o700));
        assert!(!make_passable(&parent).unwrap());
    }

    #[test]
    fn what_others_may_write_to_or_is_no_directory_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        make_private(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o720)).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(root.path(), &link).unwrap();
        for refused in [open, link] {
            let refused = make_private(&refused).unwrap_err().to_string();
            assert!(refused.contains("look at it and remove it"), "{refused}");
        }
        assert_eq!(
            make_private(&root.path().join("not/there/yet")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_lock_is_one_ones_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let open = || File::create(root.path().join("lock")).unwrap();
        let first = Locked::within(open(), Duration::ZERO).unwrap().expect("it is free");
        assert!(Locked::within(open(), Duration::from_millis(20)).unwrap().is_none());
        drop(first);
        assert!(Locked::within(open(), Duration::ZERO).unwrap().is_some());
    }
}
