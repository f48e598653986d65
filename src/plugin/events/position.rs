//! Where in a stream of events one is.

use std::fmt;
use std::str::FromStr;

use callboard_proto::drivers::DriverTaskEvent;

/// The request metadata by which a host says what it has had already.
pub const EVENTS_AFTER: &str = "callboard-events-after";
/// The annotation that names an event's stream.
pub const STREAM: &str = "callboard.stream";
/// The annotation with an event's number within its stream, beginning with 1.
pub const SEQUENCE: &str = "callboard.sequence";

/// Where in a stream of events one is: behind the event of this number. Written as `<stream>:<sequence>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPosition {
    /// The name of the stream.
    pub stream: String,
    /// The number of the last event that one has had.
    pub sequence: u64,
}

/// Why a text is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no position in a stream of events; write <stream>:<sequence>")]
pub struct MalformedPosition {
    text: String,
}

impl EventPosition {
    /// The position of an event, if it carries one.
    #[must_use]
    pub fn of(event: &DriverTaskEvent) -> Option<Self> {
        let stream = event.annotations.get(STREAM)?.clone();
        Some(Self { stream, sequence: event.annotations.get(SEQUENCE)?.parse().ok()? })
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
        let malformed = || MalformedPosition { text: text.to_owned() };
        let (stream, sequence) = text.rsplit_once(':').ok_or_else(malformed)?;
        let sequence = sequence.parse().map_err(|_| malformed())?;
        Ok(Self { stream: stream.to_owned(), sequence })
    }
}
