//! Task events, and their positions in the stream of the plugin.
//!
//! The protocol's stream has no positions, so events that occur while no client listens are lost. Callboard adds positions, in a way
//! that is invisible to plugins without this extension:
//!
//! - The host asks for `TaskEvents` with the metadata [`EVENTS_AFTER_METADATA`], whose value is an [`EventPosition`] as
//!   `<stream>:<sequence>`, or [`EVENTS_FROM_THE_BEGINNING`].
//! - A plugin that supports this answers with the metadata [`EVENTS_STREAM_METADATA`], which names its stream, at once and
//!   before the first event. It marks each event with the annotations [`STREAM_ANNOTATION`] and [`SEQUENCE_ANNOTATION`].
//!   Sequences count all events of a stream, of all tasks, from 1 and by ones.
//! - It keeps a bounded journal and begins after the given position. If the position belongs to another stream, or is older than
//!   the journal, it begins with the oldest event that it still has. The host detects from the numbers which events are
//!   missing.
//! - A stream lives as long as its journal: a plugin that lost its journal gives its stream a new name.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::vocabulary::{AllocationId, TaskName, Timestamp};

/// The request metadata with the position up to which a host has received the events.
pub const EVENTS_AFTER_METADATA: &str = "callboard-events-after";
/// The value of [`EVENTS_AFTER_METADATA`] of a host that has received no events. No stream has this name.
pub const EVENTS_FROM_THE_BEGINNING: &str = "-:0";
/// The response metadata in which a plugin names its stream.
pub const EVENTS_STREAM_METADATA: &str = "callboard-events-stream";
/// The annotation that names the stream of an event.
pub const STREAM_ANNOTATION: &str = "callboard.stream";
/// The annotation with the sequence number of an event in its stream, in decimal.
pub const SEQUENCE_ANNOTATION: &str = "callboard.sequence";

/// The length limit of a stream's name, in bytes.
pub const STREAM_NAME_BYTES_MAX: usize = 128;

/// The identity of a task in events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// The allocation that it belongs to.
    pub allocation: AllocationId,
    /// Its name within the allocation.
    pub task: TaskName,
}

impl TaskKey {
    /// The key of a task of an allocation.
    #[must_use]
    pub const fn new(allocation: AllocationId, task: TaskName) -> Self {
        Self { allocation, task }
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.allocation, self.task)
    }
}

/// A position in a plugin's stream of events. A handler stores the position of the last event that it processed, together with its
/// own results, and passes it when it registers again after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventPosition {
    /// The name of the stream.
    pub stream: Arc<str>,
    /// The number of the event in it; the first is 1.
    pub sequence: u64,
}

/// A text that is not a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no position in a stream of events; give back what came with the last event, <stream>:<sequence>"
)]
pub struct MalformedPosition {
    /// The beginning of the text.
    pub text: String,
}

impl EventPosition {
    /// The position with this stream name and number.
    ///
    /// # Errors
    /// When the name is empty, `-`, longer than [`STREAM_NAME_BYTES_MAX`], or contains characters except letters, digits, `.`, `_`
    /// and `-`; and when the number is zero.
    pub fn new(stream: &str, sequence: u64) -> Result<Self, MalformedPosition> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_stream = stream != "-"
            && (1..=STREAM_NAME_BYTES_MAX).contains(&stream.len())
            && stream.chars().all(is_name);
        if is_stream && sequence > 0 {
            return Ok(Self { stream: Arc::from(stream), sequence });
        }
        Err(MalformedPosition { text: format!("{}:{sequence}", stream.chars().take(32).collect::<String>()) })
    }

    /// Sets a mark to this position. Within a stream only its number changes.
    pub fn mark(&self, mark: &mut Option<Self>) {
        match mark {
            Some(mark) if Arc::ptr_eq(&mark.stream, &self.stream) => mark.sequence = self.sequence,
            Some(_) | None => *mark = Some(self.clone()),
        }
    }

    /// Whether a handler that received everything up to `last` has received an event at this position.
    #[must_use]
    pub fn is_had_after(&self, last: &Self) -> bool {
        self.stream == last.stream && self.sequence <= last.sequence
    }
}

