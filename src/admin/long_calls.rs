//! Limits calls that take long. Each holds one of a fixed number of places, and its connection is not closed during the call.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Status};

use super::connections::{Peer, Staying};

/// The place of a call that takes long. Its connection is not closed during the call.
pub(super) type LongCall = (OwnedSemaphorePermit, Option<Staying>);

/// Takes a place for a call.
pub(super) fn long_call<T>(
    places: &Arc<Semaphore>,
    request: &Request<T>,
    refusal: impl FnOnce() -> String,
) -> Result<LongCall, Status> {
    let place = Arc::clone(places).try_acquire_owned();
    let place = place.map_err(|_none| Status::resource_exhausted(refusal()))?;
    Ok((place, request.extensions().get::<Peer>().map(Peer::stay)))
}

/// The same stream, which holds the place until it is dropped.
pub(super) fn while_held<T>(place: LongCall, stream: impl Stream<Item = T>) -> impl Stream<Item = T> {
    stream.map(move |item| {
        let _held = &place;
        item
    })
}
