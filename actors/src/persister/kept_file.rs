//! A database file that has to stay in its directory: what is written to a file that was removed is lost with the host.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use redb::{BackendError, StorageBackend};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

/// What is said of a file that was removed.
const REMOVED: &str = "its file was removed while the host runs, so nothing that is written from now on would be there at the next start; \
                       put the file back, or stop the host";

/// The backend of a file. Its syncs fail once the file has no name any more.
#[derive(Debug)]
pub(super) struct KeptFile {
    pub(super) inner: Box<dyn StorageBackend>,
    /// The same file.
    pub(super) handle: File,
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

impl KeptFile {
    fn check(&self) -> io::Result<()> {
        let own = self.handle.metadata()?;
        if own.nlink() > 0 {
            return Ok(());
        }
        // A file system that counts no names says zero of every file.
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if (found.st_dev, found.st_ino) == (own.dev(), own.ino()) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(io::Error::new(io::ErrorKind::NotFound, REMOVED)),
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

#[cfg(test)]
mod tests {
    use redb::backends::FileBackend;
    use rustix::fs::{Mode, OFlags, open};

    use super::*;

    #[test]
    fn a_file_that_was_removed_or_replaced_takes_no_more_writes_and_one_that_was_renamed_back_does_p3() {
        let stage = tempfile::tempdir().unwrap();
        let [path, aside] = ["callboard.redb", "aside"].map(|name| stage.path().join(name));
        let options = || File::options().read(true).write(true).create(true).truncate(false).clone();
        let file = options().open(&path).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let kept = KeptFile {
            handle: file.try_clone().unwrap(),
            inner: Box::new(FileBackend::new(file).unwrap()),
            directory: open(stage.path(), flags, Mode::empty()).unwrap(),
            name: "callboard.redb".into(),
        };
        let sync = || kept.set_len(1).and_then(|()| kept.sync_data());
        sync().unwrap();
        // It still has a name: whoever gave it another one can give it the former one again.
        std::fs::rename(&path, &aside).unwrap();
        sync().unwrap();
        std::fs::rename(&aside, &path).unwrap();
        sync().unwrap();
        std::fs::remove_file(&path).unwrap();
        let told = sync().unwrap_err().to_string();
        assert!(
            told.contains("was removed") && told.contains("put the file back, or stop the host"),
            "{told}"
        );
        options().open(&path).unwrap();
        sync().expect_err("another file is in its place");
    }
}
