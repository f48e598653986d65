//! How a plugin acts when it is called: correctly, or as a script requires.

use std::collections::BTreeMap;
use std::time::Duration;

use tonic::{Code, Response, Status};

use super::calls::{Calls, ConnectionNumber};

/// The action of a plugin when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It answers correctly.
    Ready,
    /// It answers that it is not ready; for a call without such an answer the same as [`Act::Ready`].
    NotReady,
    /// It never answers.
    Nothing,
    /// It executes the call, and never answers. For a call without an effect the same as [`Act::Nothing`].
    Lost,
    /// It answers with success and no content: an answer in which everything has its default value.
    Empty,
    /// It answers with this code.
    Fail(Code),
}

/// How it acts, after how much time, and how often before it answers correctly again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acting {
    pub(super) act: Act,
    pub(super) after: Duration,
    pub(super) times: Option<u32>,
}

/// The actions of a plugin for its calls, and the calls that it has received.
#[derive(Debug, Default)]
pub(super) struct Acts {
    acts: BTreeMap<&'static str, Acting>,
    calls: Calls,
}

impl Acts {
    /// Sets how it answers this call from now on.
    pub(super) fn on(&mut self, call: &'static str, acting: Acting) {
        self.acts.insert(call, acting);
    }

    /// All calls since the last request for them.
    pub(super) fn take_calls(&mut self) -> Vec<&'static str> {
        self.calls.take()
    }

    /// Records a call, and returns how the plugin acts.
    pub(super) fn called(&mut self, call: &'static str) -> Acting {
        self.calls.add(call);
        self.acting(call)
    }

    /// The same for a call that reads the plugin's identity and state, over this connection.
    pub(super) fn read(&mut self, call: &'static str, reader: ConnectionNumber) -> Acting {
        self.calls.add_read(call, reader);
        self.acting(call)
    }

    fn acting(&mut self, call: &'static str) -> Acting {
        let usual = Acting { act: Act::Ready, after: Duration::ZERO, times: None };
        let Some(acting) = self.acts.get_mut(call) else { return usual };
        let taken = *acting;
        match &mut acting.times {
            Some(1) => {
                self.acts.remove(call);
            }
            Some(times) => *times -= 1,
            None => {}
        }
        taken
    }
}

impl Acting {
    /// Plays this up to the answer.
    pub(super) async fn play(self) -> Result<Act, Status> {
        tokio::time::sleep(self.after).await;
        match self.act {
            Act::Nothing | Act::Lost => std::future::pending().await,
            Act::Ready | Act::NotReady | Act::Empty => Ok(self.act),
            Act::Fail(code) => Err(Status::new(code, "as the script wants it")),
        }
    }
}

impl Act {
    /// Whether the call has its intended effect.
    pub(super) const fn has_effect(self) -> bool {
        matches!(self, Self::Ready | Self::NotReady | Self::Lost)
    }
}

/// The answer, or an empty one.
pub(super) fn answered<T: Default>(act: Act, answer: T) -> Result<Response<T>, Status> {
    Ok(Response::new(if act == Act::Empty { T::default() } else { answer }))
}

/// The codes of gRPC by their names, without `OK`.
pub(super) const CODES: [(&str, Code); 16] = [
    ("CANCELLED", Code::Cancelled),
    ("UNKNOWN", Code::Unknown),
    ("INVALID_ARGUMENT", Code::InvalidArgument),
    ("DEADLINE_EXCEEDED", Code::DeadlineExceeded),
    ("NOT_FOUND", Code::NotFound),
    ("ALREADY_EXISTS", Code::AlreadyExists),
    ("PERMISSION_DENIED", Code::PermissionDenied),
    ("RESOURCE_EXHAUSTED", Code::ResourceExhausted),
    ("FAILED_PRECONDITION", Code::FailedPrecondition),
    ("ABORTED", Code::Aborted),
    ("OUT_OF_RANGE", Code::OutOfRange),
    ("UNIMPLEMENTED", Code::Unimplemented),
    ("INTERNAL", Code::Internal),
    ("UNAVAILABLE", Code::Unavailable),
    ("DATA_LOSS", Code::DataLoss),
    ("UNAUTHENTICATED", Code::Unauthenticated),
];
