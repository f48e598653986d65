//! The storage of the database, and the state of its syncs.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::cause::Cause;
use super::kept_file::{FileIdentity, Place};
use super::store::open_database;

/// Creates a storage backend for each opening of the database: at the start, and again after every I/O error.
pub type MakeBackend = Arc<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync>;

pub(super) struct Source {
    path: PathBuf,
    kind: Kind,
    sync_failed: Arc<AtomicBool>,
    /// The file that was opened for writing first.
    first: OnceLock<FileIdentity>,
}

enum Kind {
    /// A file in this directory, which is held open: whatever is at its path later, the directory stays the same.
    File(OwnedFd),
    Made(MakeBackend),
}

impl Source {
    /// The file of this name in a directory at this path.
    pub(super) fn file(directory: OwnedFd, path: PathBuf) -> Self {
        Self { path, kind: Kind::File(directory), sync_failed: Arc::default(), first: OnceLock::new() }
    }

    pub(super) fn made(path: PathBuf, make: MakeBackend) -> Self {
        Self { path, kind: Kind::Made(make), sync_failed: Arc::default(), first: OnceLock::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the database if it does not exist.
    ///
    /// The file is created under a temporary name and renamed when it is a complete database. So an empty or truncated file
    /// is never taken for a new database, but always for a lost one.
    pub(super) fn create(&self) -> Result<(), Cause> {
        match &self.kind {
            Kind::File(directory) => self.create_file(directory),
            Kind::Made(make) => {
                let backend = self.watch(make()?);
                backend.set_len(0)?;
                open_database(backend).map(drop)
            }
        }
    }

    pub(super) fn for_writing(&self) -> io::Result<Watched> {
        match &self.kind {
            Kind::File(directory) => {
                let (file, place) = self.kept_file(directory)?;
                Ok(Watched { place: Some(place), ..self.watch(file_backend(file)?) })
            }
            Kind::Made(make) => Ok(self.watch(make()?)),
        }
    }

    /// Opens the storage read-only; `None` if it does not exist yet.
    pub(super) fn for_reading(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        match &self.kind {
            Kind::File(directory) => open_for_reading(directory, self.name()),
            Kind::Made(make) => {
                let backend = make()?;
                Ok(if is_begun(backend.as_ref())? { Some(backend) } else { None })
            }
        }
    }

    /// Whether a sync has failed, so that readable bytes may not be on disk.
    pub(super) fn is_uncertain(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }

    /// Records that all bytes are on disk.
    pub(super) fn note_certain(&self) {
        self.sync_failed.store(false, Ordering::Release);
    }

    /// The file in the directory, always the same one, and the place in which it must stay.
    fn kept_file(&self, directory: &OwnedFd) -> io::Result<(File, Place)> {
        let file = open_at(directory, self.name(), OFlags::RDWR)?;
        let identity = FileIdentity::of(&file)?;
        identity.check(*self.first.get_or_init(|| identity))?;
        let (directory, name) = (directory.try_clone()?, self.name().to_owned());
        Ok((file, Place { identity, directory, name }))
    }

    fn watch(&self, inner: Box<dyn StorageBackend>) -> Watched {
        Watched { inner, sync_failed: Arc::clone(&self.sync_failed), place: None }
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().expect("the path of a database ends with its name")
    }

    fn create_file(&self, directory: &OwnedFd) -> Result<(), Cause> {
        let draft = Path::new(self.name()).with_extension("new");
        match rustix::fs::unlinkat(directory, &draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let file = open_at(directory, draft.as_os_str(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        let whole = file.try_clone()?;
        drop(open_database(self.watch(file_backend(file)?))?);
        whole.sync_all()?;
        rustix::fs::renameat(directory, &draft, directory, self.name()).map_err(io::Error::from)?;
        Ok(open_at(directory, ".".as_ref(), OFlags::RDONLY | OFlags::DIRECTORY)?.sync_all()?)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A backend that records failed syncs. A sync also fails while its file is not in its place.
///
/// After a failed sync the system may treat pages as clean although they never reached the disk, and the next sync does not
/// retry them. [`Watched::rewrite`] writes them again.
#[derive(Debug)]
pub(super) struct Watched {
    inner: Box<dyn StorageBackend>,
    sync_failed: Arc<AtomicBool>,
    place: Option<Place>,
}

impl Watched {
    /// Writes every byte again, in place, and syncs.
    ///
    /// A crash in between is harmless: redb never overwrites pages that its last durable commit needs, so the disk holds
    /// that commit and parts of the failed one, as in the middle of any commit. Pages of zeros are skipped, because they
    /// belong to nothing, and writing one could need space that is not available.
    pub(super) fn rewrite(&self) -> io::Result<()> {
        const CHUNK: u64 = 4_096;
        let len = self.inner.len()?;
        let zeros = [0; CHUNK as usize];
        let mut chunk = zeros;
        for offset in (0..len).step_by(CHUNK as usize) {
            let filled = usize::try_from(CHUNK.min(len - offset)).expect("a chunk fits into memory");
            let bytes = &mut chunk[..filled];
            self.inner.read(offset, bytes)?;
            if *bytes != zeros[..filled] {
                self.inner.write(offset, bytes)?;
            }
        }
        self.inner.sync_data()
    }
}

impl StorageBackend for Watched {
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
        let synced = self.inner.sync_data().and_then(|()| self.place.as_ref().map_or(Ok(()), Place::check));
        if synced.is_err() {
            self.sync_failed.store(true, Ordering::Release);
        }
        synced
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

/// Whether the storage holds a database yet: redb writes its magic number last.
fn is_begun(backend: &dyn StorageBackend) -> io::Result<bool> {
    let mut magic = [0; 9];
    let there = magic.len().min(usize::try_from(backend.len()?).unwrap_or(usize::MAX));
    backend.read(0, &mut magic[..there])?;
    Ok(magic != [0; 9])
}

fn open_for_reading(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Box<dyn StorageBackend>>> {
    let unusable = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => Err(is_link()),
        Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile => {
            unusable("it is not a file")
        }
        Ok(found) if found.st_size == 0 => unusable("it is empty"),
        Ok(_) => file_backend(open_at(directory, name, OFlags::RDONLY)?).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file in a directory; a link is not followed.
pub(super) fn open_at(directory: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        Err(Errno::LOOP) => Err(is_link()),
        Err(error) => Err(error.into()),
    }
}

fn is_link() -> io::Error {
    io::Error::other("it is a symbolic link, which is not followed; put the file itself in its place")
}

fn file_backend(file: File) -> io::Result<Box<dyn StorageBackend>> {
    FileBackend::new(file).map(|backend| Box::new(backend) as _).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_database_stays_in_the_directory_that_is_held_whatever_is_at_its_path() {
        let stage = tempfile::tempdir().unwrap();
        let (place, aside) = (stage.path().join("data"), stage.path().join("aside"));
        fs::create_dir(&place).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&place, flags, Mode::empty()).unwrap();
        let source = Source::file(directory, place.join("callboard.redb"));
        assert!(source.for_reading().unwrap().is_none());
        fs::rename(&place, &aside).unwrap();
        fs::create_dir(&place).unwrap();
        fs::write(place.join("callboard.redb"), "of another program").unwrap();
        source.create().unwrap();
        let length = fs::metadata(aside.join("callboard.redb")).unwrap().len();
        assert_eq!(source.for_writing().unwrap().len().unwrap(), length);
        assert_eq!(source.for_reading().unwrap().unwrap().len().unwrap(), length);
        assert_eq!(fs::read(place.join("callboard.redb")).unwrap(), b"of another program");
    }

    #[test]
    fn a_file_that_is_not_in_its_place_takes_no_writes_until_the_same_one_is_back_p3() {
        let stage = tempfile::tempdir().unwrap();
        let [path, aside] = ["callboard.redb", "aside"].map(|name| stage.path().join(name));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(stage.path(), flags, Mode::empty()).unwrap();
        let source = Source::file(directory, path.clone());
        source.create().unwrap();
        let open = source.for_writing().unwrap();
        open.sync_data().unwrap();
        // The file is renamed, and a copy, as of a backup, is in its place: both the open file and a newly opened one fail.
        fs::rename(&path, &aside).unwrap();
        let told = open.sync_data().unwrap_err().to_string();
        assert!(told.contains("removed or renamed") && told.contains("put the same file back"), "{told}");
        source.for_writing().expect_err("nothing is there");
        fs::copy(&aside, &path).unwrap();
        for told in [open.sync_data().unwrap_err(), source.for_writing().unwrap_err()] {
            assert!(told.to_string().contains("another file is in its place"), "{told}");
        }
        // The same with a copy of a file that no longer has a name.
        fs::rename(&aside, &path).unwrap();
        open.sync_data().unwrap();
        source.for_writing().unwrap().sync_data().unwrap();
        fs::copy(&path, &aside).unwrap();
        fs::rename(&aside, &path).unwrap();
        open.sync_data().expect_err("its file is gone");
        source.for_writing().expect_err("it is another one");
    }
}
