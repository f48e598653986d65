//! The database access of a machine's store: the writes and tables of one owner.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use actix::Recipient;
use tokio::sync::watch;

use super::notice::{Notice, Notices};
use crate::kernel::{Ticket, Written};
use crate::persister::{
    Disk, LedgerId, LoadError, Loaded, OpenLedger, Operation, Owner, Persister, Record, Settled, Tables,
    TakenNames, UnwrittenRow, Write,
};
use crate::vocabulary::RunNumber;

/// The handle of a host's database. It may be closed and reopened during one run of the host.
#[derive(Debug, Clone)]
pub struct Database {
    present: watch::Receiver<Option<Persister>>,
    run: RunNumber,
    disk: Disk,
    notices: Notices,
    taken: TakenNames,
}

impl Database {
    /// A database that may be closed and reopened during this run of the host; `present` holds the open one. Damaged records
    /// that are found in it are posted as notices (RES-08).
    #[must_use]
    pub const fn following(
        present: watch::Receiver<Option<Persister>>,
        run: RunNumber,
        disk: Disk,
        notices: Notices,
    ) -> Self {
        Self { present, run, disk, notices, taken: TakenNames::NONE }
    }

    /// A database that is never reopened.
    #[must_use]
    pub fn opened(persister: Persister, notices: Notices) -> Self {
        let (run, disk) = (persister.run(), persister.disk().clone());
        // The initial value can be read without its sender.
        let (_, present) = watch::channel(Some(persister));
        Self { present, run, disk, notices, taken: TakenNames::NONE }
    }

    /// The same database for users who may not use these names: their ledgers are refused, and so are these tables in any ledger.
    #[must_use]
    pub fn refusing(self, taken: TakenNames) -> Self {
        Self { taken, ..self }
    }

    /// The disk with its file.
    #[must_use]
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The number of writes that were handed over and are not on disk yet.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.present.borrow().as_ref().map_or(0, Persister::depth)
    }

    /// The rows whose last change is not on disk yet, by table and key.
    #[must_use]
    pub fn unwritten_rows(&self) -> Vec<UnwrittenRow> {
        self.present.borrow().as_ref().map_or_else(Vec::new, Persister::unwritten)
    }

    /// The run number of the host; reopening the database does not change it.
    #[must_use]
    pub const fn run(&self) -> RunNumber {
        self.run
    }

    /// Opens the ledger of an owner. Each owner has one at a time, and its tables are its own. The ledgers of a host refuse some names to a
    /// host program ([`Ledger`]): reads and writes under these names return an error.
    #[must_use]
    pub fn ledger(&self, owner: Owner) -> Ledger {
        Ledger {
            owner,
            database: self.clone(),
            used: Rc::default(),
            handed_in: Rc::default(),
            settled: None,
            listens: Rc::default(),
        }
    }
}

/// An opening of a ledger in one opening of the database. It ends with the last handle of the ledger.
#[derive(Debug)]
struct Listening {
    persister: Persister,
    owner: Owner,
    id: LedgerId,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.persister.close_ledger(self.owner, self.id);
    }
}

/// The database access of one owner: the building block for a [`Store`](super::Store) of a host's own machine.
///
/// The names of owner and tables are the host program's choice, apart from those that actors of Callboard use. The database of a host
/// refuses them: reading fails, so that an actor whose [`Store::load`](super::Store::load) uses them does not get ready, and a write is
/// [`Written::Failed`]. Nothing is read or written then.
///
/// - owners: `registry`, `processes`, `volumes`, `volume`, `tasks`
/// - tables: `registrations`, `processes`, `known_volumes`, `volume_deletions`, `volumes`, `volume_claims`, `volume_lost_claims`,
///   `volume_abandoned_targets`, `volume_audits`, `volume_orders`, `task-courses`, `task-events`, `task-drivers`, `meta`, `quarantine`
///
/// ```
/// # use callboard_actors::persister::{Disk, Operation, Record, Settled, Table};
/// # use callboard_actors::shell::*;
/// # use futures_util::future::LocalBoxFuture;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Line(String);
/// impl Record for Line {
///     const TABLE: Table = Table("lines");
///     const SCHEMA: u16 = 1;
/// }
///
/// struct Lines(Ledger);
/// impl<M: Machine<Change = (u64, String), Image = Vec<String>>> Store<M> for Lines {
///     fn open(&mut self, settled: actix::Recipient<Settled>) {
///         self.0.open(settled);
///     }
///     fn disk(&self) -> Option<Disk> {
///         Some(self.0.disk())
///     }
///     fn write(&mut self, ticket: Ticket, (number, text): (u64, String)) -> Written {
///         self.0.write(ticket, vec![Operation::put(number.to_be_bytes(), &Line(text))])
///     }
///     fn load(&mut self) -> LocalBoxFuture<'static, Result<Vec<String>, String>> {
///         let ledger = self.0.clone();
///         Box::pin(async move {
///             ledger.reopen().await?;
///             Ok(ledger.rows::<Line>().await?.into_iter().map(|(_, line)| line.0).collect())
///         })
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Ledger {
    owner: Owner,
    database: Database,
    /// The database that was loaded from last; writes go to it.
    used: Rc<RefCell<Option<Persister>>>,
    /// The epoch of the last write.
    handed_in: Rc<Cell<u64>>,
    settled: Option<Recipient<Settled>>,
    /// The registration of that recipient for its results.
    listens: Rc<RefCell<Option<Listening>>>,
}

