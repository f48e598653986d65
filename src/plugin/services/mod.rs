//! The services of a plugin, all on one socket, over the driver that it serves.

mod base;
mod control;
mod stdio;
mod tasks;

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use tonic::Status;

use super::driver::{Answers, Driver};
use super::refusal::Refusal;
use super::stopping::Stopping;

pub(super) use control::Control;
pub(super) use stdio::Stdio;

/// The state that the services share: the driver, and the stop request.
#[derive(Debug)]
pub(super) struct Served<D> {
    pub(super) driver: Arc<D>,
    pub(super) stopping: Stopping,
}

impl<D> Clone for Served<D> {
    fn clone(&self) -> Self {
        Self { driver: self.driver.clone(), stopping: self.stopping.clone() }
    }
}

/// A stream of answers to a host.
pub(super) type Outgoing<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl<D: Driver> Served<D> {
    /// Sends answers until they end or the plugin is requested to stop; an endless stream must not delay the shutdown.
    fn outgoing<T: Send + 'static>(&self, answers: Answers<T>) -> Outgoing<T> {
        let stopping = self.stopping.clone();
        let ended = Box::pin(async move { stopping.told().await });
        Box::pin(answers.map(|answer| answer.map_err(refused)).take_until(ended))
    }
}

fn refused(refusal: Refusal) -> Status {
    refusal.into()
}
