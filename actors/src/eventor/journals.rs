//! The journals of tasks: eventors put events in, and handlers read them, each at its own pace.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use super::{Journal, JournalId, Taken};
use crate::driver::{EventPosition, TaskEventItem};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The journals of the tasks of a host, of all its drivers. Clones share them; it can be used from any thread. No lock is held
/// across a wait.
#[derive(Clone, Default)]
pub struct TaskJournals(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// The number of the latest handler.
    handlers: u64,
    open: HashMap<JournalId, Open>,
    /// The journals that receive the events of journals that were handed over.
    heirs: HashMap<JournalId, JournalId>,
}

struct Open {
    shared: Arc<Shared>,
    /// Whether the owner of the drivers knows the journal. Until then only its reader does.
    is_claimed: bool,
}

struct Shared(Mutex<State>);

struct State {
    journal: Journal,
    ended: bool,
    abandoned: bool,
    reader: Option<Waker>,
}

/// The handler's end of a task's journal: reads the task's events in order, each once, at its own pace. When it is dropped,
/// the task's events are discarded.
pub struct TaskEvents {
    shared: Arc<Shared>,
    journals: Weak<Mutex<Table>>,
    id: JournalId,
}

impl TaskJournals {
    /// Opens a journal of at most `limit` items, for a handler that has received everything up to `after`: in this run of the host
    /// or in an earlier one. Its id goes into [`RegisterTaskHandler`](crate::drivers::RegisterTaskHandler).
    #[must_use]
    pub fn open(&self, limit: usize, after: Option<EventPosition>) -> (JournalId, TaskEvents) {
        let mut table = self.table();
        table.handlers += 1;
        let id = JournalId::Handler(table.handlers);
        let shared = table.add(id, Journal::new(limit, after));
        (id, TaskEvents { shared, journals: Arc::downgrade(&self.0), id })
    }

    /// Opens a journal whose items are passed to a function one by one, in order, on the present arbiter and outside of every
    /// actor; for an actix recipient, use `move |item| recipient.do_send(Told(item))`. The function is no longer called once the
    /// returned task is aborted; the task ends by itself at the end of the journal.
    pub fn call_back(
        &self,
        limit: usize,
        after: Option<EventPosition>,
        mut told: impl FnMut(TaskEventItem) + 'static,
    ) -> (JournalId, tokio::task::JoinHandle<()>) {
        let (id, mut events) = self.open(limit, after);
        let task = actix_rt::spawn(async move {
            while let Some(item) = events.next().await {
                told(item);
            }
        });
        (id, task)
    }

    /// Puts an item in, which never waits for the handler (EVT-01). Called by the eventor; a host calls it only to test its own
    /// handler.
    pub fn put(&self, id: JournalId, item: TaskEventItem) -> Taken {
        // The table stays locked meanwhile: the journal that was found could be handed over, and the item would be lost.
        let table = self.table();
        let Some(shared) = table.find(id) else { return Taken::Had };
        let (taken, reader) = shared.put(item);
        drop(table);
        wake(reader);
        taken
    }

    /// Ends a journal. Its unread items can still be read.
    pub fn end(&self, id: JournalId) {
        let mut table = self.table();
        // The journal that received its items continues.
        if table.heirs.remove(&id).is_some() {
            return;
        }
        table.heirs.retain(|_, heir| *heir != id);
        let open = table.open.remove(&id);
        drop(table);
        end_each(open);
    }

    /// Marks a journal as known to the owner of the drivers. From now on only the owner ends it.
    pub(crate) fn claim(&self, id: JournalId) {
        if let Some(open) = self.table().open.get_mut(&id) {
            open.is_claimed = true;
        }
    }

