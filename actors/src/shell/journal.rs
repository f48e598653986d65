//! What happens to actors, in the one order in which it does: for pictures of a run, scripts and simulations.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::spawn::Ending;

/// One thing that happened to an actor.
#[derive(Debug)]
pub enum JournalEntry<'a> {
    /// It was built from its store, for the first time or anew.
    Built {
        /// Whether it had lived before.
        is_rebuilt: bool,
    },
    /// It handed a write over, and what follows waits behind it.
    Writing {
        /// The number of the write, among those of this actor.
        write: u64,
        /// How many news it had published before.
        published: u64,
    },
    /// Its writes up to this one are on disk, and what waited behind them may leave.
    OnDisk {
        /// The number of the last of them.
        through: u64,
        /// How many news it had published before.
        published: u64,
    },
    /// Its writes are lost, and what waited behind them is refused.
    WriteFailed {
        /// What the store said.
        error: &'a str,
        /// How many news it had published before.
        published: u64,
    },
    /// News leave it; their type is [`Machine::News`](super::Machine::News) of its machine.
    Published {
        /// The news.
        news: &'a dyn Any,
    },
    /// A step of it panicked.
    Crashed {
        /// What the panic said.
        message: &'a str,
    },
    /// It ended.
    Ended {
        /// In which way.
        ending: &'a Ending,
        /// Whether a write was still on its way, so that what waited behind it never leaves.
        is_waiting: bool,
        /// How many news it had published before.
        published: u64,
    },
}

type Note = dyn Fn(&str, JournalEntry<'_>) + Send + Sync;

/// Writes down what happens to the actors that have it among their [`Settings`](super::Settings). Clones write into the same
/// journal.
#[derive(Clone)]
pub struct Journal(Arc<Note>);

impl Journal {
    /// A journal that hears the name of an actor and what happens to it, while it happens. It must not wait.
    pub fn new(note: impl Fn(&str, JournalEntry<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(note))
    }

    pub(super) fn note(&self, actor: &str, entry: JournalEntry<'_>) {
        (self.0)(actor, entry);
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}
