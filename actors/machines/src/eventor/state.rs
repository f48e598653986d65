//! What an eventor is made of, and what it remembers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{JOURNAL_ITEMS_MAX, Journal, JournalId};
use crate::driver::{DriverError, EventBatch};
use crate::driver::{EventPosition, RECENT_ENTRIES, Recent, TaskEventItem, TaskKey};
use crate::kernel::OneCall;
use crate::vocabulary::{Backoff, BackoffState, Generation};

/// How an eventor is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventorOptions {
    /// How many events wait for a task without a handler yet. 1,000 by default (EVT-01).
    pub journal_items: usize,
    /// How long events wait for a task that was not announced; then they are dead letters (EVT-02). 10 s by default.
    pub timeout: Duration,
    /// How many tasks that were not announced may be waited for. 1,024 by default.
    pub strangers_max: usize,
    /// How many entries there are in the list of the latest events of a task (EVT-04). 10 by default.
    pub recent_entries: usize,
    /// How soon a stream that ended is opened again. 1 s doubling to 30 s by default.
    pub backoff: Backoff,
}

impl Default for EventorOptions {
    fn default() -> Self {
        Self {
            journal_items: JOURNAL_ITEMS_MAX,
            timeout: Duration::from_secs(10),
            strangers_max: 1_024,
            recent_entries: RECENT_ENTRIES,
            backoff: Backoff {
                first: Duration::from_secs(1),
                longest: Duration::from_secs(30),
                jitter_percent: 10,
                reset_after: Duration::from_secs(60),
            },
        }
    }
}

/// What an eventor has done for it.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum EventorCall {
    /// Open the stream, in place of the one that is open, and wait for what it says first.
    Open {
        /// Of which generation of the driver.
        generation: Generation,
        /// After which event; `None` from the beginning.
        after: Option<EventPosition>,
    },
    /// Wait for what the stream says next.
    Read,
    /// Close the stream.
    Close,
    /// Put these where they belong, in this order. A call is kept until it has come back, so what may be much is shared.
    Hand(Arc<Vec<(JournalId, TaskEventItem)>>),
    /// Say to these that nothing comes any more.
    End(Vec<JournalId>),
    /// The same, as the last thing that is done.
    Finish(Vec<JournalId>),
}

/// What came of an [`EventorCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum EventorOutcome {
    /// What the stream said, or that it is over.
    Heard(Result<EventBatch, DriverError>),
    /// It was done.
    Done,
}

/// What an eventor waits for.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventorTimer {
    /// The stream is to be opened again.
    Reopen,
    /// The stream is to be opened again further back, for tasks that came late.
    Rewind,
    /// The timeout of the events of this task, which was not announced.
    HandlerDeadline(TaskKey),
}

/// Where the stream stands.
#[derive(Debug, Clone, Hash)]
pub(super) enum Stream {
    /// There is no generation that could be asked.
    Absent,
    /// It is being read.
    Reading(Generation),
    /// It ended, and is opened again after a pause.
    Pausing(Generation),
    /// The eventor has ended.
    Over,
}

/// What is known of how the plugin marks its events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Marks {
    /// Nothing.
    Unknown,
    /// It marks none: events without a reader are lost.
    None,
    /// It marks them, and this is its stream.
    Of(Arc<str>),
}

/// A task that is watched.
#[derive(Debug, Clone, Hash)]
pub(super) struct Route {
    pub(super) sink: JournalId,
    /// Up to where it had had everything when the stream was opened, or when it came, if it said so.
    pub(super) after: Option<EventPosition>,
    /// Whether it lacks events that were read before it came, and that the stream will be opened for again.
    pub(super) is_behind: bool,
    pub(super) recent: Recent,
}

/// A task that was not announced yet.
#[derive(Debug, Clone, Hash)]
pub(super) struct Stranger {
    pub(super) waiting: Journal,
    /// How many events came.
    pub(super) count: u64,
    /// The place of the first.
    pub(super) first: Option<EventPosition>,
}

/// What became of the events of a task that was not announced in time.
#[derive(Debug, Clone, Hash)]
pub(super) struct Dead {
    pub(super) count: u64,
    pub(super) first: Option<EventPosition>,
    pub(super) last: Option<EventPosition>,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Eventor {
    pub(super) options: EventorOptions,
    pub(super) stream: Stream,
    /// The open stream, or its next event.
    pub(super) reading: OneCall,
    pub(super) backoff: BackoffState,
    pub(super) marks: Marks,
    /// Whether a stream was opened before: what came between two of them may be missing.
    pub(super) was_open: bool,
    /// After which event the next stream is opened; `None` for the beginning.
    pub(super) resume: Option<EventPosition>,
    /// Where the stream that is open stands: its last event, or where it was opened.
    pub(super) cursor: Option<EventPosition>,
    /// Whether no event has come since the stream was opened.
    pub(super) is_first: bool,
    /// Whether a rewind is due.
    pub(super) is_rewinding: bool,
    pub(super) routes: BTreeMap<TaskKey, Route>,
    pub(super) strangers: BTreeMap<TaskKey, Stranger>,
    pub(super) dead: BTreeMap<TaskKey, Dead>,
    /// What this step puts where.
    pub(super) handed: Vec<(JournalId, TaskEventItem)>,
}
