//! The line to one generation of a driver, which its clients share and which its owner can cut.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use callboard_proto::drivers::driver_client::DriverClient as Stub;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tonic::{Request, Response, Status};

use super::error::{Asked, DriverError, DriverRpc};
use super::from_wire::Fault;
use super::status::Failure;
use crate::rpc::Channel;
use crate::vocabulary::{DriverName, Generation};

/// Largest message that is taken from a driver or given to one, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much longer than we wait a driver is told that it has, so that ours runs out first, always.
const DEADLINE_GRACE: Duration = Duration::from_secs(1);

/// Why a line is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) is_worth_retrying: bool,
    pub(super) reason: String,
}

/// The line to one generation of a driver.
pub(super) struct Line {
    pub(super) driver: DriverName,
    pub(super) generation: Generation,
    channel: Option<Channel>,
    cut: watch::Receiver<Option<Cut>>,
    places: Arc<Semaphore>,
    end_wait: Duration,
}

/// The owner's end of a line: dropping it cuts the line.
#[derive(Debug)]
pub(in crate::driver) struct Lease {
    cut: watch::Sender<Option<Cut>>,
}

impl Lease {
    /// Cuts the line: everything in flight over it fails within an instant, and so does what is asked later (SHD-03). The
    /// first reason stays.
    pub(in crate::driver) fn cut(&self, is_worth_retrying: bool, reason: &str) {
        self.cut.send_if_modified(|cut| {
            let is_first = cut.is_none();
            cut.get_or_insert_with(|| Cut { is_worth_retrying, reason: reason.to_owned() });
            is_first
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.cut(true, "the connection was given up");
    }
}

impl Line {
    pub(super) fn new(
        driver: DriverName,
        generation: Generation,
        channel: Option<Channel>,
        calls_max: usize,
        end_wait: Duration,
    ) -> (Lease, Arc<Self>) {
        let (tell, cut) = watch::channel(None);
        let places = Arc::new(Semaphore::new(calls_max.min(Semaphore::MAX_PERMITS)));
        (Lease { cut: tell }, Arc::new(Self { driver, generation, channel, cut, places, end_wait }))
    }

    pub(super) fn asked(&self, rpc: DriverRpc) -> Asked {
        Asked { driver: self.driver.clone(), rpc }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.borrow().is_some()
    }

    /// Waits until the line is cut, and says how it is told.
    pub(super) async fn gone(&self, rpc: DriverRpc) -> DriverError {
        let mut cut = self.cut.clone();
        // A sender cuts the line before it is dropped, so an error cannot be.
        let cut = match cut.wait_for(Option::is_some).await {
            Ok(cut) => cut.clone(),
            Err(_) => None,
        };
        let cut =
            cut.unwrap_or_else(|| Cut { is_worth_retrying: true, reason: "its owner ended".to_owned() });
        let Cut { is_worth_retrying, reason } = cut;
        DriverError::PluginGone { asked: self.asked(rpc), is_worth_retrying, reason }
    }

    /// A stub to ask over, unless the line is cut.
    pub(super) async fn stub(&self, rpc: DriverRpc) -> Result<Stub<Channel>, DriverError> {
        match &self.channel {
            Some(channel) if !self.is_cut() => Ok(Stub::new(channel.clone())
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX)),
            Some(_) | None => Err(self.gone(rpc).await),
        }
    }

    /// A place among the calls that may be under way.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Asks one question and reads its one answer.
    pub(super) async fn ask<W, T, F>(
        &self,
        rpc: DriverRpc,
        deadline: Duration,
        question: impl FnOnce(Stub<Channel>) -> F,
        read: impl FnOnce(W) -> Result<T, Fault>,
    ) -> Result<T, DriverError>
    where
        F: Future<Output = Result<Response<W>, Status>>,
    {
        let stub = self.stub(rpc).await?;
        let answer = timeout(deadline, async {
            let _place = self.place().await;
            question(stub).await
        });
        let answer = tokio::select! {
            biased;
            gone = self.gone(rpc) => return Err(gone),
            answer = answer => answer,
        };
        match answer {
            Ok(Ok(answer)) => read(answer.into_inner())
                .map_err(|fault| DriverError::Malformed { asked: self.asked(rpc), fault }),
            Ok(Err(status)) => Err(self.failed(rpc, &status, false).await),
            Err(_) => Err(DriverError::DeadlineExceeded { asked: self.asked(rpc), after: deadline }),
        }
    }

    /// Says what a failed call came to. One that looks like the end of the plugin is told as that if the plugin does end
    /// within a while (D111).
    pub(super) async fn failed(&self, rpc: DriverRpc, status: &Status, is_stream: bool) -> DriverError {
        let failure = Failure::of(status);
        if failure.may_be_the_end(is_stream)
            && let Ok(gone) = timeout(self.end_wait, self.gone(rpc)).await
        {
            return gone;
        }
        let asked = self.asked(rpc);
        match failure {
            Failure::Broken(detail) => DriverError::Disconnected { asked, detail },
            Failure::Refused { code, message, recoverable } => {
                DriverError::Refused { asked, code, message, recoverable }
            }
            Failure::Unreadable(fault) => DriverError::Malformed { asked, fault },
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("driver", &self.driver)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

impl Hash for Line {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.driver, self.generation).hash(state);
    }
}

/// A question that tells the driver how long it has.
pub(super) fn timed<W>(question: W, deadline: Duration) -> Request<W> {
    let mut request = Request::new(question);
    request.set_timeout(deadline.saturating_add(DEADLINE_GRACE));
    request
}
