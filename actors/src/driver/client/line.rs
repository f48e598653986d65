//! The line to one generation of a driver, which its clients share and its owner closes.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use callboard_proto::drivers::driver_client::DriverClient as Stub;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::{Response, Status};

use super::ServingProcess;
use super::from_wire::Fault;
use super::status::Failure;
use super::{Asked, DriverError, DriverRpc};
use crate::driver::DriverLimits;
use crate::goplugin::{Connection, PluginEndpoint};
use crate::lease::{Gate, NotAdmitted, Pass};
use crate::pauses;
use crate::rpc::Channel;
use crate::vocabulary::{DriverName, Generation};

/// Largest message that is received from or sent to a driver, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The reason why a line has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::driver) struct LineEnd {
    pub(in crate::driver) is_worth_retrying: bool,
    pub(in crate::driver) reason: String,
}

/// The line to one generation of a driver.
pub(in crate::driver) struct Line {
    pub(super) driver: DriverName,
    pub(super) generation: Generation,
    pub(super) process: ServingProcess,
    pub(super) gate: Arc<Gate<LineEnd>>,
    pub(super) endpoint: PluginEndpoint,
    channel: Channel,
    places: Arc<Semaphore>,
    end_wait: Duration,
}

/// One call in flight.
pub(super) struct InFlight {
    pass: Pass<LineEnd>,
    asked: Asked,
}

impl InFlight {
    /// Waits until the call is cut, and returns the error to report.
    pub(super) async fn gone(&self) -> DriverError {
        gone(self.asked.clone(), poll_fn(|context| self.pass.poll_cut(context)).await)
    }
}

fn gone(asked: Asked, end: LineEnd) -> DriverError {
    let LineEnd { is_worth_retrying, reason } = end;
    DriverError::PluginGone { asked, is_worth_retrying, reason }
}

impl Line {
    pub(in crate::driver) fn new(
        driver: DriverName,
        generation: Generation,
        process: ServingProcess,
        connection: &Connection,
        limits: &DriverLimits,
    ) -> Self {
        let places = Arc::new(Semaphore::new(limits.calls_max.min(Semaphore::MAX_PERMITS)));
        // The semaphore limits the calls, since calls above its limit wait.
        let gate = Arc::new(Gate::new(usize::MAX));
        let (endpoint, channel) = (connection.endpoint().clone(), connection.channel());
        Self { driver, generation, process, gate, endpoint, channel, places, end_wait: limits.end_wait }
    }

    pub(super) fn asked(&self, rpc: DriverRpc) -> Asked {
        Asked { driver: self.driver.clone(), rpc }
    }

    /// Begins a call, unless the line has ended.
    pub(super) fn begin(&self, rpc: DriverRpc) -> Result<InFlight, DriverError> {
        let asked = self.asked(rpc);
        let admitted = if rpc.is_watching() { self.gate.enter_watching() } else { self.gate.enter() };
        match admitted {
            Ok(pass) => Ok(InFlight { pass, asked }),
            Err(NotAdmitted::Closed(end)) => Err(gone(asked, end)),
            Err(NotAdmitted::Full(in_flight)) => {
                let detail = format!("{in_flight} questions are in flight");
                Err(DriverError::Disconnected { asked, detail })
            }
        }
    }

    pub(super) fn stub(&self) -> Stub<Channel> {
        Stub::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Waits for a permit of the semaphore that limits the calls in flight.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Makes a call with one request and one answer.
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
        let in_flight = self.begin(rpc)?;
        let stub = self.stub();
        let answer = pauses::within(deadline, async {
            let _place = self.place().await;
            question(stub).await
        });
        let answer = tokio::select! {
            biased;
            gone = in_flight.gone() => return Err(gone),
            answer = answer => answer,
        };
        match answer {
            Ok(Ok(answer)) => read(answer.into_inner())
                .map_err(|fault| DriverError::Malformed { asked: self.asked(rpc), fault }),
            Ok(Err(status)) => Err(self.failed(&in_flight, &status, false).await),
            Err(_) => Err(DriverError::DeadlineExceeded { asked: self.asked(rpc), after: deadline }),
        }
    }

    /// The error of a failed call. If it looks like the end of the plugin, and the plugin ends within a while, the end is reported
    /// instead (D111).
    pub(super) async fn failed(&self, in_flight: &InFlight, status: &Status, is_stream: bool) -> DriverError {
        let failure = Failure::of(status);
        // The call is over, so a stop need not wait for it.
        in_flight.pass.watch();
        if failure.may_be_the_end(is_stream)
            && let Ok(gone) = timeout(self.end_wait, in_flight.gone()).await
        {
            return gone;
        }
        let asked = in_flight.asked.clone();
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
