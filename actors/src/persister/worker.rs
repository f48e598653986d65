//! The database thread: it owns the store while there is work, and ends when there is none.
//!
//! ```text
//!   actor --- assign(task) ---> handoff ---> thread --- Done ---> actor
//! ```
//!
//! Under high load, the thread does not wait for the actor: after a successful commit it takes the next one from the inbox
//! itself, while the actor still notifies the ledgers.
//!
//! It is one of tokio's blocking threads, which a paused clock waits for (P1); a plain thread would let virtual time run
//! ahead. Waking a sleeping thread costs about a third of a small commit, so it spins for a moment after each task; under
//! load the next one usually comes in that time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use callboard_machines::persister::{Batch, Operations, WriteError};
use tokio::sync::mpsc::UnboundedSender;

use super::handoff::Receiving;
use super::inbox::Inbox;
use super::store::Store;
use crate::sync::{Arc, Instant, Mutex, PoisonError, spawn_blocking, thread};

/// How long the thread spins for more work before it ends.
const LINGER: Duration = Duration::from_micros(150);

/// A database operation other than a write. The actor answers its caller: [`Done`] wakes the thread of the actor anyway, and an answer
/// from here would wake it once more.
pub(crate) type Job = Box<dyn FnOnce(&mut Store) -> Reply + Send>;

/// Answers the caller of a job.
pub(crate) type Reply = Box<dyn FnOnce() + Send>;

pub(crate) enum Task {
    Commit(Batch),
    Run(Job),
    /// Runs the job as if these operations, which the disk did not take, were on disk.
    RunOver(Operations, Job),
}

pub(crate) enum Done {
    /// The batch is returned to the thread that allocated its buffer, which is cheaper than freeing it on another thread.
    Committed {
        batch: Batch,
        outcome: Result<(), WriteError>,
        took: Duration,
        /// Whether the thread has started the next commit already.
        goes_on: bool,
    },
    Ran(Reply),
}

/// Starts a thread that executes the tasks of this handoff, and reports each result to `done`.
pub(crate) fn start(
    store: &Arc<Mutex<Store>>,
    inbox: &Arc<Inbox>,
    tasks: Receiving<Task>,
    done: UnboundedSender<Done>,
    is_in_place: bool,
) {
    let worker = Worker { tasks, inbox: Arc::clone(inbox), done };
    let store = Arc::clone(store);
    let work = move || worker.work(&store);
    if is_in_place {
        // No time passes, so that a run under virtual time has one order. A panic ends it as it would end a thread.
        drop(catch_unwind(AssertUnwindSafe(work)));
    } else {
        spawn_blocking(work);
    }
}

struct Worker {
    tasks: Receiving<Task>,
    inbox: Arc<Inbox>,
    done: UnboundedSender<Done>,
}

impl Worker {
    fn work(&self, store: &Mutex<Store>) {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(task) = self.next() {
            let is_heard = match task {
                Task::Commit(batch) => self.commit(&mut store, batch),
                Task::Run(job) => {
                    let reply = job(&mut store);
                    self.done.send(Done::Ran(reply)).is_ok()
                }
                Task::RunOver(unwritten, job) => {
                    store.read_over(Some(unwritten));
                    let reply = job(&mut store);
                    store.read_over(None);
                    self.done.send(Done::Ran(reply)).is_ok()
                }
            };
            if !is_heard {
                break;
            }
        }
    }

    /// The next task, unless no task comes for a while.
    fn next(&self) -> Option<Task> {
        let until = Instant::now() + LINGER;
        self.tasks.wait(|| Instant::now() >= until, thread::yield_now)
    }

    /// Commits a batch, and further batches under high load. False: the receiver of the results is gone.
    fn commit(&self, store: &mut Store, first: Batch) -> bool {
        let mut next = Some(first);
        let mut is_heard = true;
        while let Some(batch) = next.take() {
            let begun = Instant::now();
            let outcome = store.commit(&batch.operations);
            let took = begun.elapsed();
            // Queued writes may depend on a failed commit.
            next = outcome.is_ok().then(|| self.inbox.next_large_batch(batch.writes)).flatten();
            let goes_on = next.is_some();
            is_heard = self.done.send(Done::Committed { batch, outcome, took, goes_on }).is_ok();
        }
        is_heard
    }
}
