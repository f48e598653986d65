//! The database in use: opened, failed or closed.
//!
//! ```text
//!            I/O error                 close
//!   Open ----------------> Failed ------------> Closed
//!    ^                       |
//!    '-----------------------'
//!      the next use reopens
//! ```
//!
//! redb refuses everything after an I/O error, so the database is dropped then and reopened at its next use (P3). If a sync
//! had failed, every byte is first written and synced once more, since only then the content of the disk is known.

use std::cell::Cell;
use std::rc::Rc;

use callboard_machines::persister::{Loaded, Operations, Record, WriteError};
use redb::{Database, StorageBackend};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::cause::{Cause, attempt};
use super::commit;
use super::errors::LoadError;
use super::load::{self, Scan};
use super::lock::Lock;
use super::look::Overlay;
use super::source::Source;
use crate::vocabulary::hex;

const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// The open database of a host, and the lock of its directory.
#[derive(Debug)]
pub struct Store {
    source: Source,
    state: State,
    lock: Option<Lock>,
    /// Operations that are read as if they were on disk, while the disk does not take them.
    unwritten: Option<Operations>,
    /// Dropped last, after the file and its lock.
    open: Option<watch::Sender<()>>,
}

#[derive(Debug)]
enum State {
    Open(Database),
    Failed,
    Closed,
}

impl Store {
    pub(super) const fn new(source: Source, database: Database, lock: Option<Lock>) -> Self {
        Self { source, state: State::Open(database), lock, unwritten: None, open: None }
    }

    /// The drop of `open` notifies its receivers that the database may be opened again.
    pub(super) fn note_when_gone(&mut self, open: watch::Sender<()>) {
        self.open = Some(open);
    }

    /// From now on reads return what is on disk with these operations applied.
    pub(super) fn read_over(&mut self, unwritten: Option<Operations>) {
        self.unwritten = unwritten;
    }

    /// Commits these atomically: all of them or none.
    pub fn commit(&mut self, operations: &Operations) -> Result<(), WriteError> {
        let committed = self.with_database(|database| commit::commit(database, operations));
        committed.map_err(|cause| {
            self.fail();
            cause.into_write_error(self.source.path())
        })
    }

    /// Loads a table. Damaged records are quarantined, and old ones are migrated.
    pub fn load<R: Record>(&mut self) -> Result<Loaded<R>, LoadError> {
        self.load_below(&[])
    }

    /// Loads the records of a table whose keys begin with these bytes.
    pub(super) fn load_below<R: Record>(&mut self, prefix: &[u8]) -> Result<Loaded<R>, LoadError> {
        let unwritten = self.unwritten.take();
        let scanned = match self.with_database(|database| load::scan(database, unwritten.as_ref(), prefix)) {
            Err(Cause::Io(error)) => {
                self.fail();
                self.scan_without_writing(unwritten.as_ref(), prefix).unwrap_or(Err(Cause::Io(error)))
            }
            scanned => scanned,
        };
        let is_of_disk = unwritten.is_none();
        self.unwritten = unwritten;
        match scanned {
            Ok(Scan::Read { loaded, migrated }) => {
                if is_of_disk {
                    self.tidy(&loaded, &migrated);
                }
                Ok(loaded)
            }
            Ok(Scan::Newer { theirs, ours }) => {
                Err(LoadError::Newer { path: self.source.path().to_owned(), table: R::TABLE.0, theirs, ours })
            }
            Err(cause) => Err(cause.into_load_error(self.source.path(), R::TABLE)),
        }
    }

    /// Closes the file and releases the lock.
    pub fn close(&mut self) {
        self.leave(State::Closed);
        self.lock = None;
    }

    fn with_database<T>(
        &mut self,
        action: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, Cause> {
        if matches!(self.state, State::Failed) {
            self.state = State::Open(self.reopen()?);
            debug!(path = %self.source.path().display(), "opened the database again");
        }
        match &self.state {
            State::Open(database) => attempt(|| action(database)),
            State::Failed | State::Closed => Err(Cause::Closed),
        }
    }

    fn reopen(&self) -> Result<Database, Cause> {
        let backend = self.source.for_writing()?;
        if backend.len()? == 0 {
            return Err(Cause::Damaged("the file was removed or emptied while in use".to_owned()));
        }
        if self.source.is_uncertain() {
            backend.rewrite()?;
            self.source.note_certain();
        }
        open_database(backend)
    }

    /// Loads a table of a file that cannot be opened for writing. `None` if the readable bytes may differ from the disk, and will not
    /// be written to it again.
    fn scan_without_writing<R: Record>(
        &self,
        unwritten: Option<&Operations>,
        prefix: &[u8],
    ) -> Option<Result<Scan<R>, Cause>> {
        if self.source.is_uncertain() && unwritten.is_none() {
            return None;
        }
        let below = self.source.for_reading().ok()??;
        Some(
            Overlay::over(below)
                .map_err(Cause::from)
                .and_then(open_database)
                .and_then(|database| attempt(|| load::scan(&database, unwritten, prefix))),
        )
    }

    /// The loaded records are valid in any case; if this cleanup fails, the next load retries it.
    fn tidy<R: Record>(&mut self, loaded: &Loaded<R>, migrated: &[usize]) {
        for damaged in &loaded.damaged {
            warn!(error = %damaged.reason, table = R::TABLE.0, key = %hex(&damaged.key), "found a damaged record");
        }
        if !load::is_untidy(loaded, migrated) {
            return;
        }
        let tidied = self.with_database(|database| load::tidy(database, loaded, migrated));
        if let Err(cause) = tidied {
            self.fail();
            let error = cause.into_write_error(self.source.path());
            warn!(%error, table = R::TABLE.0, "cannot move damaged records to quarantine or write migrated ones");
        }
    }

    fn fail(&mut self) {
        if !matches!(self.state, State::Closed) {
            self.leave(State::Failed);
        }
    }

    fn leave(&mut self, next: State) {
        if let State::Open(database) = std::mem::replace(&mut self.state, next) {
            let dropped = attempt(|| {
                drop(database);
                Ok(())
            });
            if let Err(cause) = dropped {
                warn!(error = %cause, path = %self.source.path().display(), "closed the database with errors");
            }
        }
    }
}

impl Drop for Store {
    /// Closes the file while panics are caught, since redb may fail an assertion.
    fn drop(&mut self) {
        self.close();
    }
}

pub(super) fn open_database(backend: impl StorageBackend) -> Result<Database, Cause> {
    open_noting_repair(backend).map(|(database, _)| database)
}

/// Opens the database, and returns whether redb had to repair it because it was not closed in order.
pub(super) fn open_noting_repair(backend: impl StorageBackend) -> Result<(Database, bool), Cause> {
    let is_repaired = Rc::new(Cell::new(false));
    let note = Rc::clone(&is_repaired);
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_repair_callback(move |_| note.set(true));
    let database = attempt(|| builder.create_with_backend(backend).map_err(redb::Error::from))?;
    Ok((database, is_repaired.get()))
}
