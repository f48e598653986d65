//! The journal of a host: the events of its actors in their real order. Timelines, pictures and scripts read it.
//!
//! It stores nothing: an entry is created only while it has a reader, which each actor checks with one atomic load. Each
//! reader has a bounded queue and never blocks an actor; one that lags misses entries, receives their number, and resynchronises
//! (R6).
//!
//! An effect is recorded before it leaves its actor. So a cause always precedes its consequence, across all threads; actors
//! that share one thread, like those of a host, are recorded in their exact order.

use std::any::Any;
use std::fmt::{self, Debug, Write};

use super::clock::Clock;
use super::feed::{Delivery, FeedSender, Subscription, feed};
use crate::kernel::{Ending, Input, JournalEntry, Machine, StopMode};
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};
use crate::vocabulary::Timestamp;

/// A value of an actor's own type; its readers downcast it.
pub type Typed = Arc<dyn Any + Send + Sync>;

/// The level of detail of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Changes of actors, and effects that leave them.
    Outcomes = 1,
    /// Each step and each call as well.
    Steps = 2,
}

/// An entry of the journal.
#[derive(Debug, Clone)]
pub struct JournalLine {
    /// Its number in the order of all entries.
    pub number: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of the actor: [`Machine::KIND`].
    pub kind: &'static str,
    /// The name of the actor.
    pub actor: Arc<str>,
    /// The event.
    pub entry: Recorded,
}

/// The input of a step. Messages, calls and timers are recorded by name only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The machine was built.
    Resumed,
    /// A message.
    Asked(String),
    /// The outcome of a call.
    Returned(String),
    /// A timer.
    Elapsed(String),
    /// A request to stop.
    StopRequested(StopMode),
}

/// An event of an actor. Effects of a step have the number of that step, even if they waited for the disk. Steps are
/// numbered from 1 between the start and the end of an actor.
#[derive(Debug, Clone)]
pub enum Recorded {
    /// It was built from its store, for the first time or again.
    Built {
        /// Whether it existed before.
        is_rebuilt: bool,
    },
    /// Its state: recorded when it was built, and when a reader requests it by
    /// [`Address::describe`](super::Address::describe).
    Holds {
        /// The number of its last published change.
        number: u64,
        /// The state, a [`Machine::View`].
        view: Typed,
    },
    /// Its store could not be loaded.
    LoadFailed {
        /// The error of the store.
        error: Arc<str>,
    },
    /// It took a step.
    Stepped {
        /// The number of the step.
        step: u64,
        /// The input of the step.
        heard: Heard,
        /// The number of effects.
        effects: usize,
    },
    /// It makes a call.
    Called {
        /// The step that requested it.
        step: u64,
        /// The number of the call, unique in the actor.
        number: u64,
        /// The name of the call.
        call: String,
    },
    /// It wrote, and later effects wait for that write.
    Writing {
        /// The step that wrote.
        step: u64,
        /// The number of the write, unique in the actor.
        write: u64,
    },
    /// Its writes up to this one are on disk, and the effects behind them are released.
    OnDisk {
        /// The number of the last of them.
        through: u64,
    },
    /// Its writes are lost, and the effects behind them are refused.
    WriteFailed {
        /// The error of the store.
        error: Arc<str>,
    },
    /// It publishes news.
    Published {
        /// The step that published them.
        step: u64,
        /// Their number among all its news.
        number: u64,
        /// The news, a [`Machine::News`].
        news: Typed,
    },
    /// A subscriber lags, and misses news from now on.
    Lagged {
        /// The name that the subscriber gave itself.
        subscriber: String,
    },
    /// A step panicked; the machine is rebuilt.
    Crashed {
        /// The panic message.
        message: Arc<str>,
    },
    /// The outcome of a call from an earlier life of its machine arrived, without effect.
    Stale,
    /// It ended.
    Ended {
        /// How it ended.
        ending: Ending,
        /// Whether a write was pending, so that the effects behind it never leave.
        is_waiting: bool,
    },
}

struct Reader {
    detail: Detail,
    queue: FeedSender<JournalLine, ()>,
}

#[derive(Default)]
struct Book {
    number: u64,
    readers: Vec<Reader>,
}

#[derive(Default)]
struct Shared {
    /// The highest level of detail of all readers, 0 without readers; checked by each actor before it creates an entry.
    wanted: AtomicU8,
    book: Mutex<Book>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn tell_wanted(&self, book: &Book) {
        let wanted = book.readers.iter().map(|reader| reader.detail as u8).max().unwrap_or(0);
        self.wanted.store(wanted, Ordering::Relaxed);
    }
}

/// The journal of a host. Clones share it.
#[derive(Clone, Default)]
pub struct Journal(Arc<Shared>);

impl Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("readers", &self.0.lock().readers.len()).finish()
    }
}

impl Journal {
    /// Subscribes from now on, with a queue of at most `capacity` entries. An empty snapshot is the first item, and the
    /// first after a lag: then a reader may ask actors to [describe](super::Address::describe) their state.
    #[must_use]
    pub fn follow(
        &self,
        reader: impl Into<String>,
        capacity: usize,
        detail: Detail,
    ) -> Subscription<JournalLine, ()> {
        let shared = Arc::downgrade(&self.0);
        let (queue, subscription) = feed(reader.into(), capacity, move || {
            let Some(shared) = shared.upgrade() else { return };
            let book = shared.lock();
            for reader in book.readers.iter().filter(|reader| reader.queue.is_behind()) {
                reader.queue.snapshot(book.number, ());
            }
        });
        let mut book = self.0.lock();
        queue.snapshot(book.number, ());
        book.readers.push(Reader { detail, queue });
        self.0.tell_wanted(&book);
        drop(book);
        subscription
    }

