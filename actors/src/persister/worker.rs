//! The thread beside the mailbox: it has the store while there is work, and goes when there is none.
//!
//! ```text
//!   actor --- assign(task) ---> handoff ---> thread --- Done ---> actor
//! ```
//!
//! Where a crowd waits, the thread does not wait to be told: behind a commit that succeeded it takes the next one from the inbox
//! itself, while the actor still tells who is settled.
//!
//! It is one of tokio's blocking threads, which a paused clock waits for (P1); a thread of our own would let virtual time run
//! ahead. Waking a thread that sleeps costs about as much as a third of a small commit, so it stays awake for a moment after
//! each task, in which the next one usually comes when there is load.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::errors::WriteError;
use super::handoff::Receiving;
use super::inbox::Inbox;
use super::queue::Batch;
use super::store::Store;

/// How long the thread looks out for more work before it goes.
const LINGER: Duration = Duration::from_micros(150);

/// Work with the database that is not a write.
pub(super) type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// What the thread is to do.
pub(super) enum Task {
    Commit(Batch),
    Run(Job),
}

/// What it has done.
#[derive(Debug)]
pub(super) enum Done {
    /// The batch comes back to where its memory was taken, which is cheaper than to give that back from another thread.
    Committed {
        batch: Batch,
        outcome: Result<(), WriteError>,
        took: Duration,
        /// Whether the thread is at the next commit already.
        goes_on: bool,
    },
    Ran,
}

/// Starts a thread that does the tasks that come through this handoff, and tells `done` of each that it has finished.
pub(super) fn start(
    store: &Arc<Mutex<Store>>,
    inbox: &Arc<Inbox>,
    tasks: Receiving<Task>,
    done: UnboundedSender<Done>,
) {
    let worker = Worker { tasks, inbox: Arc::clone(inbox), done };
    let store = Arc::clone(store);
    actix_rt::task::spawn_blocking(move || worker.work(&store));
}

/// What the thread has.
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
                    job(&mut store);
                    self.done.send(Done::Ran).is_ok()
                }
            };
            if !is_heard {
                break;
            }
        }
    }

    /// The next task, unless none comes for a while.
    fn next(&self) -> Option<Task> {
        let until = Instant::now() + LINGER;
        self.tasks.wait(|| Instant::now() >= until, std::thread::yield_now)
    }

    /// Commits a batch, and whatever crowd waits behind it. False: nobody hears what is done any more.
    fn commit(&self, store: &mut Store, first: Batch) -> bool {
        let mut next = Some(first);
        let mut is_heard = true;
        while let Some(batch) = next.take() {
            let begun = Instant::now();
            let outcome = store.commit(&batch.operations);
            let took = begun.elapsed();
            // What waits may depend on a commit that failed.
            next = outcome.is_ok().then(|| self.inbox.next_of_crowd(batch.writes)).flatten();
            let goes_on = next.is_some();
            is_heard = self.done.send(Done::Committed { batch, outcome, took, goes_on }).is_ok();
        }
        is_heard
    }
}
