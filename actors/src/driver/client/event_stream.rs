//! The stream of task events, read in batches.

use std::fmt;
use std::sync::Arc;

use callboard_proto::drivers as wire;
use futures_util::future::{BoxFuture, FutureExt};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::from_wire;
use super::line::Line;
use super::{DriverError, DriverRpc, EventBatch};
use crate::driver::{
    EVENTS_AFTER_METADATA, EVENTS_FROM_THE_BEGINNING, EVENTS_STREAM_METADATA, EventPosition, TaskEventItem,
};

/// The limit of events in one batch.
const BATCH_MAX: usize = 256;

/// An event, or the error in it.
type Told = Result<TaskEventItem, String>;
type Opening = BoxFuture<'static, Result<Response<Streaming<wire::DriverTaskEvent>>, Status>>;

enum State {
    Opening(Opening),
    /// It is being read, and has this name.
    Open(Box<Streaming<wire::DriverTaskEvent>>, Option<Arc<str>>),
    /// It is over; its end was read together with the last batch.
    Ended(Option<Status>),
}

/// The stream of task events of one driver.
pub struct EventStream {
    line: Arc<Line>,
    state: State,
}

impl EventStream {
    pub(super) fn open(line: Arc<Line>, after: Option<&EventPosition>) -> Self {
        let mut question = Request::new(wire::TaskEventsRequest {});
        let after = after.map_or_else(|| EVENTS_FROM_THE_BEGINNING.to_owned(), ToString::to_string);
        if let Ok(after) = after.parse() {
            question.metadata_mut().insert(EVENTS_AFTER_METADATA, after);
        }
        let mut stub = line.stub();
        let opening = Box::pin(async move { stub.task_events(question).await });
        Self { line, state: State::Opening(opening) }
    }

    /// Waits for the next batch. Dropping this future loses nothing.
    ///
    /// # Errors
    /// Like all calls: [`DriverError`]. The stream is over then.
    pub async fn next(&mut self) -> Result<EventBatch, DriverError> {
        let line = Arc::clone(&self.line);
        let read = match line.begin(DriverRpc::TaskEvents) {
            Ok(in_flight) => tokio::select! {
                biased;
                gone = in_flight.gone() => Err(gone),
                read = self.read() => match read {
                    Ok(batch) => Ok(batch),
                    Err(status) => Err(line.failed(&in_flight, &status, true).await),
                },
            },
            Err(gone) => Err(gone),
        };
        if matches!(read, Ok(EventBatch::Ended) | Err(_)) {
            self.state = State::Ended(None);
        }
        read
    }

    async fn read(&mut self) -> Result<EventBatch, Status> {
        match &mut self.state {
            State::Opening(opening) => {
                let answer = opening.await?;
                let stream = stream_name(answer.metadata());
                self.state = State::Open(Box::new(answer.into_inner()), stream.clone());
                Ok(EventBatch::Opened(stream))
            }
            State::Open(stream, name) => {
                let Some(first) = stream.message().await? else { return Ok(EventBatch::Ended) };
                let (events, end) = more_of(stream, first, name.as_ref());
                if let Some(end) = end {
                    self.state = State::Ended(end.err());
                }
                Ok(EventBatch::Events(events))
            }
            State::Ended(end) => end.take().map_or(Ok(EventBatch::Ended), Err),
        }
    }
}

/// An event and all further events that are available already; and the end of the stream, if it has been received too.
fn more_of(
    stream: &mut Streaming<wire::DriverTaskEvent>,
    first: wire::DriverTaskEvent,
    name: Option<&Arc<str>>,
) -> (Vec<Told>, Option<Result<(), Status>>) {
    let mut events = vec![from_wire::event(first, name)];
    while events.len() < BATCH_MAX {
        match stream.message().now_or_never() {
            Some(Ok(Some(event))) => events.push(from_wire::event(event, name)),
            Some(Ok(None)) => return (events, Some(Ok(()))),
            Some(Err(status)) => return (events, Some(Err(status))),
            None => break,
        }
    }
    (events, None)
}

fn stream_name(metadata: &MetadataMap) -> Option<Arc<str>> {
    let name = metadata.get(EVENTS_STREAM_METADATA)?.to_str().ok()?;
    // A name is valid if a position with it is valid.
    EventPosition::new(name, 1).ok().map(|position| position.stream)
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("line", &self.line).finish_non_exhaustive()
    }
}
