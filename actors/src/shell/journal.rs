//! The journal of all actors in their real order: for pictures of a run, scripts and simulations.

use std::fmt;
use std::sync::Arc;

use crate::kernel::JournalEntry;

/// A line of the journal.
#[derive(Debug)]
pub struct JournalLine<'a> {
    /// The name of an actor.
    pub actor: &'a str,
    /// The number of its last published change.
    pub published: u64,
    /// The event.
    pub entry: JournalEntry<'a>,
}

type Note = dyn Fn(JournalLine<'_>) + Send + Sync;

/// Records the events of all actors that have it among their [`Settings`](super::Settings). Clones share the journal.
#[derive(Clone)]
pub struct Journal(Arc<Note>);

impl Journal {
    /// A journal that calls `note` synchronously for each event. The callback must not block.
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
