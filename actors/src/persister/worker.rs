//! The thread beside the mailbox: it has the store while there is work, and goes when there is none.
//!
//! ```text
//!   actor --- lay(task) ---> desk ---> thread --- Done ---> actor
//! ```
//!
//! It is one of tokio's blocking threads, which a paused clock waits for (P1); a thread of our own would let virtual time run
//! ahead. Waking a thread that sleeps costs about as much as a third of a small commit, so it stays awake for a moment after
//! each task, in which the next one usually comes when there is load.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::errors::WriteError;
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
    },
    Ran,
}

/// Where tasks are laid for a thread, one at a time.
pub(super) struct Desk(Mutex<Place>);

enum Place {
    Empty,
    Laid(Task),
    /// The thread has gone, or is about to.
    Deserted,
}

impl Desk {
    /// Puts a thread to work. It begins with `first`, and tells `done` of each task it has finished.
    pub(super) fn attended(store: &Arc<Mutex<Store>>, first: Task, done: UnboundedSender<Done>) -> Arc<Self> {
        let desk = Arc::new(Self(Mutex::new(Place::Laid(first))));
        let attendant = Attendant { desk: Arc::clone(&desk), done };
        let store = Arc::clone(store);
        actix_rt::task::spawn_blocking(move || attendant.attend(&store));
        desk
    }

    /// Lays the next task down. It comes back if the thread has gone.
    pub(super) fn lay(&self, task: Task) -> Result<(), Task> {
        let mut place = self.place();
        match *place {
            Place::Empty | Place::Laid(_) => {
                *place = Place::Laid(task);
                Ok(())
            }
            Place::Deserted => Err(task),
        }
    }

    /// Whether the thread has gone.
    pub(super) fn is_deserted(&self) -> bool {
        matches!(*self.place(), Place::Deserted)
    }

    /// The next task, unless none comes for a while.
    fn wait(&self) -> Option<Task> {
        let until = Instant::now() + LINGER;
        loop {
            let is_over = Instant::now() >= until;
            let mut place = self.place();
            match std::mem::replace(&mut *place, if is_over { Place::Deserted } else { Place::Empty }) {
                Place::Laid(task) => {
                    *place = Place::Empty;
                    return Some(task);
                }
                Place::Empty | Place::Deserted if is_over => return None,
                Place::Empty | Place::Deserted => {}
            }
            drop(place);
            std::thread::yield_now();
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's end of a desk. However the thread ends, and even if it never began, the desk is deserted then.
struct Attendant {
    desk: Arc<Desk>,
    done: UnboundedSender<Done>,
}

impl Attendant {
    fn attend(&self, store: &Mutex<Store>) {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(task) = self.desk.wait() {
            let finished = carry_out(&mut store, task);
            if self.done.send(finished).is_err() {
                break;
            }
        }
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        *self.desk.place() = Place::Deserted;
    }
}

fn carry_out(store: &mut Store, task: Task) -> Done {
    match task {
        Task::Commit(batch) => {
            let outcome = store.commit(&batch.writes);
            Done::Committed { batch, outcome }
        }
        Task::Run(job) => {
            job(store);
            Done::Ran
        }
    }
}
