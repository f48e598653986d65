//! The inbox of the persister: writes and jobs in the order of their arrival, from any thread.
//!
//! It replaces the mailbox of the actor. That would cost an allocation and a wakeup per write; the inbox appends each write
//! directly to the batch, and wakes the actor once for all writes that arrive while it is busy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use actix::Recipient;

use super::errors::WriteError;
use super::messages::{OpenLedger, Owner, Settled, UnwrittenRow, Write};
use super::operations::{Change, Operations};
use super::pacing::is_crowd;
use super::queue::{Batch, LedgerId, Next, Progress, Queue};
use super::shared_queue::{Pushed, SharedQueue};
use super::worker::Job;

type Waiting = Queue<Recipient<Settled>, Job>;

pub(super) struct Inbox {
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
    pub(super) fn new(path: Arc<Path>) -> Self {
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// From now on a write that the disk does not take is lost.
    pub(super) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Writes are lost, and with them the last state of these rows.
    pub(super) fn lose(&self, writes: usize, rows: Vec<UnwrittenRow>) {
        self.lost.fetch_add(writes, Ordering::Relaxed);
        self.lost_rows.lock().unwrap_or_else(PoisonError::into_inner).extend(rows);
    }

    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// The rows that are not on disk as they were handed over, those that are lost included, by table and key.
    pub(super) fn unwritten(&self) -> Vec<UnwrittenRow> {
        let mut rows = self.lost_rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rows.extend(self.queue.with(|queue| last_of_each(queue.unwritten())));
        rows
    }

    /// What waits for a sick disk is merged.
    pub(super) fn set_sick(&self, is_sick: bool) {
        self.queue.with(|queue| queue.set_sick(is_sick));
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Enqueues a write. True: the caller must wake the actor. If the actor has ended for good, the write fails, and its
    /// owner is notified.
    pub(super) fn lay_write(&self, write: &Write) -> bool {
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

    /// Enqueues a job, behind every earlier write. True: the caller must wake the actor. If the actor has ended for good,
    /// the job is dropped.
    pub(super) fn lay_job(&self, job: Job) -> bool {
        self.queue.push(|queue| queue.push_job(job), |_| ()) == Ok(Pushed::Wake)
    }

    /// Sets the recipient of an owner's write results.
    pub(super) fn open_ledger(&self, open: OpenLedger) -> LedgerId {
        self.queue.with(|queue| queue.open_ledger(open.owner, open.settled))
    }

    /// The owner has ended; what it has handed over is still committed.
    pub(super) fn close_ledger(&self, owner: Owner, id: LedgerId) {
        self.queue.with(|queue| queue.close_ledger(owner, id));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    pub(super) fn writes(&self) -> usize {
        self.queue.with(|queue| queue.writes())
    }

    /// Takes the first job out of its place, and adds copies of the operations that were queued before it.
    pub(super) fn take_job(&self, before: &mut Operations) -> Option<Job> {
        self.queue.with(|queue| queue.take_job(before))
    }

    /// Takes the next commit or job. If there is none, the actor is woken when there is.
    pub(super) fn next(&self, writes_max: usize) -> Option<Next<Job>> {
        self.queue.next(|queue| queue.next(writes_max))
    }

    /// The next commit, if enough writes are queued that it need not wait for the writers of the last one, which had
    /// `settled` writes.
    pub(super) fn next_of_crowd(&self, settled: usize) -> Option<Batch> {
        self.queue.with(|queue| if is_crowd(queue.writes(), settled) { queue.next_batch() } else { None })
    }

    /// Settles a commit, and returns the notifications with their recipients. A failure also fails the dependent writes;
    /// their number is returned too.
    pub(super) fn settle(
        &self,
        progress: &[Progress],
        writes: usize,
        is_failed: bool,
    ) -> (Vec<(Progress, Recipient<Settled>)>, usize) {
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

    pub(super) fn take_back(&self, operations: Arc<Operations>) {
        self.queue.with(|queue| queue.take_back(operations));
    }

    /// Fails everything that is queued and refuses everything later: owners of writes are notified, jobs are dropped.
    pub(super) fn close(&self) {
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
    fn tell_failed(&self, told: impl IntoIterator<Item = (Progress, Option<Recipient<Settled>>)>) {
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

#[cfg(test)]
mod tests {
    use super::super::messages::{Operation, Table};
    use super::*;

    fn write(sequence: u64) -> Write {
        let operations = vec![Operation::Delete { table: Table("t"), key: vec![7], name: String::new() }];
        Write { owner: Owner::new("registry"), epoch: 1, sequence, operations }
    }

    fn empty() -> Inbox {
        Inbox::new(Path::new("/data/callboard.redb").into())
    }

    fn holding(writes: u64) -> Inbox {
        let inbox = empty();
        lay_writes(&inbox, writes);
        inbox
    }

    fn lay_writes(inbox: &Inbox, writes: u64) {
        for sequence in 0..writes {
            inbox.lay_write(&write(sequence));
        }
    }

    #[test]
    fn the_actor_is_called_once_for_all_that_comes_until_it_has_found_nothing() {
        let inbox = empty();
        assert!(inbox.lay_write(&write(1)), "the actor does not look");
        assert!(!inbox.lay_write(&write(2)), "it was called already");
        assert!(matches!(inbox.next(1), Some(Next::Commit(_))));
        assert!(!inbox.lay_write(&write(3)), "it will look again");
        assert!(matches!(inbox.next(7), Some(Next::Commit(_))));
        assert!(inbox.next(7).is_none());
        assert!(inbox.lay_job(Box::new(|_| ())), "the actor does not look any more");
    }

    #[test]
    fn the_thread_takes_a_crowd_itself_and_leaves_few_and_jobs_to_the_actor_p1() {
        let batch = holding(256).next_of_crowd(512).expect("half of those before are enough");
        assert_eq!(batch.writes, 256);
        assert!(holding(255).next_of_crowd(512).is_none(), "most of them are on their way");
        assert!(holding(10).next_of_crowd(8).is_none(), "few share what they can");
        let inbox = empty();
        inbox.lay_job(Box::new(|_| ()));
        lay_writes(&inbox, 256);
        assert!(inbox.next_of_crowd(256).is_none(), "a job came before them");
        assert!(matches!(inbox.next(256), Some(Next::Job(_))));
    }

    #[test]
    fn a_caller_that_waits_for_work_learns_that_it_is_not_done_any_more() {
        let inbox = holding(1);
        let (answer, mut answered) = tokio::sync::oneshot::channel::<()>();
        inbox.lay_job(Box::new(move |_| answer.send(()).unwrap_or_default()));
        inbox.close();
        let closed = Err(tokio::sync::oneshot::error::TryRecvError::Closed);
        assert_eq!(answered.try_recv(), closed);
        assert!(!inbox.lay_write(&write(2)), "there is no actor to call");
        assert_eq!(inbox.writes(), 0);
    }
}
