//! Calls about volumes that failed, as plain data: a machine takes them as inputs.

use std::fmt;
use std::time::Duration;

use super::call::Call;
use super::outcome::Outcome;
use crate::rpc::{Code, Fault};
use crate::vocabulary::{AllocationId, Generation, PluginKey};

/// Why a call has no usable answer. It contains no secrets (C025).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The request breaks a rule. It was not sent.
    Request(Fault),
    /// The generation of the lease takes no more calls. It was not sent.
    LeaseEnded {
        /// The reason.
        detail: String,
        /// Whether the host is stopping, so that a new lease cannot help.
        host_stops: bool,
    },
    /// Too many calls are in flight to this plugin (F17). It was not sent.
    TooMany {
        /// How many calls.
        detail: String,
    },
    /// It was sent, and the connection broke off or was cut before an answer came.
    Lost {
        /// How the connection was lost.
        detail: String,
        /// Whether the host is stopping, so that a new lease cannot help.
        host_stops: bool,
    },
    /// It was sent, and no answer came within our own deadline. The plugin may continue the call (C015).
    DeadlineExceeded {
        /// The deadline.
        after: Duration,
    },
    /// The plugin answered with an error.
    Status {
        /// Its code.
        code: Code,
        /// Its message, truncated and escaped; may be empty (C021).
        message: String,
    },
    /// The plugin answered, and its answer breaks a rule (C011).
    Answer(Fault),
}

/// A failed call: the call, its target, and the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCall {
    /// The call.
    pub call: Call,
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that served it.
    pub allocation: AllocationId,
    /// Its generation.
    pub generation: Generation,
    /// The failure.
    pub failure: Failure,
}

impl FailedCall {
    /// The known effect, and the recommended reaction (table C.6).
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.call, &self.failure)
    }

    /// The call, its target and the failure in words, for a call that Callboard repeats by itself: if it is unknown whether it took
    /// effect, the text gives no advice on that.
    #[must_use]
    pub fn reason(&self) -> String {
        let Self { call, plugin, allocation, generation, failure } = self;
        let why = match failure {
            Failure::Request(fault) => format!("it was not sent, {fault}; {}", fault.problem.remedy()),
            Failure::LeaseEnded { detail, .. } | Failure::TooMany { detail } => {
                format!("it was not sent, {detail}")
            }
            Failure::Lost { detail, .. } => detail.clone(),
            Failure::DeadlineExceeded { after } => {
                format!("no answer within {after:?}, and whether it took effect is unknown")
            }
            Failure::Status { code, message } if message.is_empty() => {
                format!("the plugin answered {code} and no more; {}", code.hint())
            }
            Failure::Status { code, message } => {
                format!("the plugin answered {code} \"{message}\"; {}", code.hint())
            }
            Failure::Answer(fault) => format!("faulty answer, {fault}; report it to the plugin's vendor"),
        };
        format!("{call} on {plugin} of allocation {allocation}, generation {generation}, failed: {why}")
    }

    /// The code, if the plugin itself answered with an error.
    #[must_use]
    pub const fn code(&self) -> Option<Code> {
        match &self.failure {
            Failure::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same call may succeed after a pause, without any other action.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.outcome().reaction.is_retry()
    }
}

impl fmt::Display for FailedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.failure {
            Failure::Lost { host_stops: false, .. } => {
                "; ask for a new lease and repeat it, or call its inverse"
            }
            Failure::Lost { host_stops: true, .. } => {
                "; the host is stopping, so repeat it in its next run, or call its inverse then"
            }
            Failure::DeadlineExceeded { .. } => "; repeat it after a pause, or call its inverse",
            Failure::Request(_)
            | Failure::LeaseEnded { .. }
            | Failure::TooMany { .. }
            | Failure::Status { .. }
            | Failure::Answer(_) => "",
        };
        write!(f, "{}{advice}", self.reason())
    }
}

impl std::error::Error for FailedCall {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Problem;
    use crate::vocabulary::{PluginName, PluginType};

    fn failed(failure: Failure) -> FailedCall {
        let plugin = PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").expect("a good name"));
        FailedCall {
            call: Call::NodeStageVolume,
            plugin,
            allocation: AllocationId::new("a1").expect("a good id"),
            generation: Generation::new(7),
            failure,
        }
    }

    #[test]
    fn a_failed_call_says_what_was_tried_on_what_and_what_to_do_c021_log_05() {
        let fault = Fault { rule: "C125", field: "staging_target_path", problem: Problem::Empty };
        let told = |failure| failed(failure).to_string();
        let detail = || "it was retired".to_owned();
        let on = "NodeStageVolume on csi-node/zfs of allocation a1, generation 7, failed: ";
        for (failure, rest) in [
            (Failure::Request(fault.clone()), "it was not sent, staging_target_path is empty; set it"),
            (Failure::LeaseEnded { detail: detail(), host_stops: false }, "it was not sent, it was retired"),
            (Failure::TooMany { detail: detail() }, "it was not sent, it was retired"),
            (
                Failure::Lost { detail: detail(), host_stops: false },
                "it was retired; ask for a new lease and repeat it, or call its inverse",
            ),
            (
                Failure::Lost { detail: detail(), host_stops: true },
                "it was retired; the host is stopping, so repeat it in its next run, or call its inverse then",
            ),
            (
                Failure::DeadlineExceeded { after: Duration::from_millis(1500) },
                "no answer within 1.5s, and whether it took effect is unknown; repeat it after a pause, or call its inverse",
            ),
            (
                Failure::Status { code: Code::Aborted, message: "busy".to_owned() },
                "the plugin answered ABORTED \"busy\"; another call is pending; repeat this one after a pause",
            ),
            (
                Failure::Status { code: Code::NotFound, message: String::new() },
                "the plugin answered NOT_FOUND and no more; check that what was named exists",
            ),
            (
                Failure::Answer(fault),
                "faulty answer, staging_target_path is empty; report it to the plugin's vendor",
            ),
        ] {
            assert_eq!(told(failure), format!("{on}{rest}"));
        }
    }

    #[test]
    fn what_is_repeated_anyway_is_told_without_that_advice() {
        let on = "NodeStageVolume on csi-node/zfs of allocation a1, generation 7, failed: ";
        let lost = failed(Failure::Lost { detail: "it was cut".to_owned(), host_stops: false });
        assert_eq!(lost.reason(), format!("{on}it was cut"));
        let overdue = failed(Failure::DeadlineExceeded { after: Duration::from_secs(2) });
        assert_eq!(
            overdue.reason(),
            format!("{on}no answer within 2s, and whether it took effect is unknown")
        );
    }

    #[test]
    fn only_what_can_help_itself_is_transient_c012() {
        let ended = |host_stops| failed(Failure::LeaseEnded { detail: String::new(), host_stops });
        assert!(ended(false).is_transient() && !ended(true).is_transient());
        let refused = failed(Failure::Status { code: Code::InvalidArgument, message: String::new() });
        assert!(!refused.is_transient());
        assert_eq!(refused.code(), Some(Code::InvalidArgument));
        let lost = |host_stops| failed(Failure::Lost { detail: String::new(), host_stops });
        assert!(lost(false).is_transient() && !lost(true).is_transient());
        assert_eq!(lost(false).code(), None);
    }
}
