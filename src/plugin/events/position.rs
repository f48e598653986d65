//! Positions in a stream of events, on the wire.

use callboard_actors::driver::{
    EVENTS_FROM_THE_BEGINNING, EventPosition, MalformedPosition, SEQUENCE_ANNOTATION, STREAM_ANNOTATION,
};
use callboard_proto::drivers::DriverTaskEvent;

/// Where a host wants the stream of events to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsFrom {
    /// New events only: the host does not know positions.
    Now,
    /// All events in the journal: the host has none.
    Beginning,
    /// The events after this position, and new ones.
    After(EventPosition),
}

impl EventsFrom {
    /// Parses the position in a host's request, if there is one.
    ///
    /// # Errors
    /// [`MalformedPosition`] if it is neither a position nor [`EVENTS_FROM_THE_BEGINNING`].
    pub fn read(said: Option<&str>) -> Result<Self, MalformedPosition> {
        match said {
            None => Ok(Self::Now),
            Some(EVENTS_FROM_THE_BEGINNING) => Ok(Self::Beginning),
            Some(position) => position.parse().map(Self::After),
        }
    }
}

/// The position of an event, if it carries one.
#[must_use]
pub fn position_of(event: &DriverTaskEvent) -> Option<EventPosition> {
    let sequence = event.annotations.get(SEQUENCE_ANNOTATION)?.parse().ok()?;
    EventPosition::new(event.annotations.get(STREAM_ANNOTATION)?, sequence).ok()
}
