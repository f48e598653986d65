//! The handle of the persister that all its users share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix::{Actor, Addr};
use callboard_machines::persister::{Damaged, LedgerId, Loaded, Owner, Record, UnwrittenRow, Write};
use tokio::sync::{oneshot, watch};

use super::actor::{Called, Committer};
use super::cause::text_of;
use super::errors::{CloseError, LoadError, OpenError};
use super::health::Disk;
use super::inbox::Inbox;
use super::messages::OpenLedger;
use super::open::{self, Options};
use super::store::Store;
use super::tables::Tables;
use super::worker::Reply;
use crate::vocabulary::RunNumber;

/// A cheap handle of the persister, for any thread. When the last handle is dropped, pending writes are still committed, and
/// then the file is closed.
#[derive(Debug, Clone)]
pub struct Persister {
    committer: Addr<Committer>,
    inbox: Arc<Inbox>,
    run: RunNumber,
    path: Arc<Path>,
    disk: Disk,
    gone: watch::Receiver<()>,
}

impl Persister {
    /// Opens the database of a data directory, and starts the persister on the current arbiter.
    ///
    /// # Errors
    ///
    /// Names the path, the failed operation and the remedy. A file that is newer, damaged or not ours is left untouched.
    ///
    /// # Panics
    ///
    /// Outside of an actix system, as every start of an actor.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let path: Arc<Path> = open::database_path(&options.data_dir).into();
        let (disk, is_in_place) = (options.disk.clone(), options.is_in_place);
        let opened = actix_rt::task::spawn_blocking(move || open::open(&options)).await;
        let (mut store, run) = opened.unwrap_or_else(|error| {
            let panicked = error.try_into_panic().map(|panic| text_of(&*panic));
            let reason = panicked.unwrap_or_else(|error| error.to_string());
            Err(OpenError::Damaged { path: path.to_path_buf(), reason })
        })?;
        let (open, gone) = watch::channel(());
        store.note_when_gone(open);
        let inbox = Arc::new(Inbox::new(Arc::clone(&path)));
        let committer = Committer::new(store, Arc::clone(&inbox), disk.clone(), is_in_place).start();
        Ok(Self { committer, inbox, run, path, disk, gone })
    }

    /// Sets the recipient of an owner's write results.
    pub fn open_ledger(&self, open: OpenLedger) -> LedgerId {
        self.inbox.open_ledger(open)
    }

    /// Frees the ledger of an owner that has ended, unless it was reopened since. Writes that the owner handed over are still committed.
    pub fn close_ledger(&self, owner: Owner, id: LedgerId) {
        self.inbox.close_ledger(owner, id);
    }

    /// Hands over a write. The owner's ledger is notified of the outcome.
    pub fn write(&self, write: Write) {
        if self.inbox.lay_write(&write) {
            self.committer.do_send(Called);
        }
    }

    /// Loads the table of a record type, behind every write that was handed over before this call.
    ///
    /// # Errors
    ///
    /// [`LoadError`], and then nothing was changed. Single damaged records are not an error: see [`Loaded::damaged`].
    pub fn load<R: Record + Send + 'static>(
        &self,
    ) -> impl Future<Output = Result<Loaded<R>, LoadError>> + use<R> + 'static {
        let loading = self.read(|tables| tables.load::<R>());
        async move { loading.await.0 }
    }

    /// Reads any number of tables at once, behind every write that was handed over before this call. `work` is done on the thread of the
    /// database, which commits nothing meanwhile. Also returns the damaged records that were found, which are set aside whatever the
    /// result of `work`.
    ///
    /// # Errors
    ///
    /// The error of `work`, or that the database is closed.
    pub fn read<T, W>(
        &self,
        work: W,
    ) -> impl Future<Output = (Result<T, LoadError>, Vec<Damaged>)> + use<T, W> + 'static
    where
        T: Send + 'static,
        W: FnOnce(&mut Tables<'_>) -> Result<T, LoadError> + Send + 'static,
    {
        let answer = self.ask(move |store| {
            let mut tables = Tables::new(store);
            let read = work(&mut tables);
            (read, tables.into_damaged())
        });
        let path = self.path.to_path_buf();
        async move { answer.await.unwrap_or_else(|_| (Err(LoadError::Closed { path }), Vec::new())) }
    }

    /// The run number of the host: it grows with every opening of the database.
    #[must_use]
    pub const fn run(&self) -> RunNumber {
        self.run
    }

    /// The path of the database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of writes that were handed over and are not settled yet.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.inbox.depth()
    }

    /// The rows whose last change was handed over and is not on disk, or is lost; by table and key.
    #[must_use]
    pub fn unwritten(&self) -> Vec<UnwrittenRow> {
        self.inbox.unwritten()
    }

    /// The number of commits since the database was opened, successful or not. Divide the writes settled meanwhile by it to
    /// get the writes per commit.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.inbox.commits()
    }

    /// The health of its disk.
    #[must_use]
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Settles all pending writes, then closes the file and releases the lock. Later writes fail with `Closed`. Idempotent. A sick
    /// disk gets each write once more; while it does not answer at all, this does not return.
    ///
    /// # Errors
    ///
    /// If the persister's thread has ended already, or if the disk did not take all writes that were handed over.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.inbox.begin_closing();
        let closed = self.ask(Store::close);
        let path = PathBuf::from(&*self.path);
        closed.await.map_err(|_| CloseError::Ended { path: path.clone() })?;
        match self.inbox.lost() {
            0 => Ok(()),
            writes => {
                let reason = self.disk.health().reason().unwrap_or("the disk failed").to_owned();
                Err(CloseError::NotWritten { path, writes, reason })
            }
        }
    }

    /// Whether it has crashed. Writes and jobs that are handed over from then on are not executed.
    pub(crate) fn has_ended(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Whether it was closed, and everything that was handed over before is on disk.
    pub(crate) fn is_closed_in_order(&self) -> bool {
        self.inbox.is_closing() && self.inbox.lost() == 0
    }

    /// Waits until the persister has ended by itself, as after a panic of its thread, and the database may be reopened.
    /// After [`close`](Self::close) it resolves only when all handles are dropped.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut gone = self.gone.clone();
        // Nothing is ever sent; the sender is dropped with the database.
        async move { while gone.changed().await.is_ok() {} }
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Store) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |store: &mut Store| -> Reply {
            let result = question(store);
            // The caller may have dropped its future.
            Box::new(move || drop(answer.send(result)))
        });
        self.inbox.lay_job(job);
        // The inbox does not wake an actor that waits for a sick disk, so it is always woken here.
        self.committer.do_send(Called);
        answered
    }
}
