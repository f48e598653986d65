//! Opens a data directory: inspects it first, and changes only what it may change.
//!
//! ```text
//!   directory -> lock -> look (create) -> open (repair) -> begin a new run
//!      |          |       |        |
//!      |          |       |        '- no space, not writable
//!      |          |       '- newer, damaged: the file is not changed
//!      |          '- another host
//!      '- not a directory, not writable, too long
//! ```

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase};
use rustix::fs::{Mode, OFlags};

use super::cause::{Cause, attempt};
use super::errors::OpenError;
use super::health::Disk;
use super::lock::{Holder, Lock, Locking, lock};
use super::look::Overlay;
use super::memory_disk::MemoryDisk;
use super::meta::{self, FILE_SCHEMA, Found};
use super::source::{MakeBackend, Source};
use super::store::{Store, open_database, open_noting_repair};
use crate::vocabulary::RunNumber;

const DATABASE_FILE: &str = "callboard.redb";

/// The file in a data directory that its host has locked.
pub const LOCK_FILE: &str = "callboard.lock";
/// The timeout for the lock of a dead holder: a child process of a killed host keeps a copy until it execs.
const COPY_TIMEOUT: Duration = Duration::from_secs(2);
const COPY_PAUSE: Duration = Duration::from_millis(2);

/// The place and the settings of the database.
#[derive(Clone)]
pub struct Options {
    /// The directory of the database. It is created, accessible to this user alone, if it does not exist.
    pub data_dir: PathBuf,
    /// The storage backend to use instead of the file `callboard.redb` in that directory. For tests with failing storage.
    pub backend: Option<MakeBackend>,
    /// The health of the disk, as its users watch it.
    pub disk: Disk,
    /// Whether it is written on the thread of its actor: for a disk in memory, under virtual time.
    pub is_in_place: bool,
}

impl Options {
    /// Options for the database file in this directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), backend: None, disk: Disk::default(), is_in_place: false }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

/// Opens the database of a data directory and begins a new run.
pub(super) fn open(options: &Options) -> Result<(Store, RunNumber), OpenError> {
    let holder = Holder::this();
    let directory = open_directory(&options.data_dir)?;
    let lock = lock_directory(&directory, &options.data_dir, holder)?;
    let path = database_path(&options.data_dir);
    let source = match &options.backend {
        Some(make) => Source::made(path, make.clone()),
        None => Source::file(directory, path),
    };
    open_source(source, holder, Some(lock))
}

/// Opens the database on an in-memory disk and begins a new run. It needs no directory and no lock, since no other process
/// can access such a disk. For the simulation.
pub fn open_in_memory(disk: &MemoryDisk) -> Result<(Store, RunNumber), OpenError> {
    let source = Source::made(DATABASE_FILE.into(), disk.backend());
    open_source(source, Holder { pid: None, since: None }, None)
}

fn open_source(source: Source, holder: Holder, lock: Option<Lock>) -> Result<(Store, RunNumber), OpenError> {
    let ending = look(&source, holder)?;
    let failed = |cause: Cause| cause.into_open_error(source.path());
    let database = open_for_real(&source, ending).map_err(failed)?;
    let run = attempt(|| begin_run(&database, holder)).map_err(failed)?;
    Ok((Store::new(source, database, lock), RunNumber::new(run)))
}

pub(super) fn database_path(data_dir: &Path) -> PathBuf {
    data_dir.join(DATABASE_FILE)
}

/// Creates the directory if it does not exist, and holds it open for the names in it.
fn open_directory(data_dir: &Path) -> Result<OwnedFd, OpenError> {
    let failed = |error: io::Error| Cause::Io(error).into_open_error(data_dir);
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(failed)?;
    let known = std::fs::metadata(data_dir).map_err(failed)?;
    if !known.is_dir() {
        return Err(OpenError::NotADirectory { path: data_dir.to_owned() });
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(data_dir, flags, Mode::empty()).map_err(|error| failed(error.into()))
}

fn lock_directory(directory: &OwnedFd, data_dir: &Path, holder: Holder) -> Result<Lock, OpenError> {
    let path = data_dir.join(LOCK_FILE);
    let began = Instant::now();
    loop {
        match lock(directory, LOCK_FILE.as_ref(), holder)
            .map_err(|error| Cause::Io(error).into_open_error(&path))?
        {
            Locking::Held(lock) => return Ok(lock),
            Locking::HeldBy(other) if other.is_gone() && began.elapsed() < COPY_TIMEOUT => sleep(COPY_PAUSE),
            Locking::HeldBy(holder) => {
                return Err(OpenError::Locked { data_dir: data_dir.to_owned(), holder });
            }
        }
    }
}

/// How the last run with this database ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It was closed in order, or there was no run.
    InOrder,
    /// It was killed, or its disk failed.
    Killed,
}

/// Makes sure that there is a database and that it may be opened, without changing a byte of an existing one.
///
/// It begins a new run in memory, so that damage which would show at the first commit is found now.
fn look(source: &Source, holder: Holder) -> Result<Ending, OpenError> {
    let failed = |cause: Cause| cause.into_open_error(source.path());
    let Some(below) = source.for_reading().map_err(|error| failed(error.into()))? else {
        return source.create().map(|()| Ending::InOrder).map_err(failed);
    };
    let looked = Overlay::over(below).map_err(Cause::from).and_then(open_noting_repair);
    let (database, is_repaired) = looked.map_err(failed)?;
    match attempt(|| read_meta(&database)).map_err(failed)? {
        Kind::Ours(Found::Meta(_)) | Kind::Empty => {
            attempt(|| begin_run(&database, holder)).map_err(failed)?;
            Ok(if is_repaired { Ending::Killed } else { Ending::InOrder })
        }
        Kind::Ours(Found::Newer { theirs }) => {
            Err(OpenError::Newer { path: source.path().to_owned(), theirs, ours: FILE_SCHEMA })
        }
        Kind::Ours(Found::Damaged) => Err(failed(Cause::Damaged("its own facts are unreadable".to_owned()))),
        Kind::Foreign => Err(failed(Cause::Damaged("it holds other tables".to_owned()))),
    }
}

enum Kind {
    Ours(Found),
    /// It was created, and a crash preceded its first commit.
    Empty,
    Foreign,
}

fn read_meta(database: &Database) -> Result<Kind, redb::Error> {
    let transaction = database.begin_read()?;
    Ok(match meta::read(&transaction)? {
        Some(found) => Kind::Ours(found),
        None if transaction.list_tables()?.next().is_none() => Kind::Empty,
        None => Kind::Foreign,
    })
}

/// Opens the file for writing. If its last host was killed, perhaps after a failed sync, then readable bytes may not be on
/// disk, and are written once more before they are relied on.
fn open_for_real(source: &Source, ending: Ending) -> Result<Database, Cause> {
    let backend = source.for_writing()?;
    if ending == Ending::Killed {
        backend.rewrite()?;
    }
    open_database(backend)
}

fn begin_run(database: &Database, holder: Holder) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let run = meta::begin_run(&transaction, holder)?;
    transaction.commit()?;
    Ok(run)
}
