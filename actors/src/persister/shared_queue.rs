//! A queue that producers of any thread share with one consumer, which is woken once for as many items as come while it is busy.

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The queue, and whether its consumer will look at it again without being woken.
#[derive(Debug)]
pub(crate) struct SharedQueue<Q>(Mutex<State<Q>>);

#[derive(Debug)]
struct State<Q> {
    queue: Q,
    is_attended: bool,
    /// Whether the consumer has left for good.
    is_closed: bool,
}

/// What a producer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Wakes the consumer.
    Wake,
    /// Nothing: the consumer looks at the queue again by itself.
    Attended,
}

impl<Q> SharedQueue<Q> {
    pub(crate) const fn new(queue: Q) -> Self {
        Self(Mutex::new(State { queue, is_attended: false, is_closed: false }))
    }

    /// Puts something into the queue, if there is a consumer; else gives what `refuse` makes of it.
    pub(crate) fn push<R>(
        &self,
        push: impl FnOnce(&mut Q),
        refuse: impl FnOnce(&mut Q) -> R,
    ) -> Result<Pushed, R> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(refuse(&mut state.queue));
        }
        push(&mut state.queue);
        if std::mem::replace(&mut state.is_attended, true) { Ok(Pushed::Attended) } else { Ok(Pushed::Wake) }
    }

    /// The consumer takes the next item. If there is none, it is woken when there is.
    pub(crate) fn next<T>(&self, take: impl FnOnce(&mut Q) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        let next = take(&mut state.queue);
        state.is_attended = next.is_some();
        next
    }

    /// Looks at the queue or changes it, which wakes nobody.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Q) -> T) -> T {
        look(&mut self.lock().queue)
    }

    /// Whether the consumer has left for good.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The consumer leaves for good. What is in the queue then is for `clear`; nothing is put into it later.
    pub(crate) fn close<T>(&self, clear: impl FnOnce(&mut Q) -> T) -> T {
        let mut state = self.lock();
        state.is_closed = true;
        clear(&mut state.queue)
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
