//! Where the bytes of the database come from, and what is noted of them.

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

/// Makes a storage backend each time the database is opened: at the start, and again after every I/O error.
pub type MakeBackend = Arc<dyn Fn() -> io::Result<Box<dyn StorageBackend>> + Send + Sync>;

/// The bytes of one database.
pub(super) struct Source {
    path: PathBuf,
    make: Option<MakeBackend>,
    sync_failed: Arc<AtomicBool>,
}

impl Source {
    pub(super) fn new(path: PathBuf, make: Option<MakeBackend>) -> Self {
        Self { path, make, sync_failed: Arc::default() }
    }

    /// The database file, for people to read.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the bytes for writing. They are created if they are not there.
    pub(super) fn for_writing(&self) -> io::Result<Watched> {
        let inner = match &self.make {
            Some(make) => make()?,
            None => file_backend(open_file(&self.path)?)?,
        };
        Ok(Watched { inner, sync_failed: Arc::clone(&self.sync_failed) })
    }

    /// Opens the bytes for reading alone; nothing if there are none.
    pub(super) fn for_reading(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let backend = match &self.make {
            Some(make) => make()?,
            None => match File::open(&self.path) {
                Ok(file) => file_backend(file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        Ok(if backend.len()? == 0 { None } else { Some(backend) })
    }

    /// Whether a sync has failed, so that nobody knows which of the bytes that can be read are on disk.
    pub(super) fn is_uncertain(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }

    /// Notes that all bytes are on disk.
    pub(super) fn note_certain(&self) {
        self.sync_failed.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A backend that notes when a sync fails.
///
/// After a failed sync the system may hold pages that it takes for written although they never reached the disk, and the
/// next sync does not try them again. [`Watched::rewrite`] makes sure of them.
#[derive(Debug)]
pub(super) struct Watched {
    inner: Box<dyn StorageBackend>,
    sync_failed: Arc<AtomicBool>,
}

impl Watched {
    /// Writes every byte again, in place, and syncs.
    ///
    /// A crash in between does no harm: redb never writes over pages that its last durable commit needs, so the disk holds
    /// that commit and parts of the one that failed, as it does in the middle of any commit. Zeros are left alone, because
    /// a page of zeros belongs to nothing, and writing one could need space that isn't there.
    pub(super) fn rewrite(&self) -> io::Result<()> {
        const CHUNK: u64 = 4_096;
        let len = self.inner.len()?;
        let mut chunk = [0; CHUNK as usize];
        for offset in (0..len).step_by(CHUNK as usize) {
            let filled = usize::try_from(CHUNK.min(len - offset)).expect("a chunk fits into memory");
            let bytes = &mut chunk[..filled];
            self.inner.read(offset, bytes)?;
            if *bytes != [0; CHUNK as usize][..filled] {
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

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn file_backend(file: File) -> io::Result<Box<dyn StorageBackend>> {
    FileBackend::new(file).map(|backend| Box::new(backend) as _).map_err(io::Error::other)
}
