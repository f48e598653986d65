//! A stream that says what it is told to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use tonic::Status;

/// What a stream says next: something, an error, or that it is over.
pub(super) type Item<T> = Option<Result<T, Status>>;

/// A stream that says what it is told to. Clones are the same one.
pub(super) struct Says<T>(Arc<Mutex<Queue<T>>>);

struct Queue<T> {
    items: VecDeque<Item<T>>,
    reader: Option<Waker>,
}

impl<T> Clone for Says<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Says<T> {
    pub(super) fn new(items: impl IntoIterator<Item = Item<T>>) -> Self {
        Self(Arc::new(Mutex::new(Queue { items: items.into_iter().collect(), reader: None })))
    }

    pub(super) fn say(&self, item: Item<T>) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.items.push_back(item);
        if let Some(reader) = queue.reader.take() {
            reader.wake();
        }
    }
}

impl<T> Stream for Says<T> {
    type Item = Result<T, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item<T>> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match queue.items.pop_front() {
            Some(item) => Poll::Ready(item),
            None => {
                queue.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
