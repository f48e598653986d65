//! The handle through which everyone speaks to the persister.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix::{Actor, Addr};
use tokio::sync::{oneshot, watch};

use super::actor::{Called, Committer};
use super::cause::text_of;
use super::errors::{CloseError, LoadError, OpenError};
use super::inbox::Inbox;
use super::messages::{Loaded, OpenLedger, Write};
use super::open::{self, Options};
use super::record::Record;
use super::store::Store;
use crate::vocabulary::RunNumber;

/// A cheap handle of the persister, for any thread. When all are gone, what was handed over is still brought to disk, and
/// then the file is closed.
#[derive(Debug, Clone)]
pub struct Persister {
    committer: Addr<Committer>,
    inbox: Arc<Inbox>,
    run: RunNumber,
    path: Arc<Path>,
    gone: watch::Receiver<()>,
}

impl Persister {
    /// Opens the database of a data directory, and starts the persister on the present arbiter.
    ///
    /// # Errors
    ///
    /// Says what was tried on which path, and what to do. A file that is newer, damaged or not ours has not been touched.
    ///
    /// # Panics
    ///
    /// Outside of an actix system, as every start of an actor.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let path: Arc<Path> = open::database_path(&options.data_dir).into();
        let opened = actix_rt::task::spawn_blocking(move || open::open(&options)).await;
        let (mut store, run) = opened.unwrap_or_else(|error| {
            let panicked = error.try_into_panic().map(|panic| text_of(&*panic));
            let reason = panicked.unwrap_or_else(|error| error.to_string());
            Err(OpenError::Damaged { path: path.to_path_buf(), reason })
        })?;
        let (open, gone) = watch::channel(());
        store.note_when_gone(open);
        let inbox = Arc::new(Inbox::new(Arc::clone(&path)));
        let committer = Committer::new(store, Arc::clone(&inbox)).start();
        Ok(Self { committer, inbox, run, path, gone })
    }

    /// Says who is told of an owner's writes from now on.
    pub fn open_ledger(&self, open: OpenLedger) {
        self.inbox.open_ledger(open);
    }

    /// Hands a write over. The owner's ledger hears how it ended.
    pub fn write(&self, write: Write) {
        if self.inbox.lay_write(&write) {
            self.committer.do_send(Called);
        }
    }

    /// Loads the table of a record type, behind every write that was handed over before this call.
    ///
    /// # Errors
    ///
    /// [`LoadError`], and then nothing was changed. Single damaged records are no error: see [`Loaded::damaged`].
    pub fn load<R: Record + Send + 'static>(
        &self,
    ) -> impl Future<Output = Result<Loaded<R>, LoadError>> + use<R> + 'static {
        let answer = self.ask(Store::load::<R>);
        let path = self.path.to_path_buf();
        async move { answer.await.unwrap_or(Err(LoadError::Closed { path, table: R::TABLE.0 })) }
    }

    /// Which run of the host this is: it grows with every opening of the database.
    #[must_use]
    pub const fn run(&self) -> RunNumber {
        self.run
    }

    /// Where the database file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many writes were handed over and are not settled yet.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.inbox.depth()
    }

    /// How many commits there were since the database was opened, whether they succeeded or not. The writes that were settled
    /// in between, over these, is how many share one.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.inbox.commits()
    }

    /// Settles all that was handed over before, then closes the file and releases the lock. What is handed over later fails
    /// with `Closed`. Closing twice is fine.
    ///
    /// # Errors
    ///
    /// Only if the persister's thread has ended already.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.ask(Store::close).await.map_err(|_| CloseError { path: PathBuf::from(&*self.path) })
    }

    /// Whether it has ended by itself. Nothing that is handed over is done any more then.
    pub(crate) fn has_ended(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Waits until the persister has ended by itself, as after a panic of its thread, and the database may be opened anew. After
    /// [`close`](Self::close) that is not before all handles are gone.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut gone = self.gone.clone();
        // Nothing is ever sent; the sender goes with the database.
        async move { while gone.changed().await.is_ok() {} }
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Store) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |store: &mut Store| {
            // Whoever asked may have gone meanwhile, and then nobody needs the answer.
            drop(answer.send(question(store)));
        });
        if self.inbox.lay_job(job) {
            self.committer.do_send(Called);
        }
        answered
    }
}
