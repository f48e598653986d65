//! Where in a stream of events one is, on the wire.

use callboard_actors::driver::{
    EVENTS_FROM_THE_BEGINNING, EventPosition, MalformedPosition, SEQUENCE_ANNOTATION, STREAM_ANNOTATION,
};
use callboard_proto::drivers::DriverTaskEvent;

/// From where on a host wants a stream of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsFrom {
    /// What comes: it knows of no positions.
    Now,
    /// All that the journal holds: it has had nothing.
    Beginning,
    /// What came after this, and what comes.
    After(EventPosition),
}

impl EventsFrom {
    /// Reads what a host says in its request, if it says anything.
    ///
    /// # Errors
    /// [`MalformedPosition`] when it is neither a position nor [`EVENTS_FROM_THE_BEGINNING`].
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
