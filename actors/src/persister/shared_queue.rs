//! A multi-producer queue with one consumer, which is woken once for all items that arrive while it is busy.

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The queue, and whether its consumer will check it again without a wakeup.
#[derive(Debug)]
pub(crate) struct SharedQueue<Q>(Mutex<State<Q>>);

#[derive(Debug)]
struct State<Q> {
    queue: Q,
    is_attended: bool,
    is_closed: bool,
}

/// The action that the producer must take after a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// Wake the consumer.
    Wake,
    /// Nothing: the consumer will check the queue again.
    Attended,
}

impl<Q> SharedQueue<Q> {
    pub(crate) const fn new(queue: Q) -> Self {
        Self(Mutex::new(State { queue, is_attended: false, is_closed: false }))
    }

    /// Enqueues an item if there is a consumer; otherwise returns the result of `refuse`.
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

    /// The consumer takes the next item. If there is none, it is woken by the next push.
    pub(crate) fn next<T>(&self, take: impl FnOnce(&mut Q) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        let next = take(&mut state.queue);
        state.is_attended = next.is_some();
        next
    }

    /// Reads or changes the queue without waking the consumer.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Q) -> T) -> T {
        look(&mut self.lock().queue)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The consumer ends permanently: `clear` handles the remaining items, and later pushes are refused.
    pub(crate) fn close<T>(&self, clear: impl FnOnce(&mut Q) -> T) -> T {
        let mut state = self.lock();
        state.is_closed = true;
        clear(&mut state.queue)
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
