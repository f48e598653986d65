//! The dynamic users of all hosts of this machine, so that no two of them assign the same one (T116, TH070).
//!
//! A user is assigned before any process runs as it, so checking processes is not enough. All root hosts share one
//! directory, in which each user in use is a symlink to the book of its host: that host's own directory of reservations. A
//! host's own book has a user for as long as it is in use, across restarts of the host. So a symlink is valid as long as
//! that book has the user; if the book is gone, or no longer has the user, the symlink is stale.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::dynamic::DynamicUser;
use crate::machine::{Locked, make_private};

/// The default directory in which hosts of a machine record their users.
pub const MACHINE_USERS: &str = "/run/callboard/users";
/// The file that is locked during reads and writes.
const LOCK: &str = "lock";
/// The timeout for the lock: it is held only while a directory is read.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Whether a task of this process uses the directory. Other tasks wait for this flag, so that only one waits for other processes.
static IS_IN_USE: Mutex<bool> = Mutex::new(false);
static LET_GO: Condvar = Condvar::new();

/// The right of one task of this process to use the directory, until this is dropped.
#[derive(Debug)]
struct Turn;

impl Turn {
    /// Waits for it; `None` if it times out.
    fn within(timeout: Duration) -> Option<Self> {
        let is_in_use = IS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = LET_GO.wait_timeout_while(is_in_use, timeout, |is_in_use| *is_in_use);
        let (mut is_in_use, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *is_in_use = true;
        Some(Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *IS_IN_USE.lock().unwrap_or_else(PoisonError::into_inner) = false;
        LET_GO.notify_one();
    }
}

/// The locked directory. Dropping it releases it, the lock first.
#[derive(Debug)]
pub(super) struct MachineBook {
    directory: PathBuf,
    own: PathBuf,
    _lock: Locked,
    _turn: Turn,
}

impl MachineBook {
    /// Opens and locks it for the host with this book, which must exist.
    ///
    /// # Errors
    /// When the directory cannot be created or is accessible to others, or the lock times out.
    pub(super) fn open(directory: &Path, own: &Path) -> io::Result<Self> {
        Self::open_within(directory, own, LOCK_TIMEOUT)
    }

    fn open_within(directory: &Path, own: &Path, timeout: Duration) -> io::Result<Self> {
        let told = |error: io::Error| {
            let place = directory.display();
            let reason =
                format!("cannot use {place}, where the hosts of this machine keep their users: {error}");
            io::Error::new(error.kind(), reason)
        };
        let own = own.canonicalize()?;
        let began = Instant::now();
        let timed_out = |reason: String| told(io::Error::new(io::ErrorKind::TimedOut, reason));
        let Some(turn) = Turn::within(timeout) else {
            let reason = "other tasks of this host use it, and take long; see whether its disks are slow";
            return Err(timed_out(reason.to_owned()));
        };
        let lock = opened(directory).map_err(told)?;
        let left = timeout.saturating_sub(began.elapsed());
        let Some(lock) = Locked::within(lock, left).map_err(told)? else {
            return Err(timed_out(format!("another process holds its file `{LOCK}`; see who: fuser -v")));
        };
        Ok(Self { directory: directory.to_owned(), own, _lock: lock, _turn: turn })
    }

    /// The users of other hosts.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn of_others(&self) -> io::Result<BTreeSet<DynamicUser>> {
        let entries = self.entries()?.into_iter();
        Ok(entries
            .filter(|(user, book)| !self.is_own(book) && has(book, *user))
            .map(|(user, _)| user)
            .collect())
    }

    /// The recorded users of this host.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn of_this_host(&self) -> io::Result<BTreeSet<DynamicUser>> {
        let entries = self.entries()?.into_iter();
        Ok(entries.filter(|(_, book)| self.is_own(book)).map(|(user, _)| user).collect())
    }

    /// Records a user of this host, which no other host has.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn note(&self, user: DynamicUser) -> io::Result<()> {
        let link = self.link(user);
        if fs::read_link(&link).is_ok_and(|book| book == self.own) {
            return Ok(());
        }
        remove(&link)?;
        symlink(&self.own, &link)
    }

    /// Removes the record of a user of this host. A record of another host stays.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn forget(&self, user: DynamicUser) -> io::Result<()> {
        let link = self.link(user);
        if fs::read_link(&link).is_ok_and(|book| self.is_own(&book)) { remove(&link) } else { Ok(()) }
    }

    fn link(&self, user: DynamicUser) -> PathBuf {
        self.directory.join(user.number().to_string())
    }

    /// The recorded users, and the book of each.
    fn entries(&self) -> io::Result<Vec<(DynamicUser, PathBuf)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A file that is not a symlink is not ours, and names no book.
            if let (Some(number), Ok(book)) = (number, fs::read_link(entry.path())) {
                all.push((DynamicUser::new(number), book));
            }
        }
        Ok(all)
    }

    /// Whether a book is that of this host, also under another path.
    fn is_own(&self, book: &Path) -> bool {
        let file = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        book == self.own || (file(book).is_some() && file(book) == file(&self.own))
    }
}

/// Whether a book has a user. True if it cannot be read.
fn has(book: &Path, user: DynamicUser) -> bool {
    match fs::symlink_metadata(book.join(user.number().to_string())) {
        Ok(_) => true,
        Err(error) => ![io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()),
    }
}

fn remove(link: &Path) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn opened(directory: &Path) -> io::Result<File> {
    make_private(directory)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(directory.join(LOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_waits_too_long_learns_whether_its_own_host_or_another_process_is_in_the_way() {
        let root = tempfile::tempdir().unwrap();
        let (machine, own) = (root.path().join("machine"), root.path().join("own"));
        fs::create_dir(&own).unwrap();
        let refused = || {
            let opened = MachineBook::open_within(&machine, &own, Duration::from_millis(20));
            opened.unwrap_err().to_string()
        };
        let first = MachineBook::open(&machine, &own).unwrap();
        let told = refused();
        assert!(told.contains("other tasks of this host") && !told.contains("another process"), "{told}");
        drop(first);
        let lock = Locked::within(opened(&machine).unwrap(), LOCK_TIMEOUT).unwrap();
        let mut told = refused();
        // Another test of this process may hold it.
        let began = Instant::now();
        while !told.contains("another process") && began.elapsed() < LOCK_TIMEOUT {
            told = refused();
        }
        assert!(told.contains("another process holds its file `lock`"), "{told}");
        drop(lock);
        MachineBook::open(&machine, &own).unwrap();
    }
}