impl fmt::Display for EventPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stream, self.sequence)
    }
}

impl FromStr for EventPosition {
    type Err = MalformedPosition;

    fn from_str(text: &str) -> Result<Self, MalformedPosition> {
        let malformed = || MalformedPosition { text: text.chars().take(64).collect() };
        let (stream, sequence) = text.rsplit_once(':').ok_or_else(malformed)?;
        let sequence = sequence.parse().map_err(|_| malformed())?;
        Self::new(stream, sequence).map_err(|_| malformed())
    }
}

/// A task event that a driver reports (D106).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskEvent {
    /// The driver's own id of the task, as it was given when the task was started.
    pub task_id: Arc<str>,
    /// The task and its allocation.
    pub task: TaskKey,
    /// When it happened, by the driver's clock; `None` if the driver did not report it.
    pub at: Option<Timestamp>,
    /// The event, for people.
    pub message: String,
    /// Its annotations, without the two that carry its position.
    pub annotations: BTreeMap<String, String>,
}

/// An item that a handler of a task's events reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TaskEventItem {
    /// The next event.
    Event {
        /// The event.
        event: Arc<TaskEvent>,
        /// Its position; `None` if the plugin has no positions.
        position: Option<EventPosition>,
    },
    /// Events are missing here.
    Gap {
        /// The number of missing events; `None` if it is unknown.
        missed: Option<u64>,
        /// The reason.
        reason: GapReason,
    },
}

/// Why events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// The handler was so slow that its oldest unread events were replaced by newer ones (EVT-01).
    HandlerTooSlow,
    /// The task was not announced yet when they came, and the plugin cannot repeat them (EVT-02).
    NotAnnounced,
    /// The stream was interrupted, and the plugin cannot repeat the events of that time.
    Interrupted,
    /// The plugin began a new stream: unread events of the old stream are lost.
    NewStream,
    /// The plugin no longer has the events after the last position.
    Forgotten,
}

impl GapReason {
    /// The reason in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HandlerTooSlow => "the handler was too slow",
            Self::NotAnnounced => "the task was not announced",
            Self::Interrupted => "the stream was interrupted",
            Self::NewStream => "the plugin began a new stream",
            Self::Forgotten => "the plugin forgot them",
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The next batch of a stream of events.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBatch {
    /// The plugin answered, with the name of its stream; `None` if it has no positions. Reported once, first. A plugin
    /// without positions may report it only with its first event.
    Opened(Option<Arc<str>>),
    /// At least one event, in order. A malformed event is an error in its place, and never an event of default values.
    Events(Vec<Result<TaskEventItem, String>>),
    /// The plugin ended the stream (D112).
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_as_it_was_written() {
        let position = EventPosition::new("boot.7-a_b", 42).unwrap();
        assert_eq!(position.to_string().parse(), Ok(position));
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in ["", "a", ":1", "-:0", "-:3", "a:0", "a:b", "a b:1", "a:-1", EVENTS_FROM_THE_BEGINNING] {
            assert!(text.parse::<EventPosition>().is_err(), "{text:?}");
        }
        assert!(EventPosition::new(&"s".repeat(STREAM_NAME_BYTES_MAX + 1), 1).is_err());
    }

    #[test]
    fn a_mark_moves_within_its_stream_and_into_another_one() {
        let at = |text: &str| text.parse::<EventPosition>().unwrap();
        let mut mark = None;
        let first = at("a:3");
        let next = EventPosition { sequence: 4, ..first.clone() };
        for place in [first, next, at("a:7"), at("b:1")] {
            place.mark(&mut mark);
            assert_eq!(mark, Some(place));
        }
    }

    #[test]
    fn only_an_event_of_the_same_stream_can_have_been_had() {
        let at = |text: &str| text.parse::<EventPosition>().unwrap();
        assert!(at("a:3").is_had_after(&at("a:3")) && at("a:2").is_had_after(&at("a:3")));
        assert!(!at("a:4").is_had_after(&at("a:3")) && !at("b:1").is_had_after(&at("a:3")));
    }
}