    /// The position of a journal: that of the last event that was put in, or that the handler had received before. The journal of a
    /// handler that is not registered yet is created, with room for `limit` items.
    pub(crate) fn position(&self, id: JournalId, limit: usize) -> Option<EventPosition> {
        let mut table = self.table();
        let shared = match (table.find(id), id) {
            (Some(shared), _) => shared,
            (None, JournalId::Parked(_)) => {
                let shared = table.add(id, Journal::new(limit, None));
                table.open.entry(id).and_modify(|open| open.is_claimed = true);
                shared
            }
            (None, JournalId::Handler(_)) => return None,
        };
        shared.lock().journal.last().cloned()
    }

    /// Moves the unread items of one journal to another, which also receives all later items of the first.
    pub(crate) fn hand_over(&self, from: JournalId, to: JournalId) {
        let mut table = self.table();
        let Some(open) = table.open.remove(&from) else { return };
        table.heirs.insert(from, to);
        // What comes meanwhile waits for the lock, and so overtakes nothing.
        let Some(heir) = table.find(to) else { return };
        let items = std::iter::from_fn(|| open.shared.take());
        let reader = items.filter_map(|item| heir.put(item).1).last();
        drop(table);
        wake(reader);
    }

    /// Ends the journals that the owner of the drivers knew and no longer knows.
    pub(crate) fn end_others(&self, known: &HashSet<JournalId>) {
        let mut table = self.table();
        table.heirs.retain(|_, heir| known.contains(heir));
        let is_other = |id: &JournalId, open: &mut Open| open.is_claimed && !known.contains(id);
        let others: Vec<_> = table.open.extract_if(is_other).map(|(_, open)| open).collect();
        drop(table);
        end_each(others);
    }

    /// Ends all journals.
    pub(crate) fn end_all(&self) {
        let mut table = self.table();
        table.heirs.clear();
        let open = std::mem::take(&mut table.open);
        drop(table);
        end_each(open.into_values());
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a reader, with no lock held.
fn wake(reader: Option<Waker>) {
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Ends journals, and wakes their readers with no lock held.
fn end_each(journals: impl IntoIterator<Item = Open>) {
    for open in journals {
        open.shared.end();
    }
}

impl Table {
    fn add(&mut self, id: JournalId, journal: Journal) -> Arc<Shared> {
        let state = State { journal, ended: false, abandoned: false, reader: None };
        let shared = Arc::new(Shared(Mutex::new(state)));
        self.open.insert(id, Open { shared: Arc::clone(&shared), is_claimed: false });
        shared
    }

    fn find(&self, id: JournalId) -> Option<Arc<Shared>> {
        let id = self.heirs.get(&id).unwrap_or(&id);
        self.open.get(id).map(|open| Arc::clone(&open.shared))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item in, and gives the reader that is to be woken.
    fn put(&self, item: TaskEventItem) -> (Taken, Option<Waker>) {
        let mut state = self.lock();
        let taken = if state.abandoned { Taken::Had } else { state.journal.put(item) };
        (taken, state.reader.take())
    }

    /// Nothing is put in any more.
    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    fn take(&self) -> Option<TaskEventItem> {
        self.lock().journal.take()
    }
}

impl TaskEvents {
    /// Waits for the next item. `None` means the end: the task was forgotten, its driver removed, or another handler
    /// replaced this one. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Option<TaskEventItem> {
        poll_fn(|context| self.poll_item(context)).await
    }

    /// The next item, without waiting.
    pub fn try_next(&mut self) -> Option<TaskEventItem> {
        self.shared.take()
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
        // Only this ends a journal that was never registered.
        if let Some(journals) = self.journals.upgrade().map(TaskJournals) {
            let mut table = journals.table();
            if table.open.get(&self.id).is_some_and(|open| !open.is_claimed) {
                table.open.remove(&self.id);
            }
        }
    }
}

impl fmt::Debug for TaskJournals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, heirs) = {
            let table = self.table();
            (table.open.len(), table.heirs.len())
        };
        f.debug_struct("TaskJournals").field("open", &open).field("heirs", &heirs).finish()
    }
}

impl fmt::Debug for TaskEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.shared.lock().journal.len();
        f.debug_struct("TaskEvents").field("unread", &unread).finish_non_exhaustive()
    }
}
