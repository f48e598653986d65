//! The storage of the database, and what is known about its syncs.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::cause::Cause;
use super::store::open_database;

/// Creates a storage backend for each opening of the database: at the start, and again after every I/O error.
pub type MakeBackend = Arc<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync>;

pub(super) struct Source {
    path: PathBuf,
    kind: Kind,
    sync_failed: Arc<AtomicBool>,
}

enum Kind {
    File,
    Made(MakeBackend),
}

impl Source {
    pub(super) fn new(path: PathBuf, make: Option<MakeBackend>) -> Self {
        Self { path, kind: make.map_or(Kind::File, Kind::Made), sync_failed: Arc::default() }
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
            Kind::File => self.create_file(),
            Kind::Made(make) => {
                let backend = self.watch(make()?);
                backend.set_len(0)?;
                open_database(backend).map(drop)
            }
        }
    }

    pub(super) fn for_writing(&self) -> io::Result<Watched> {
        let inner = match &self.kind {
            Kind::File => file_backend(OpenOptions::new().read(true).write(true).open(&self.path)?)?,
            Kind::Made(make) => make()?,
        };
        Ok(self.watch(inner))
    }

    /// Opens the storage read-only; `None` if it does not exist yet.
    pub(super) fn for_reading(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        match &self.kind {
            Kind::File => open_for_reading(&self.path),
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

    fn watch(&self, inner: Box<dyn StorageBackend>) -> Watched {
        Watched { inner, sync_failed: Arc::clone(&self.sync_failed) }
    }

    fn create_file(&self) -> Result<(), Cause> {
        let unnamed = self.path.with_extension("new");
        match std::fs::remove_file(&unnamed) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&unnamed)?;
        let whole = file.try_clone()?;
        drop(open_database(self.watch(file_backend(file)?))?);
        whole.sync_all()?;
        std::fs::rename(&unnamed, &self.path)?;
        let directory = self.path.parent().expect("the file lies in the data directory");
        Ok(File::open(directory)?.sync_all()?)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A backend that records failed syncs.
///
/// After a failed sync the system may treat pages as clean although they never reached the disk, and the next sync does not
/// retry them. [`Watched::rewrite`] writes them again.
#[derive(Debug)]
pub(super) struct Watched {
    inner: Box<dyn StorageBackend>,
    sync_failed: Arc<AtomicBool>,
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
        let synced = self.inner.sync_data();
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

fn open_for_reading(path: &Path) -> io::Result<Option<Box<dyn StorageBackend>>> {
    match std::fs::metadata(path) {
        Ok(known) if !known.is_file() => Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a file")),
        Ok(known) if known.len() == 0 => Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty")),
        Ok(_) => file_backend(File::open(path)?).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn file_backend(file: File) -> io::Result<Box<dyn StorageBackend>> {
    FileBackend::new(file).map(|backend| Box::new(backend) as _).map_err(io::Error::other)
}
