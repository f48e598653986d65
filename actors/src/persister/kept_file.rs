//! A database file that has to stay in its place: what is written to one that was removed or replaced is lost with the host.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use redb::{BackendError, StorageBackend};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

/// What is said of a file that is not in its place any more.
const MISSING: &str = "its file was removed or renamed while the host runs, so nothing that is written from now on would be there at the \
                       next start; put the same file back, or stop the host";
/// What is said of another file in its place.
const REPLACED: &str = "another file is in its place while the host runs, and what this host knows is not in that one; put the former \
                        file back, or stop the host";

/// Which file it is on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self { device: found.dev(), inode: found.ino() })
    }

    /// Checks that this is the file that a host has had from the beginning.
    pub(super) fn check(self, first: Self) -> io::Result<()> {
        if self == first { Ok(()) } else { Err(io::Error::other(REPLACED)) }
    }
}

/// The backend of a file. Its syncs fail as long as the file is not in its place.
#[derive(Debug)]
pub(super) struct KeptFile {
    pub(super) inner: Box<dyn StorageBackend>,
    pub(super) identity: FileIdentity,
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

impl KeptFile {
    fn check(&self) -> io::Result<()> {
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => FileIdentity { device: found.st_dev, inode: found.st_ino }.check(self.identity),
            Err(Errno::NOENT) => Err(io::Error::new(io::ErrorKind::NotFound, MISSING)),
            Err(error) => Err(error.into()),
        }
    }
}

impl StorageBackend for KeptFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()?;
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.query_lock_range(start, end)
    }
}
