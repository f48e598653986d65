//! Reads a failed call from the status of the transport: the driver's own answer, or an error on the way.

use callboard_proto::structs::RecoverableError;
use prost::Message;
use tonic::Status;

use crate::rpc::{Cause, Code, cause};

/// The name of the detail that says whether a retry can help (D110).
const RECOVERABLE: &str = "hashicorp.nomad.plugins.shared.structs.RecoverableError";
/// The rule that an unreadable answer breaks.
const UNREADABLE_RULE: &str = "D103";

/// The cause of a failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::driver) enum Failure {
    /// The connection was lost.
    Broken(String),
    /// The driver refused.
    Refused {
        /// Its code.
        code: Code,
        /// Its message, cut and escaped.
        message: String,
        /// Whether it says that a retry can help.
        recoverable: Option<bool>,
    },
    /// The answer cannot be read.
    Unreadable(String),
}

impl Failure {
    pub(in crate::driver) fn of(status: &Status) -> Self {
        match cause(status, UNREADABLE_RULE) {
            Cause::Status { code, message } => {
                Self::Refused { code, message, recoverable: recoverable(status.details()) }
            }
            Cause::Fault(fault) => Self::Unreadable(fault.to_string()),
            Cause::Disconnected { detail } => Self::Broken(detail),
            other => Self::Broken(other.to_string()),
        }
    }

    /// Whether the end of the plugin may be the cause (D111).
    pub(in crate::driver) const fn may_be_the_end(&self, is_stream: bool) -> bool {
        match self {
            Self::Broken(_) | Self::Refused { code: Code::Unavailable, .. } => true,
            Self::Refused { code: Code::Cancelled, .. } => is_stream,
            Self::Refused { .. } | Self::Unreadable(_) => false,
        }
    }

    /// The text for people.
    pub(in crate::driver) fn into_words(self) -> String {
        match self {
            Self::Broken(detail) => format!("disconnected: {detail}"),
            Self::Refused { code, message, .. } => format!("the driver answered {code} \"{message}\""),
            Self::Unreadable(fault) => format!("faulty answer: {fault}"),
        }
    }
}

/// The message `google.rpc.Status` that travels beside a status; only its details are read.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

fn recoverable(details: &[u8]) -> Option<bool> {
    let status = RichStatus::decode(details).ok()?;
    let is_meant = |name: &str| name == RECOVERABLE;
    let detail =
        status.details.iter().find(|detail| detail.type_url.rsplit('/').next().is_some_and(is_meant))?;
    RecoverableError::decode(detail.value.as_slice()).ok().map(|error| error.recoverable)
}

#[cfg(test)]
mod tests {
    use tonic::Code as TonicCode;

    use super::*;

    #[test]
    fn whether_trying_again_can_help_is_kept_d110() {
        let detail = |recoverable| prost_types::Any {
            type_url: format!("type.googleapis.com/{RECOVERABLE}"),
            value: RecoverableError { recoverable }.encode_to_vec(),
        };
        for told in [true, false] {
            let details = RichStatus { details: vec![detail(told)] }.encode_to_vec();
            let status = Status::with_details(TonicCode::Unknown, "no image", details.into());
            let Failure::Refused { code, recoverable, .. } = Failure::of(&status) else {
                panic!("the driver's own answer")
            };
            assert_eq!((code, recoverable), (Code::Unknown, Some(told)));
        }
        assert_eq!(recoverable(b""), None);
        assert_eq!(recoverable(&[0xff; 7]), None, "what cannot be read says nothing");
    }

    #[test]
    fn only_what_looks_like_the_end_is_waited_for_d111() {
        assert!(Failure::of(&Status::unavailable("bye")).may_be_the_end(false));
        assert!(Failure::of(&Status::cancelled("bye")).may_be_the_end(true));
        assert!(!Failure::of(&Status::cancelled("bye")).may_be_the_end(false));
        assert!(!Failure::of(&Status::unknown("no")).may_be_the_end(true));
    }
}
