//! The eventor: reads a driver's stream of task events, and gives each to the handler of its task.
//!
//! ```text
//!  plugin ── stream ──► take ── task is watched ──────────► its journal ──► its handler, at its own pace
//!                        │                                     ▲
//!                        │                                     │ the handler comes
//!                        ├── announced, no handler yet ──► journal of the eventor's own
//!                        │                                     ▲
//!                        └── not announced ────────────────► waits ── too long ──► dead letter, with news
//!
//!  stream:  Absent ── SubscribeTo ────► Reading ── error or end ──► Pausing ── 1 s to 30 s ──► Reading
//!              ▲                      │
//!              └─ the plugin is gone ─┘
//! ```
//!
//! Invariants:
//!
//! - A slow handler does not delay others: each has a bounded journal, and a handler that is too slow finds a gap with the exact count
//!   in it (EVT-01).
//! - If the plugin has positions, a stream is opened after the last event that was read, and each event is in a journal
//!   once, however often it is repeated. Events that a plugin cannot repeat are reported as a gap, with the reason: for a jump in the
//!   numbers, for a stream with another name, and for plugins without positions after every interruption (EVT-02).
//! - A handler that is registered late gets the missed events: the stream is opened again further back.
//! - An error is an error, with its text, and never an event of default values.
//! - It serves all generations of its driver, so that handlers are registered once and renewed together (EVT-03). When it is
//!   rebuilt after a crash it reports this, and gets the watched tasks again.
//! - Nothing of it is left after its end: the stream from the plugin is closed, and the streams of the handlers end.

mod journal;

mod messages;

mod state;

mod behaviour;
mod routing;

#[cfg(test)]
mod scripts;

pub use journal::{JOURNAL_ITEMS_MAX, Journal, JournalId, Taken};
pub use messages::*;
pub use state::{Eventor, EventorCall, EventorOptions, EventorOutcome, EventorTimer};
