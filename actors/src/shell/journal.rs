//! The journal of a host: what happens to its actors, in the one order in which it does. Timelines, pictures and scripts read it.
//!
//! It is always there and keeps nothing: an entry is made only while somebody reads, which each actor finds out by looking at one
//! number. Each reader has a bounded queue of its own and is never waited for; one that does not keep up misses entries, is told
//! how many, and begins anew (R6).
//!
//! What leaves an actor is written down before it leaves. So a cause always stands in front of its consequence, on whichever threads the
//! actors are; and where they share one thread, as those of a host do, the order is that in which everything happened.

use std::any::Any;
use std::fmt::{self, Debug, Write};

use super::feed::{Delivery, FeedSender, Subscription, feed};
use crate::kernel::{Ending, Input, JournalEntry, Machine, StopMode};
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};
use crate::vocabulary::Timestamp;

/// A value as its actor made it; who knows its type takes it back.
pub type Typed = Arc<dyn Any + Send + Sync>;

/// How much one wants to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What becomes of actors, and what leaves them.
    Outcomes = 1,
    /// Each step and each call, too.
    Steps = 2,
}

/// An entry of the journal.
#[derive(Debug, Clone)]
pub struct JournalLine {
    /// Its place among all that was written down.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What kind of actor it happened to: [`Machine::KIND`].
    pub kind: &'static str,
    /// The name of the actor.
    pub actor: Arc<str>,
    /// What happened.
    pub entry: Recorded,
}

/// What a step was taken for. Messages, calls and timers are given by their names alone.
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

/// What happened to an actor. What follows from a step carries the number of that step, also if it waited for the disk; steps are
/// counted from 1 by each life of an actor between its start and its end.
#[derive(Debug, Clone)]
pub enum Recorded {
    /// It was built from its store, for the first time or anew.
    Built {
        /// Whether it had lived before.
        is_rebuilt: bool,
    },
    /// This is what it holds: written down when it was built, and when a reader asks by
    /// [`Address::describe`](super::Address::describe).
    Holds {
        /// How many news it had published before.
        number: u64,
        /// What it holds, a [`Machine::View`].
        view: Typed,
    },
    /// Its store could not be read.
    LoadFailed {
        /// What the store said.
        error: Arc<str>,
    },
    /// It took a step.
    Stepped {
        /// The number of the step.
        step: u64,
        /// What for.
        heard: Heard,
        /// How many effects came of it.
        effects: usize,
    },
    /// It makes a call.
    Called {
        /// The step that wanted it.
        step: u64,
        /// Names it among the calls of the actor.
        number: u64,
        /// The name of what is called.
        call: String,
    },
    /// It wrote, and what follows waits behind that.
    Writing {
        /// The step that wrote.
        step: u64,
        /// The number of the write, among those of the actor.
        write: u64,
    },
    /// Its writes up to this one are on disk, and what waited behind them may leave.
    OnDisk {
        /// The number of the last of them.
        through: u64,
    },
    /// Its writes are lost, and what waited behind them is refused.
    WriteFailed {
        /// What the store said.
        error: Arc<str>,
    },
    /// News leave it.
    Published {
        /// The step that told them.
        step: u64,
        /// Their place among all its news.
        number: u64,
        /// The news, a [`Machine::News`].
        news: Typed,
    },
    /// A subscriber does not keep up, and misses news from here on.
    Lagged {
        /// The name that the subscriber gave itself.
        subscriber: String,
    },
    /// A step of it panicked; it is built anew.
    Crashed {
        /// What the panic said.
        message: Arc<str>,
    },
    /// A call of a former life of its machine came back, which has no effect.
    Stale,
    /// It ended.
    Ended {
        /// In which way.
        ending: Ending,
        /// Whether a write was still on its way, so that what waited behind it never leaves.
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
    /// How much any reader wants, 0 if there is none: what each actor looks at before it makes an entry.
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

/// The journal of a host. Clones are the same one.
#[derive(Clone, Default)]
pub struct Journal(Arc<Shared>);

impl Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("readers", &self.0.lock().readers.len()).finish()
    }
}

impl Journal {
    /// Reads what happens from now on. At most `capacity` entries wait unread. A snapshot, which is empty, stands where a reader
    /// begins, and where it begins anew after it missed something: there it asks actors to
    /// [describe](super::Address::describe) what they hold, if it needs to know.
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

    /// Whether anybody reads.
    pub(super) fn is_read(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed) > 0
    }

    /// Writes an entry down for those who want to read it.
    pub(super) fn note<M: Machine>(&self, actor: &Arc<str>, at: Timestamp, entry: &JournalEntry<'_, M>) {
        let wanted = self.0.wanted.load(Ordering::Relaxed);
        if wanted > 0 && wanted >= detail(entry) as u8 {
            self.record(M::KIND, actor, at, Recorded::from(entry));
        }
    }

    /// Writes down something of which it is known that somebody reads it.
    pub(super) fn record(&self, kind: &'static str, actor: &Arc<str>, at: Timestamp, entry: Recorded) {
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

/// The name of a value: of an enum that of its variant. What the value holds is not looked at, and may be secret.
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
    // It ends with an error where the name ends.
    let _ = write!(name, "{value:?}");
    name.0
}
