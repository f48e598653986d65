//! The two ends of a task's journal: the eventor's, and the handler's.

use std::fmt;
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{Journal, Taken};
use crate::driver::{EventPosition, TaskEventItem};

struct State {
    journal: Journal,
    ended: bool,
    abandoned: bool,
    reader: Option<Waker>,
    /// Where everything goes since another took its place.
    heir: Option<TaskEventSink>,
}

struct Shared(Mutex<State>);

impl Shared {
    fn new(limit: usize, after: Option<EventPosition>) -> Arc<Self> {
        let journal = Journal::new(limit, after);
        let state = State { journal, ended: false, abandoned: false, reader: None, heir: None };
        Arc::new(Self(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and wakes the reader.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let outcome = change(&mut state);
        Self::wake(state);
        outcome
    }

    /// Lets go of the journal, and wakes its reader.
    fn wake(mut state: MutexGuard<'_, State>) {
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The eventor's end of a task's journal. Putting something in never waits for the handler (EVT-01).
#[derive(Clone)]
pub struct TaskEventSink {
    shared: Arc<Shared>,
    /// Who reads is told when nobody is left who could put something in.
    _last: Arc<EndOfAll>,
}

struct EndOfAll(Arc<Shared>);

impl Drop for EndOfAll {
    fn drop(&mut self) {
        self.0.change(|state| state.ended = true);
    }
}

/// The handler's end of a task's journal: reads the task's events in order, each once, at its own pace. When it is dropped,
/// the task's events go nowhere.
pub struct TaskEvents {
    shared: Arc<Shared>,
}

/// Makes the two ends of a journal of at most `limit` items, for a handler that has had everything up to `after`: in this run
/// of the host or in an earlier one. The sink goes into [`RegisterTaskHandler`](crate::drivers::RegisterTaskHandler).
#[must_use]
pub fn task_events(limit: usize, after: Option<EventPosition>) -> (TaskEventSink, TaskEvents) {
    let shared = Shared::new(limit, after);
    (TaskEventSink::of(Arc::clone(&shared)), TaskEvents { shared })
}

/// A sink whose items are handed to a function one by one, in order, on the present arbiter and outside of every actor; an
/// actix recipient fits in with `move |item| recipient.do_send(Told(item))`. The function is called no more once the task that
/// is returned is aborted; it ends by itself when nothing comes any more.
pub fn task_event_callback(
    limit: usize,
    after: Option<EventPosition>,
    mut told: impl FnMut(TaskEventItem) + 'static,
) -> (TaskEventSink, tokio::task::JoinHandle<()>) {
    let (sink, mut events) = task_events(limit, after);
    let task = actix_rt::spawn(async move {
        while let Some(item) = events.next().await {
            told(item);
        }
    });
    (sink, task)
}

impl TaskEventSink {
    fn of(shared: Arc<Shared>) -> Self {
        Self { _last: Arc::new(EndOfAll(Arc::clone(&shared))), shared }
    }

    /// A sink that nobody reads from yet: for a task whose handler comes later (EVT-02).
    pub fn parked(limit: usize) -> Self {
        Self::of(Shared::new(limit, None))
    }

    /// Puts an item in. The eventor does; a host does only to try out a handler of its own.
    pub fn put(&self, item: TaskEventItem) -> Taken {
        let mut state = self.shared.lock();
        if let Some(heir) = state.heir.clone() {
            drop(state);
            return heir.put(item);
        }
        if state.abandoned {
            return Taken::Had;
        }
        let taken = state.journal.put(item);
        Shared::wake(state);
        taken
    }

    /// Gives what waits here to another sink, and everything that comes later as well.
    pub(crate) fn hand_over(&self, to: &Self) {
        if self.is_same(to) {
            return;
        }
        let mut state = self.shared.lock();
        while let Some(item) = state.journal.take() {
            to.put(item);
        }
        state.heir = Some(to.clone());
    }

    /// Says that nothing comes any more. What waits can still be read.
    pub fn end(&self) {
        self.shared.change(|state| state.ended = true);
    }

    /// Whether the handler has dropped its end.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.lock().abandoned
    }

    /// The place of the last event that was put in, or that the handler had before.
    #[must_use]
    pub fn position(&self) -> Option<EventPosition> {
        self.shared.lock().journal.last().cloned()
    }

    /// Whether both are ends of one journal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl TaskEvents {
    /// Waits for the next item. `None` means that nothing comes any more: the task was forgotten, its driver removed, or
    /// another handler took this one's place. Giving up this future loses nothing.
    pub async fn next(&mut self) -> Option<TaskEventItem> {
        poll_fn(|context| self.poll_item(context)).await
    }

    /// The next item if there is one now.
    pub fn try_next(&mut self) -> Option<TaskEventItem> {
        self.shared.lock().journal.take()
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<TaskEventItem>> {
        let mut state = self.shared.lock();
        match state.journal.take() {
            Some(item) => Poll::Ready(Some(item)),
            None if state.ended => Poll::Ready(None),
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for TaskEvents {
    fn drop(&mut self) {
        self.shared.lock().abandoned = true;
    }
}

impl fmt::Debug for TaskEventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.shared.lock().journal.len();
        f.debug_struct("TaskEventSink").field("unread", &unread).finish_non_exhaustive()
    }
}

impl Hash for TaskEventSink {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shared.lock().journal.len().hash(state);
    }
}

impl fmt::Debug for TaskEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.shared.lock().journal.len();
        f.debug_struct("TaskEvents").field("unread", &unread).finish_non_exhaustive()
    }
}
