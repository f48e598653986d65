//! How a plugin acts when it is called: as it should, or as a script wants it.

use std::collections::BTreeMap;
use std::time::Duration;

use tonic::{Code, Response, Status};

use super::calls::{Calls, ConnectionNumber};

/// What a plugin does when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It answers as it should.
    Ready,
    /// It answers that it is not ready; of a call that cannot say so the same as [`Act::Ready`].
    NotReady,
    /// It never answers.
    Nothing,
    /// It does what it is asked for, and never answers. Of a call without an effect the same as [`Act::Nothing`].
    Lost,
    /// It answers that all is well and says nothing: an answer in which everything has its default value.
    Empty,
    /// It answers with this code.
    Fail(Code),
}

/// How it acts, after how long, and how often before it answers as it should again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acting {
    pub(super) act: Act,
    pub(super) after: Duration,
    pub(super) times: Option<u32>,
}

/// What a plugin was told to do when it is called, and which calls it has had.
#[derive(Debug, Default)]
pub(super) struct Acts {
    acts: BTreeMap<&'static str, Acting>,
    calls: Calls,
}

impl Acts {
    /// How it answers this call from now on.
    pub(super) fn on(&mut self, call: &'static str, acting: Acting) {
        self.acts.insert(call, acting);
    }

    /// All calls since this was last asked.
    pub(super) fn take_calls(&mut self) -> Vec<&'static str> {
        self.calls.take()
    }

    /// What it does about a call that it has just had.
    pub(super) fn called(&mut self, call: &'static str) -> Acting {
        self.calls.add(call);
        self.acting(call)
    }

    /// The same of a call that reads what the plugin is, over this connection.
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
    /// Whether the call has the effect that it is made for.
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
