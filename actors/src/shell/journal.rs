//! What happens to actors, in the one order in which it does: for pictures of a run, scripts and simulations.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::spawn::Ending;

/// A line of the journal.
#[derive(Debug)]
pub struct JournalLine<'a> {
    /// The name of an actor.
    pub actor: &'a str,
    /// How many news it had published by then.
    pub published: u64,
    /// What happened to it.
    pub entry: JournalEntry<'a>,
}

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
    },
    /// Its writes up to this one are on disk, and what waited behind them may leave.
    OnDisk {
        /// The number of the last of them.
        through: u64,
    },
    /// Its writes are lost, and what waited behind them is refused.
    WriteFailed {
        /// What the store said.
        error: &'a str,
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
    },
}

type Note = dyn Fn(JournalLine<'_>) + Send + Sync;

/// Writes down what happens to the actors that have it among their [`Settings`](super::Settings). Clones write into the same
/// journal.
#[derive(Clone)]
pub struct Journal(Arc<Note>);

impl Journal {
    /// A journal that hears what happens to actors, while it happens. It must not wait.
    pub fn new(note: impl Fn(JournalLine<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(note))
    }

    pub(super) fn note(&self, line: JournalLine<'_>) {
        (self.0)(line);
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}
