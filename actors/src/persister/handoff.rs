//! Hands tasks to a thread, one at a time. The thread leaves when none comes for a while.
//!
//! An owner may start a second thread while it has not heard yet that the first one has left. What it then hears of the first
//! says nothing about the second: [`Handoffs::left`] tells them apart.

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place for one task between an owner and a thread.
#[derive(Debug)]
pub(crate) struct Handoff<T>(Mutex<Place<T>>);

#[derive(Debug)]
enum Place<T> {
    Empty,
    Offered(T),
    /// The thread has left, or is about to.
    Left,
}

impl<T> Handoff<T> {
    /// The next task, unless none comes until `is_over` says so. From then on tasks are refused.
    pub(crate) fn wait(&self, mut is_over: impl FnMut() -> bool, mut pause: impl FnMut()) -> Option<T> {
        loop {
            let is_over = is_over();
            let mut place = self.place();
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

/// The thread's end. However the thread ends, and even if it never began, tasks are refused from then on.
#[derive(Debug)]
pub(crate) struct Receiving<T>(Arc<Handoff<T>>);

impl<T> std::ops::Deref for Receiving<T> {
    type Target = Handoff<T>;

    fn deref(&self) -> &Handoff<T> {
        &self.0
    }
}

impl<T> Drop for Receiving<T> {
    fn drop(&mut self) {
        *self.0.place() = Place::Left;
    }
}

/// The owner's end: the thread that has the next task, if there is one.
#[derive(Debug)]
pub(crate) struct Handoffs<T> {
    present: Option<Arc<Handoff<T>>>,
}

impl<T> Handoffs<T> {
    /// No thread yet.
    pub(crate) const fn new() -> Self {
        Self { present: None }
    }

    /// Hands the present thread its next task. If there is none, or it has left, a new thread is to be started: it begins with
    /// this task, and is known by the identity that is given with its end.
    pub(crate) fn assign(&mut self, task: T) -> Option<(Arc<Handoff<T>>, Receiving<T>)> {
        let task = match &self.present {
            Some(present) => present.offer(task).err()?,
            None => task,
        };
        let handoff = Arc::new(Handoff(Mutex::new(Place::Offered(task))));
        self.present = Some(Arc::clone(&handoff));
        Some((Arc::clone(&handoff), Receiving(handoff)))
    }

    /// A thread has left, and all that it has done was heard. Whether it is the one that has the present task.
    pub(crate) fn left(&mut self, handoff: &Arc<Handoff<T>>) -> bool {
        let is_present = self.present.as_ref().is_some_and(|present| Arc::ptr_eq(present, handoff));
        if is_present {
            self.present = None;
        }
        is_present
    }
}