impl Ledger {
    /// Sets the recipient of its write results; for [`Store::open`](super::Store::open).
    pub fn open(&mut self, settled: Recipient<Settled>) {
        self.settled = Some(settled);
        self.listens = Rc::default();
    }

    /// The disk that it writes to; for [`Store::disk`](super::Store::disk).
    #[must_use]
    pub fn disk(&self) -> Disk {
        self.database.disk.clone()
    }

    /// Hands over a write. It is atomic: all operations reach the disk, or none.
    pub fn write(&self, ticket: Ticket, operations: Vec<Operation>) -> Written {
        if let Err(taken) = self.database.taken.check_write(self.owner, &operations) {
            return Written::Failed(taken.to_string());
        }
        let Ticket { epoch, sequence } = ticket;
        self.follow(self.handed_in.replace(epoch) < epoch);
        let write = Write { owner: self.owner, epoch, sequence, operations };
        // It exceeds the limit, so a retry cannot succeed.
        if let Some(error) = write.too_large() {
            return Written::Failed(error.to_string());
        }
        match &*self.used.borrow() {
            Some(persister) => {
                persister.write(write);
                Written::Later
            }
            None => Written::Failed("nothing was read from the database yet".to_owned()),
        }
    }

    /// Switches writes to the database that is open now, also if the database was closed in order and reopened since the last load. If it
    /// crashed instead, its owner must first know that its writes are lost, and hand them over again in another epoch.
    fn follow(&self, is_another_epoch: bool) {
        let present = self.database.present.borrow().clone();
        let Some(present) = present.filter(|present| !present.has_ended()) else { return };
        let is_another = |used: &Persister| {
            let is_known = used.is_closed_in_order() || used.has_ended() && is_another_epoch;
            used.run() != present.run() && is_known
        };
        if self.used.borrow().as_ref().is_some_and(is_another) {
            self.listen(&present);
            self.used.replace(Some(present));
        }
    }

    fn listen(&self, persister: &Persister) {
        if let Some(settled) = self.settled.clone() {
            let (persister, owner) = (persister.clone(), self.owner);
            let id = persister.open_ledger(OpenLedger { owner, settled });
            self.listens.replace(Some(Listening { persister, owner, id }));
        }
    }

    /// Waits until the database is open, and uses it; each load begins with it. Returns the unique number of this opening.
    ///
    /// # Errors
    /// When it is closed permanently, and when the name of the owner belongs to an actor of Callboard.
    pub async fn reopen(&self) -> Result<RunNumber, String> {
        self.check_owner()?;
        let mut present = self.database.present.clone();
        let is_there = |present: &Option<Persister>| present.as_ref().is_some_and(|one| !one.has_ended());
        let persister = match present.wait_for(is_there).await {
            Ok(persister) => persister.clone(),
            Err(_) => None,
        };
        let persister = persister.ok_or("the database is closed and will not be opened again")?;
        let opening = persister.run();
        // A recipient that is registered already continues to receive the results of writes that wait for a sick disk.
        let listens_to = self.listens.borrow().as_ref().map(|listening| listening.persister.run());
        if listens_to != Some(opening) {
            self.listen(&persister);
        }
        self.used.replace(Some(persister));
        Ok(opening)
    }

    /// All sound records of a table, ordered by key, behind every write that was handed over before. A damaged record is set
    /// aside and posted as a notice (RES-08).
    ///
    /// # Errors
    /// When the table cannot be read: a message for people.
    pub async fn rows<R: Record + Send + 'static>(&self) -> Result<Vec<(Vec<u8>, R)>, String> {
        Ok(self.load().await?.rows)
    }

    /// Like [`rows`](Self::rows), and also returns the damaged records.
    ///
    /// # Errors
    /// When the table cannot be read: a message for people.
    pub async fn load<R: Record + Send + 'static>(&self) -> Result<Loaded<R>, String> {
        self.read(|tables| tables.load()).await
    }

    /// Reads any number of tables at once, behind every write that was handed over before; `work` runs on the thread of the database. The
    /// damaged records that it finds are posted as notices (RES-08).
    ///
    /// # Errors
    /// When a table cannot be read: a message for people.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tables<'_>) -> Result<T, LoadError> + Send + 'static,
    ) -> Result<T, String> {
        self.check_owner()?;
        let taken = self.database.taken;
        let reading = match &*self.used.borrow() {
            Some(persister) => persister.read(move |tables| {
                tables.refuse(taken);
                work(tables)
            }),
            None => return Err("the database is not open yet".to_owned()),
        };
        let (read, damaged) = reading.await;
        for damaged in damaged {
            let key = damaged.key.iter().map(|byte| format!("{byte:02x}")).collect();
            let (table, reason) = (damaged.table.0.to_owned(), damaged.reason.to_string());
            self.database.notices.post(Notice::Quarantined { table, key, reason });
        }
        read.map_err(|error| error.to_string())
    }

    fn check_owner(&self) -> Result<(), String> {
        self.database.taken.check_owner(self.owner).map_err(|taken| taken.to_string())
    }
}
