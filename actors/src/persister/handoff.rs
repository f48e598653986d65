//! Hands tasks to a thread, one at a time. The thread ends when no task comes for a while.
//!
//! An owner may start a second thread before it is notified that the first one has ended. A late notification of the first
//! does not concern the second: [`Handoffs::left`] distinguishes them.

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A slot for one task between an owner and a thread.
#[derive(Debug)]
pub(crate) struct Handoff<T>(Mutex<Place<T>>);

#[derive(Debug)]
enum Place<T> {
    Empty,
    Offered(T),
    /// The thread has ended, or is about to.
    Left,
}

impl<T> Handoff<T> {
    fn offer(&self, task: T) -> Result<(), T> {
        let mut place = self.place();
        match *place {
            Place::Empty | Place::Offered(_) => {
                *place = Place::Offered(task);
                Ok(())
            }
            Place::Left => Err(task),
        }
    }

    fn place(&self) -> MutexGuard<'_, Place<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's end. When it is dropped, tasks are refused: also if the thread panicked or never began.
#[derive(Debug)]
pub(crate) struct Receiving<T>(Arc<Handoff<T>>);

impl<T> Receiving<T> {
    /// Waits for the next task until `is_over` returns true. From then on tasks are refused.
    pub(crate) fn wait(&self, mut is_over: impl FnMut() -> bool, mut pause: impl FnMut()) -> Option<T> {
        loop {
            let is_over = is_over();
            let mut place = self.0.place();
            match std::mem::replace(&mut *place, if is_over { Place::Left } else { Place::Empty }) {
                Place::Offered(task) => {
                    *place = Place::Empty;
                    return Some(task);
                }
                Place::Empty | Place::Left if is_over => return None,
                Place::Empty | Place::Left => {}
            }
            drop(place);
            pause();
        }
    }
}

impl<T> Drop for Receiving<T> {
    fn drop(&mut self) {
        *self.0.place() = Place::Left;
    }
}

/// The owner's end: the handoff of the thread that takes the next task, if there is one.
#[derive(Debug)]
pub(crate) struct Handoffs<T> {
    present: Option<Arc<Handoff<T>>>,
}

impl<T> Handoffs<T> {
    pub(crate) const fn new() -> Self {
        Self { present: None }
    }

    /// Hands the next task to the present thread. If there is none, or it has ended, the caller must start a new thread with
    /// the returned receiver: it begins with this task, and its end is reported with the returned identity.
    pub(crate) fn assign(&mut self, task: T) -> Option<(Arc<Handoff<T>>, Receiving<T>)> {
        let task = match &self.present {
            Some(present) => present.offer(task).err()?,
            None => task,
        };
        let handoff = Arc::new(Handoff(Mutex::new(Place::Offered(task))));
        self.present = Some(Arc::clone(&handoff));
        Some((Arc::clone(&handoff), Receiving(handoff)))
    }

    /// A thread has ended, and all its results were received. Returns whether it had the current task.
    pub(crate) fn left(&mut self, handoff: &Arc<Handoff<T>>) -> bool {
        let is_present = self.present.as_ref().is_some_and(|present| Arc::ptr_eq(present, handoff));
        if is_present {
            self.present = None;
        }
        is_present
    }
}