    /// Whether it has a reader.
    pub(super) fn is_read(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) > 0
    }

    /// Records an entry for the readers that want this level of detail.
    pub(super) fn note<M: Machine>(&self, actor: &Arc<str>, clock: &Clock, entry: &JournalEntry<'_, M>) {
        let wanted = self.0.wanted.load(Ordering::Relaxed);
        if wanted > 0 && wanted >= detail(entry) as u8 {
            self.record(M::KIND, actor, clock.now(), Recorded::from(entry));
        }
    }

    /// Records an entry, after the check for readers.
    pub(crate) fn record(&self, kind: &'static str, actor: &Arc<str>, at: Timestamp, entry: Recorded) {
        let detail = entry.detail();
        let mut book = self.0.lock();
        book.number += 1;
        let line = JournalLine { number: book.number, at, kind, actor: Arc::clone(actor), entry };
        let count = book.readers.len();
        book.readers.retain(|reader| {
            let is_wanted = detail <= reader.detail;
            if is_wanted {
                reader.queue.change(line.number, line.clone()) != Delivery::Abandoned
            } else {
                !reader.queue.is_abandoned()
            }
        });
        if book.readers.len() < count {
            self.0.tell_wanted(&book);
        }
        // Before the entry, which may hold the last reference to a value of the host program.
        drop(book);
    }
}

const fn detail<M: Machine>(entry: &JournalEntry<'_, M>) -> Detail {
    match entry {
        JournalEntry::Stepped { .. } | JournalEntry::Called { .. } => Detail::Steps,
        JournalEntry::Built { .. }
        | JournalEntry::LoadFailed { .. }
        | JournalEntry::Writing { .. }
        | JournalEntry::OnDisk { .. }
        | JournalEntry::WriteFailed { .. }
        | JournalEntry::Published { .. }
        | JournalEntry::Crashed { .. }
        | JournalEntry::Stale { .. }
        | JournalEntry::Ended { .. } => Detail::Outcomes,
    }
}

impl Recorded {
    const fn detail(&self) -> Detail {
        match self {
            Self::Stepped { .. } | Self::Called { .. } => Detail::Steps,
            Self::Built { .. }
            | Self::Holds { .. }
            | Self::LoadFailed { .. }
            | Self::Writing { .. }
            | Self::OnDisk { .. }
            | Self::WriteFailed { .. }
            | Self::Published { .. }
            | Self::Lagged { .. }
            | Self::Crashed { .. }
            | Self::Stale
            | Self::Ended { .. } => Detail::Outcomes,
        }
    }
}

impl<M: Machine> From<&JournalEntry<'_, M>> for Recorded {
    fn from(entry: &JournalEntry<'_, M>) -> Self {
        match entry {
            JournalEntry::Built { is_rebuilt } => Self::Built { is_rebuilt: *is_rebuilt },
            JournalEntry::LoadFailed { error } => Self::LoadFailed { error: Arc::from(*error) },
            JournalEntry::Stepped { step, input, effects } => {
                Self::Stepped { step: *step, heard: Heard::from(*input), effects: *effects }
            }
            JournalEntry::Called { step, number, call } => {
                Self::Called { step: *step, number: *number, call: name_of(*call) }
            }
            JournalEntry::Writing { step, write } => Self::Writing { step: *step, write: *write },
            JournalEntry::OnDisk { through } => Self::OnDisk { through: *through },
            JournalEntry::WriteFailed { error } => Self::WriteFailed { error: Arc::from(*error) },
            JournalEntry::Published { step, number, news } => {
                Self::Published { step: *step, number: *number, news: Arc::new(M::News::clone(news)) }
            }
            JournalEntry::Crashed { message, .. } => Self::Crashed { message: Arc::from(*message) },
            JournalEntry::Stale { .. } => Self::Stale,
            JournalEntry::Ended { ending, is_waiting } => {
                Self::Ended { ending: Ending::clone(ending), is_waiting: *is_waiting }
            }
        }
    }
}

impl<M: Machine> From<&Input<M>> for Heard {
    fn from(input: &Input<M>) -> Self {
        match input {
            Input::Resumed => Self::Resumed,
            Input::Asked { ask, .. } => Self::Asked(name_of(ask)),
            Input::Returned { call, .. } => Self::Returned(name_of(call)),
            Input::Elapsed(timer) => Self::Elapsed(name_of(timer)),
            Input::StopRequested(mode) => Self::StopRequested(*mode),
        }
    }
}

/// The name of a value: for an enum that of its variant. Its content is not formatted, since it may be secret.
fn name_of(value: &dyn Debug) -> String {
    struct Name(String);
    impl Write for Name {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let name = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            self.0.push_str(name);
            if name.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
        }
    }
    let mut name = Name(String::new());
    // Formatting ends with an error after the name.
    let _ = write!(name, "{value:?}");
    name.0
}
