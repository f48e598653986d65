//! The inbox of the persister: writes and jobs in the order of their arrival, from any thread.
//!
//! It replaces the mailbox of the actor. That would cost an allocation and a wakeup per write; the inbox appends each write
//! directly to the batch, and wakes the actor once for all writes that arrive while it is busy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callboard_machines::persister::{
    Batch, Change, LedgerId, Next, Operations, Owner, Progress, Queue, UnwrittenRow, Write, WriteError,
};

use super::is_large_batch;
use super::messages::{Listener, OpenLedger, Settled};
use super::shared_queue::{Pushed, SharedQueue};
use super::worker::Job;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, PoisonError};

type Waiting = Queue<Listener, Job>;

pub(crate) struct Inbox {
    path: Arc<Path>,
    queue: SharedQueue<Waiting>,
    /// Writes in the inbox that are not settled.
    depth: AtomicUsize,
    commits: AtomicU64,
    is_closing: AtomicBool,
    /// Writes that a sick disk did not take before the end.
    lost: AtomicUsize,
    lost_rows: Mutex<Vec<UnwrittenRow>>,
}

impl Inbox {
    pub(crate) fn new(path: Arc<Path>) -> Self {
        let queue = SharedQueue::new(Queue::default());
        Self {
            path,
            queue,
            depth: AtomicUsize::new(0),
            commits: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            lost: AtomicUsize::new(0),
            lost_rows: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// From now on a write that the disk does not take is lost.
    pub(crate) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Counts lost writes, and keeps the last state of their rows.
    pub(crate) fn lose(&self, writes: usize, rows: Vec<UnwrittenRow>) {
        self.lost.fetch_add(writes, Ordering::Relaxed);
        self.lost_rows.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
    }

    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// The rows whose last state is not on disk, including lost ones, by table and key.
    pub(crate) fn unwritten(&self) -> Vec<UnwrittenRow> {
        let mut rows = self.lost_rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rows.extend(self.queue.with(|queue| last_of_each(queue.unwritten())));
        rows
    }

    /// Sets whether the disk is sick: writes that wait for a sick disk are merged.
    pub(crate) fn set_sick(&self, is_sick: bool) {
        self.queue.with(|queue| queue.set_sick(is_sick));
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Enqueues a write. True: the caller must wake the actor. If the actor has ended permanently, the write fails, and its
    /// owner is notified.
    pub(crate) fn lay_write(&self, write: &Write) -> bool {
        let pushed = self.queue.push(
            |queue| {
                if queue.push(write) {
                    self.depth.fetch_add(1, Ordering::Relaxed);
                    self.depth.fetch_sub(queue.merge_if_due(), Ordering::Relaxed);
                }
            },
            |queue| queue.refuse(write).map(|refused| (refused, queue.listener(&refused).cloned())),
        );
        match pushed {
            Ok(pushed) => pushed == Pushed::Wake,
            Err(refused) => {
                self.tell_failed(refused);
                false
            }
        }
    }

    /// Enqueues a job, behind every earlier write. True: the caller must wake the actor. If the actor has ended permanently,
    /// the job is dropped.
    pub(crate) fn lay_job(&self, job: Job) -> bool {
        self.queue.push(|queue| queue.push_job(job), |_| ()) == Ok(Pushed::Wake)
    }

    /// Sets the recipient of an owner's write results.
    pub(crate) fn open_ledger(&self, open: OpenLedger) -> LedgerId {
        self.queue.with(|queue| queue.open_ledger(open.owner, open.settled))
    }

    /// The owner has ended; what it has handed over is still committed.
    pub(crate) fn close_ledger(&self, owner: Owner, id: LedgerId) {
        self.queue.with(|queue| queue.close_ledger(owner, id));
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    pub(crate) fn writes(&self) -> usize {
        self.queue.with(|queue| queue.writes())
    }

    /// Takes the first job out of its place, and adds copies of the operations that were queued before it.
    pub(crate) fn take_job(&self, before: &mut Operations) -> Option<Job> {
        self.queue.with(|queue| queue.take_job(before))
    }

    /// Takes the next commit or job. If there is none, the actor is woken when there is.
    pub(crate) fn next(&self, writes_max: usize) -> Option<Next<Job>> {
        self.queue.next(|queue| queue.next(writes_max))
    }

    /// The next commit, if enough writes are queued that it need not wait for the writers of the last one, which had
    /// `settled` writes.
    pub(crate) fn next_large_batch(&self, settled: usize) -> Option<Batch> {
        self.queue
            .with(|queue| if is_large_batch(queue.writes(), settled) { queue.next_batch() } else { None })
    }

    /// Settles a commit, and returns the notifications with their recipients. A failure also fails the dependent writes;
    /// their number is returned too.
    pub(crate) fn settle(
        &self,
        progress: &[Progress],
        writes: usize,
        is_failed: bool,
    ) -> (Vec<(Progress, Listener)>, usize) {
        self.queue.with(|queue| {
            let dropped = if is_failed {
                queue.fail(progress)
            } else {
                queue.settle(progress);
                0
            };
            self.depth.fetch_sub(writes + dropped, Ordering::Relaxed);
            let listeners = progress.iter().filter_map(|one| Some((*one, queue.listener(one)?.clone())));
            (listeners.collect(), dropped)
        })
    }

    pub(crate) fn take_back(&self, operations: Arc<Operations>) {
        self.queue.with(|queue| queue.take_back(operations));
    }

    /// Fails everything that is queued and refuses everything later: owners of writes are notified, jobs are dropped.
    pub(crate) fn close(&self) {
        let (told, jobs) = self.queue.close(|queue| {
            let (failed, jobs) = queue.close();
            let listener = |one: &Progress| queue.listener(one).cloned();
            let told: Vec<_> = failed.into_iter().map(|one| (one, listener(&one))).collect();
            self.depth.store(0, Ordering::Relaxed);
            (told, jobs)
        });
        drop(jobs);
        self.tell_failed(told);
    }

    /// Notifies ledgers that their writes have failed because the persister has ended.
    fn tell_failed(&self, told: impl IntoIterator<Item = (Progress, Option<Listener>)>) {
        for (Progress { epoch, through, .. }, listener) in told {
            if let Some(listener) = listener {
                let outcome = Err(WriteError::Ended { path: PathBuf::from(&*self.path) });
                listener.do_send(Settled { epoch, through, outcome });
            }
        }
    }
}

/// The last state of each row.
fn last_of_each<'a>(changes: impl Iterator<Item = Change<'a>>) -> Vec<UnwrittenRow> {
    let rows: BTreeMap<_, _> = changes.map(|change| ((change.table, change.key), change)).collect();
    let row = |change: Change<'_>| UnwrittenRow {
        table: change.table,
        key: change.key.to_vec(),
        record: change.record().map(<[u8]>::to_vec),
        name: String::from_utf8_lossy(change.name).into_owned(),
    };
    rows.into_values().map(row).collect()
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("depth", &self.depth()).finish_non_exhaustive()
    }
}
