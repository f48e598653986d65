//! Checks that a database file stays in its place: writes to a file that was removed or replaced are lost with the host.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

/// The error for a file that is missing from its place.
const MISSING: &str = "its file was removed or renamed while the host runs, so nothing that is written from now on would be there at the \
                       next start; put the same file back, or stop the host";
/// The error for another file in its place.
const REPLACED: &str = "another file is in its place while the host runs, and what this host knows is not in that one; put the former \
                        file back, or stop the host";

/// The identity of a file on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self { device: found.dev(), inode: found.ino() })
    }

    /// Checks that this is the file that the host opened first.
    pub(super) fn check(self, first: Self) -> io::Result<()> {
        if self == first { Ok(()) } else { Err(io::Error::other(REPLACED)) }
    }
}

/// The place in which a file must stay.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) identity: FileIdentity,
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

impl Place {
    /// Checks that the file is there.
    pub(super) fn check(&self) -> io::Result<()> {
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => FileIdentity { device: found.st_dev, inode: found.st_ino }.check(self.identity),
            Err(Errno::NOENT) => Err(io::Error::new(io::ErrorKind::NotFound, MISSING)),
            Err(error) => Err(error.into()),
        }
    }
}
