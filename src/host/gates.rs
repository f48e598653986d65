//! The gates of a running host: which of its actors waits for the disk, and when that is over.

use callboard_actors::shell::{Journal, JournalEntry, JournalLine};
use tokio::sync::broadcast;

/// How much of this may wait for the one who reads.
const CAPACITY: usize = 1_024;

/// Something that became of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gate {
    /// Whose gate.
    pub(crate) actor: String,
    /// How many news the actor had published before.
    pub(crate) published: u64,
    /// What became of it.
    pub(crate) turn: GateTurn,
}

/// What can become of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateTurn {
    /// It closes: this write is on its way.
    Closes(u64),
    /// All open up to this write, which is on disk.
    Opens(u64),
    /// They fall: a write failed, or the actor ended before it was on disk.
    Falls,
}

/// Tells of gates as long as somebody reads of them.
#[derive(Debug, Clone)]
pub(crate) struct Gates(broadcast::Sender<Gate>);

impl Default for Gates {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl Gates {
    /// What becomes of all gates from now on.
    #[cfg(feature = "cli")]
    pub(crate) fn follow(&self) -> broadcast::Receiver<Gate> {
        self.0.subscribe()
    }

    /// The journal from which this learns of them.
    pub(crate) fn journal(&self) -> Journal {
        let sender = self.0.clone();
        Journal::new(move |JournalLine { actor, published, entry }| {
            let Some(turn) = turn(&entry) else { return };
            if sender.receiver_count() > 0 {
                // Whoever read may have left just now.
                let _ = sender.send(Gate { actor: actor.to_owned(), published, turn });
            }
        })
    }
}

fn turn(entry: &JournalEntry<'_>) -> Option<GateTurn> {
    match entry {
        JournalEntry::Writing { write } => Some(GateTurn::Closes(*write)),
        JournalEntry::OnDisk { through } => Some(GateTurn::Opens(*through)),
        JournalEntry::WriteFailed { .. } | JournalEntry::Ended { is_waiting: true, .. } => {
            Some(GateTurn::Falls)
        }
        JournalEntry::Built { .. }
        | JournalEntry::LoadFailed { .. }
        | JournalEntry::Stepped
        | JournalEntry::Published { .. }
        | JournalEntry::Crashed { .. }
        | JournalEntry::Stale { .. }
        | JournalEntry::Ended { is_waiting: false, .. } => None,
    }
}
