//! The claim of a host to the place of an admin socket: a lock on a file beside it, `<place>.lock` (SEC-02).
//!
//! A socket is dead if it refuses a connection. A socket that is bound but does not listen yet also refuses connections, and another host
//! may put its own socket there between the look at a socket and its removal. Therefore a host changes a place only while it holds the
//! claim, and it holds the claim as long as its socket is there. The kernel ends the claim of a killed host; the next host takes over the
//! file.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::machine::Locked;
use rustix::fs::{Mode, OFlags};

/// How long to wait for a claim: a process that a killed host was just starting has a copy of the lock for an instant.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How often the file may vanish, by hosts that end, while it is being locked.
const ATTEMPTS: u32 = 16;

/// A place that is claimed until this value is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    path: PathBuf,
    locked: Locked,
}

impl Claim {
    /// Claims a place. `None` if another host has claimed it.
    ///
    /// # Errors
    /// When the file cannot be made or locked, or the existing file is not a lock of a host.
    pub(super) fn take(place: &Path) -> io::Result<Option<Self>> {
        let path = lock_of(place);
        for _ in 0..ATTEMPTS {
            let file = open(&path)?;
            let Some(locked) = Locked::within(file, TIMEOUT)? else { return Ok(None) };
            // A host that ended during the wait has removed the file; a lock on the removed file claims nothing.
            if is_at(&path, locked.file())? {
                return Ok(Some(Self { path, locked }));
            }
        }
        Ok(None)
    }
}

impl Drop for Claim {
    /// Removes the file while it is still locked, unless another file has taken its place.
    fn drop(&mut self) {
        let removed = match is_at(&self.path, self.locked.file()) {
            Ok(true) => std::fs::remove_file(&self.path),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the lock of the admin socket");
        }
    }
}

/// Whether this file is the file at this path.
fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let own = file.metadata()?;
    let found = std::fs::symlink_metadata(path);
    Ok(found.is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino())))
}

/// The file that is locked for a place.
pub(super) fn lock_of(place: &Path) -> PathBuf {
    let mut path = OsString::from(place);
    path.push(".lock");
    path.into()
}

/// Opens the file, and creates it if it does not exist. A file that belongs to another user or has contents is not a lock of a host, and is
/// left alone.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let found = file.metadata()?;
    if found.is_file() && found.len() == 0 && found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a lock of a host of this user"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_claimed_by_one_at_a_time_and_nothing_is_left_of_a_claim() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.sock");
        let claim = Claim::take(&place).expect("it can be locked").expect("it is free");
        assert!(Claim::take(&place).expect("it can be locked").is_none());
        drop(claim);
        assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
        assert!(Claim::take(&place).expect("it can be locked").is_some());
    }

    #[test]
    fn a_lock_that_took_the_place_of_a_removed_one_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.sock");
        let first = Claim::take(&place).expect("it can be locked").expect("it is free");
        std::fs::remove_file(lock_of(&place)).expect("a clean-up removes it");
        let second = Claim::take(&place).expect("it can be locked").expect("this one is free");
        drop(first);
        assert!(lock_of(&place).exists(), "it is the second one's");
        drop(second);
        assert!(!lock_of(&place).exists());
    }

    #[test]
    fn the_lock_that_a_killed_host_has_left_is_taken_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.sock");
        std::fs::write(lock_of(&place), "").expect("it is written");
        assert!(Claim::take(&place).expect("it can be locked").is_some());
    }

    #[test]
    fn a_lock_on_a_file_that_was_removed_meanwhile_claims_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.sock");
        let taken = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(Some(claim)) = Claim::take(&place) else { continue };
                        assert_eq!(
                            taken.fetch_add(1, std::sync::atomic::Ordering::SeqCst),
                            0,
                            "one at a time"
                        );
                        taken.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(claim);
                    }
                });
            }
        });
    }

    #[test]
    fn what_is_no_lock_of_a_host_is_refused_and_not_touched() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("a.sock");
        let (lock, file) = (lock_of(&place), directory.path().join("precious"));
        std::fs::write(&lock, "data").expect("it is written");
        let error = Claim::take(&place).expect_err("it has contents");
        assert!(error.to_string().contains("not a lock of a host"), "{error}");
        assert_eq!(std::fs::read_to_string(&lock).expect("it is there"), "data");
        std::fs::remove_file(&lock).expect("it is ours");
        std::fs::write(&file, "").expect("it is written");
        std::os::unix::fs::symlink(&file, &lock).expect("a link");
        assert!(Claim::take(&place).is_err(), "a link is not followed");
        assert!(file.exists() && lock.is_symlink());
    }
}
