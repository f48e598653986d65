//! The typed client of a CSI plugin: every call of all five services, over a lease.
//!
//! ```text
//!  request ─ validate ─► sent over the lease ─► answer ─ check_answer ─► Answer
//!               │              │                            │
//!               └──────────────┴── FailedCall ──────────────┘
//! ```
//!
//! It is bound to the generation of its lease, and ends with it. Calls may be concurrent; those about one volume should not be (C001).

mod calls;
mod instance;
mod streams;

use std::error::Error;
use std::time::{Duration, Instant};

use tonic::{Response, Status};

use super::{Call, FailedCall, Failure, WireRequest, redacted};
use crate::lease::{ConnectionEnd, Lease, LeaseError, NewLease};
use crate::pauses;
use crate::rpc::{Cause, asked, cause};
use crate::vocabulary::milliseconds;

pub use calls::UnaryRequest;
pub use streams::{BlockReader, StreamRequest};

/// The rule that an undecodable answer breaks.
const UNREADABLE_RULE: &str = "C011";

/// A typed client of one generation of a CSI plugin. Dropping it returns its lease.
///
/// A request that breaks a rule of the specification, or needs a capability that the plugin does not report, is not sent. Each call has a
/// deadline; after it, the plugin may continue the call (C015). [`FailedCall::outcome`] is what is known after a failure, and what can
/// help. Neither secrets nor mount flags are in any error or log (C025).
///
/// Calls of the controller services need a lease of the plugin as controller, those of the node service a lease of it as node.
#[derive(Debug)]
pub struct Client {
    lease: Lease,
}

impl Client {
    /// A client over a lease.
    #[must_use]
    pub const fn new(lease: Lease) -> Self {
        Self { lease }
    }

    /// Its lease.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Makes a call that has one answer.
    ///
    /// # Errors
    /// When the request breaks a rule, the lease has ended, no answer comes within the deadline, the plugin answers with an error, or its
    /// answer breaks a rule.
    pub async fn call<R: UnaryRequest>(
        &self,
        request: &R,
        deadline: Duration,
    ) -> Result<R::Answer, FailedCall> {
        let outcome = async {
            let refused = request.validate(self.lease.fingerprint());
            refused.map_err(|error| Failure::Request(error.fault))?;
            let message = asked(request.to_wire(), deadline);
            let message = answered(deadline, R::send(&self.lease, message), &request.withheld()).await?;
            let answer = R::answer_from_wire(message).map_err(Failure::Answer)?;
            request.check_answer(&answer).map_err(Failure::Answer)?;
            Ok(answer)
        };
        self.noted(R::CALL, outcome).await
    }

    /// Logs the end of a call, and completes its error.
    async fn noted<T>(
        &self,
        call: Call,
        outcome: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, FailedCall> {
        let (plugin, allocation) = (self.lease.plugin(), self.lease.allocation());
        let (generation, began) = (self.lease.generation(), Instant::now());
        let outcome = outcome.await.map_err(|failure| self.failed(call, failure));
        let took_ms = milliseconds(began.elapsed());
        match &outcome {
            Ok(_) => {
                tracing::debug!(%call, %plugin, %allocation, generation = generation.get(), took_ms, "csi call answered")
            }
            Err(error) => {
                tracing::debug!(%call, %plugin, %allocation, generation = generation.get(), took_ms, %error, "csi call failed");
            }
        }
        outcome
    }

    fn failed(&self, call: Call, failure: Failure) -> FailedCall {
        FailedCall {
            call,
            plugin: self.lease.plugin().clone(),
            allocation: self.lease.allocation().clone(),
            generation: self.lease.generation(),
            failure,
        }
    }
}

/// The answer of a call, if it arrives within the deadline. Withheld values are removed from the plugin's message.
async fn answered<W>(
    deadline: Duration,
    answer: impl Future<Output = Result<Response<W>, Status>>,
    withheld: &[&str],
) -> Result<W, Failure> {
    match pauses::within(deadline, answer).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(failure(&status, withheld)),
        Err(_) => Err(Failure::DeadlineExceeded { after: deadline }),
    }
}

fn failure(status: &Status, withheld: &[&str]) -> Failure {
    let unknown = "whether it took effect is unknown";
    match LeaseError::of(status) {
        Some(LeaseError::Ended { end, .. }) => {
            let detail = format!("{end}; {}", end.new_lease());
            return Failure::LeaseEnded { detail, host_stops: host_stops(*end) };
        }
        Some(LeaseError::TooMany { in_flight, .. }) => {
            let detail = format!("{in_flight} calls are already in flight; try again later");
            return Failure::TooMany { detail };
        }
        Some(LeaseError::Cut { end, .. }) => {
            let detail = format!("it was aborted with its connection, and {unknown}");
            return Failure::Lost { detail, host_stops: host_stops(*end) };
        }
        Some(LeaseError::Broken { error, end }) => {
            return Failure::Lost { detail: format!("{error}, and {unknown}"), host_stops: host_stops(*end) };
        }
        None => {}
    }
    // Before the message is truncated, which could leave the beginning of a secret. A status with a source is not from the plugin.
    let told = match status.source() {
        None => &Status::new(status.code(), redacted(status.message(), withheld)),
        Some(_) => status,
    };
    match cause(told, UNREADABLE_RULE) {
        Cause::Status { code, message } => Failure::Status { code, message },
        Cause::Fault(fault) => Failure::Answer(fault),
        lost => Failure::Lost { detail: lost.to_string(), host_stops: false },
    }
}

/// Whether a connection takes no more calls because the host is stopping.
fn host_stops(end: ConnectionEnd) -> bool {
    end.new_lease() == NewLease::CannotHelp
}

#[cfg(test)]
mod tests;
