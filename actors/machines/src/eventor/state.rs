//! The state of an eventor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{JOURNAL_ITEMS_MAX, Journal, JournalId};
use crate::driver::{DriverError, EventBatch};
use crate::driver::{EventPosition, RECENT_ENTRIES, Recent, TaskEventItem, TaskKey};
use crate::kernel::OneCall;
use crate::vocabulary::{Backoff, BackoffState, Generation};

/// The options of an eventor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventorOptions {
    /// The limit of events that wait for a task without a handler yet. 1,000 by default (EVT-01).
    pub journal_items: usize,
    /// How long events wait for a task that was not announced; then they are dead letters (EVT-02). 10 s by default.
    pub timeout: Duration,
    /// The limit of tasks that were not announced and whose events wait. 1,024 by default.
    pub strangers_max: usize,
    /// The number of entries in the list of the latest events of a task (EVT-04). 10 by default.
    pub recent_entries: usize,
    /// The pauses before a stream that ended is opened again. 1 s doubling to 30 s by default.
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

/// The calls of an eventor.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum EventorCall {
    /// Open the stream, in place of the open one, and wait for its first batch.
    Open {
        /// The generation of the driver.
        generation: Generation,
        /// The event after which it begins; `None` for the beginning.
        after: Option<EventPosition>,
    },
    /// Wait for the next batch of the stream.
    Read,
    /// Close the stream.
    Close,
    /// Put these items into their journals, in this order. A call is kept until it has returned, so a large payload is shared.
    Hand(Arc<Vec<(JournalId, TaskEventItem)>>),
    /// End these journals: they get no more items.
    End(Vec<JournalId>),
    /// The same, as the last action.
    Finish(Vec<JournalId>),
}

/// The outcome of an [`EventorCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum EventorOutcome {
    /// A batch of the stream, or the error that ended it.
    Heard(Result<EventBatch, DriverError>),
    /// It was done.
    Done,
}

/// The timers of an eventor.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventorTimer {
    /// The next opening of the stream.
    Reopen,
    /// The next opening of the stream further back, for late tasks.
    Rewind,
    /// The timeout of the events of this task, which was not announced.
    HandlerDeadline(TaskKey),
}

/// The state of the stream.
#[derive(Debug, Clone, Hash)]
pub(super) enum Stream {
    /// There is no generation to read from.
    Absent,
    /// It is being read.
    Reading(Generation),
    /// It ended, and is opened again after a pause.
    Pausing(Generation),
    /// The eventor has ended.
    Over,
}

/// How the plugin marks its events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Marks {
    /// Not known yet.
    Unknown,
    /// It does not mark them: events without a reader are lost.
    None,
    /// It marks them, with this stream.
    Of(Arc<str>),
}

/// A task that is watched.
#[derive(Debug, Clone, Hash)]
pub(super) struct Route {
    pub(super) sink: JournalId,
    /// The position up to which it had received everything when the stream was opened, or when it was added, if known.
    pub(super) after: Option<EventPosition>,
    /// Whether it lacks events that were read before it was added, and that the stream will be opened for again.
    pub(super) is_behind: bool,
    pub(super) recent: Recent,
}

/// A task that was not announced yet.
#[derive(Debug, Clone, Hash)]
pub(super) struct Stranger {
    pub(super) waiting: Journal,
    /// The number of its events.
    pub(super) count: u64,
    /// The position of the first.
    pub(super) first: Option<EventPosition>,
}

/// The dead letters of a task that was not announced in time.
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
    /// Whether a stream was opened before: events between two streams may be missing.
    pub(super) was_open: bool,
    /// The event after which the next stream is opened; `None` for the beginning.
    pub(super) resume: Option<EventPosition>,
    /// The position of the open stream: its last event, or where it was opened.
    pub(super) cursor: Option<EventPosition>,
    /// Whether no event has come since the stream was opened.
    pub(super) is_first: bool,
    /// Whether a rewind is due.
    pub(super) is_rewinding: bool,
    pub(super) routes: BTreeMap<TaskKey, Route>,
    pub(super) strangers: BTreeMap<TaskKey, Stranger>,
    pub(super) dead: BTreeMap<TaskKey, Dead>,
    /// The items of this step, with their journals.
    pub(super) handed: Vec<(JournalId, TaskEventItem)>,
}
