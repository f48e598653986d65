//! The refusals with which a driver answers calls.

use callboard_proto::structs::RecoverableError;
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};

/// The type URL of the detail that reports whether a retry can help (D110).
const RECOVERABLE_URL: &str = "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError";

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The driver does not know the task.
    NoSuchTask,
    /// The request is malformed.
    Invalid,
    /// The object already exists, and differs.
    Exists,
    /// The task is in the wrong state: it still runs, or no longer.
    NotNow,
    /// The driver does not support this.
    Unsupported,
    /// A timeout.
    TimedOut,
    /// The driver tried and failed.
    Failed,
    /// Any other kind, by its gRPC code.
    Code(Code),
}

/// A driver's refusal: its kind, its reason, and whether a retry can help, if known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind of the refusal.
    pub kind: RefusalKind,
    /// The reason: the attempted operation, its object, and what to do.
    pub message: String,
    /// Whether a retry can help, if the driver knows; hosts keep it (D110).
    pub recoverable: Option<bool>,
}

impl Refusal {
    /// A refusal of this kind.
    #[must_use]
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), recoverable: None }
    }

    /// The driver does not know the task.
    #[must_use]
    pub fn no_such_task(task_id: &str) -> Self {
        let message = format!("no task {task_id:?} is known; start it, or recover it by its handle");
        Self::new(RefusalKind::NoSuchTask, message)
    }

    /// The driver does not support this.
    #[must_use]
    pub fn unsupported(what: &str) -> Self {
        Self::new(RefusalKind::Unsupported, format!("this driver does not support {what}"))
    }

    /// The request is malformed.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, message)
    }

    /// The driver tried and failed.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Failed, message)
    }

    /// Sets whether a retry can help.
    #[must_use]
    pub const fn recoverable(mut self, recoverable: bool) -> Self {
        self.recoverable = Some(recoverable);
        self
    }

    /// Whether a retry can help: the driver's own answer, else a default by kind.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.recoverable
            .unwrap_or(matches!(self.kind, RefusalKind::TimedOut | RefusalKind::Code(Code::Unavailable)))
    }
}

/// The detailed form of a gRPC error (`google.rpc.Status`), sent in the trailers.
#[derive(Clone, PartialEq, Message)]
struct DetailedStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.kind {
            RefusalKind::NoSuchTask => Code::NotFound,
            RefusalKind::Invalid => Code::InvalidArgument,
            RefusalKind::Exists => Code::AlreadyExists,
            RefusalKind::NotNow => Code::FailedPrecondition,
            RefusalKind::Unsupported => Code::Unimplemented,
            RefusalKind::TimedOut => Code::DeadlineExceeded,
            RefusalKind::Failed => Code::Internal,
            RefusalKind::Code(code) => code,
        };
        let Some(recoverable) = refusal.recoverable else { return Self::new(code, refusal.message) };
        let value = RecoverableError { recoverable }.encode_to_vec();
        let detail = Any { type_url: RECOVERABLE_URL.to_owned(), value };
        let detailed =
            DetailedStatus { code: code as i32, message: refusal.message.clone(), details: vec![detail] };
        Self::with_details(code, refusal.message, detailed.encode_to_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_carries_on_the_wire_whether_trying_again_can_help_d110() {
        let status = Status::from(Refusal::failed("no room").recoverable(true));
        assert_eq!((status.code(), status.message()), (Code::Internal, "no room"));
        let detailed = DetailedStatus::decode(status.details()).expect("details");
        assert_eq!((detailed.code, &*detailed.message), (13, "no room"));
        assert_eq!(detailed.details[0].type_url, RECOVERABLE_URL);
        assert_eq!(detailed.details[0].value, [8, 1], "the field `recoverable` is set");
        assert!(Status::from(Refusal::no_such_task("t")).details().is_empty());
    }
}
