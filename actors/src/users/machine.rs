//! Which dynamic users the hosts of this machine have, so that no two of them give out the same one (T116, TH070).
//!
//! A user is given out before any process runs as it, so looking at processes is not enough. All hosts that are root keep one
//! directory, in which each user in use is a link that names the book of the host that has it: its own directory of
//! reservations. What a host gave out is in its own book as long as it is in use, over restarts of the host. So a link counts as long
//! as that book has the user; one whose book is gone, or has the user no more, says nothing.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::dynamic::DynamicUser;

/// Where the hosts of a machine keep which users they have, unless a host says otherwise.
pub const MACHINE_USERS: &str = "/run/callboard/users";
/// The file that is locked while one of them reads and writes there.
const LOCK: &str = "lock";
/// How long the lock is waited for: it is held for as long as it takes to look at a directory.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The directory, locked: no other host reads or writes there. Released when dropped.
#[derive(Debug)]
pub(super) struct MachineBook {
    directory: PathBuf,
    /// The book of this host.
    own: PathBuf,
    lock: File,
}

impl Drop for MachineBook {
    /// Releases the lock, and not only our descriptor of it: a process that is just being started has a copy of it.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.lock, FlockOperation::Unlock) {
            tracing::warn!(%error, "the lock of the users of this machine is released only when its file is closed");
        }
    }
}

impl MachineBook {
    /// Opens and locks it for the host with this book, which has to be there.
    ///
    /// # Errors
    /// When the directory cannot be made or is open to others, or another host holds the lock for too long.
    pub(super) fn open(directory: &Path, own: &Path) -> io::Result<Self> {
        let told = |error: io::Error| {
            let place = directory.display();
            let reason =
                format!("cannot use {place}, where the hosts of this machine keep their users: {error}");
            io::Error::new(error.kind(), reason)
        };
        let own = own.canonicalize()?;
        let lock = opened(directory).map_err(told)?;
        wait_for(&lock).map_err(told)?;
        Ok(Self { directory: directory.to_owned(), own, lock })
    }

    /// The users that other hosts have.
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

    /// The users that this host is noted to have.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn of_this_host(&self) -> io::Result<BTreeSet<DynamicUser>> {
        let entries = self.entries()?.into_iter();
        Ok(entries.filter(|(_, book)| self.is_own(book)).map(|(user, _)| user).collect())
    }

    /// Notes that this host has a user, which no other has.
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

    /// Forgets that this host has a user. What another one has stays.
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

    /// Which users are noted, and which book has each.
    fn entries(&self) -> io::Result<Vec<(DynamicUser, PathBuf)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // What is no link was made by nobody of us, and names no book.
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

/// Whether a book has a user. One that cannot be looked at may have it.
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

/// Makes the directory, for this user alone, and opens the file that is locked.
fn opened(directory: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let found = fs::symlink_metadata(directory)?;
    let us = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != us || found.mode() & 0o022 != 0 {
        let reason = format!("it is no directory that only user {us} may write to; look at it and remove it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(directory.join(LOCK))
}

fn wait_for(lock: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
            Err(Errno::WOULDBLOCK) => {
                let reason = format!("another process holds its file `{LOCK}`; see who: fuser -v");
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
