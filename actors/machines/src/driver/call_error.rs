//! Errors of calls to a driver.

use std::fmt;
use std::time::Duration;

use crate::rpc::Code;
use crate::vocabulary::DriverName;

macro_rules! rpcs {
    ($($(#[$doc:meta])* $variant:ident,)*) => {
        /// A call to a driver.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DriverRpc {
            $($(#[$doc])* $variant,)*
        }

        impl DriverRpc {
            /// All calls.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the protocol.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

rpcs!(
    /// Initializes the driver (D109).
    Init,
    /// The schema of a task's configuration.
    TaskConfigSchema,
    /// The capabilities of the driver.
    Capabilities,
    /// The stream of fingerprints.
    Fingerprint,
    /// Takes a task over again by its handle (D108).
    RecoverTask,
    /// Starts a task.
    StartTask,
    /// Waits for a task's end.
    WaitTask,
    /// Stops a task.
    StopTask,
    /// Forgets a task.
    DestroyTask,
    /// The status of a task.
    InspectTask,
    /// The stream of a task's resource usage.
    TaskStats,
    /// The stream of task events.
    TaskEvents,
    /// Sends a signal to a task.
    SignalTask,
    /// Runs a command inside a task.
    ExecTask,
    /// Runs a command inside a task, with its streams.
    ExecTaskStreaming,
    /// Makes a network for an allocation.
    CreateNetwork,
    /// Removes a network of an allocation.
    DestroyNetwork,
);

impl DriverRpc {
    /// Whether such a call only waits for an event, so that a stop need not wait for it (SHD-03).
    #[must_use]
    pub const fn is_watching(self) -> bool {
        match self {
            Self::Fingerprint
            | Self::WaitTask
            | Self::TaskStats
            | Self::TaskEvents
            | Self::ExecTask
            | Self::ExecTaskStreaming => true,
            Self::Init
            | Self::TaskConfigSchema
            | Self::Capabilities
            | Self::RecoverTask
            | Self::StartTask
            | Self::StopTask
            | Self::DestroyTask
            | Self::InspectTask
            | Self::SignalTask
            | Self::CreateNetwork
            | Self::DestroyNetwork => false,
        }
    }
}

impl fmt::Display for DriverRpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The call and the driver that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The driver.
    pub driver: DriverName,
    /// The call.
    pub rpc: DriverRpc,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of driver {}", self.rpc, self.driver)
    }
}

/// Why a call to a driver has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// The plugin is gone: its process has ended, or it no longer belongs to the host (D111, PRC-05). The call may have taken
    /// effect.
    #[error("{asked}: the plugin is gone: {reason}; {}", gone_hint(*is_worth_retrying))]
    PluginGone {
        /// The call and its driver.
        asked: Asked,
        /// Whether a new client, dispensed after a while, can help. False if the driver was stopped or removed.
        is_worth_retrying: bool,
        /// How it ended, or why it is gone.
        reason: String,
    },
    /// No answer came in time. The call may take effect nevertheless.
    #[error(
        "{asked}: no answer within {after:?}; the call may have taken effect, inspect the task before trying again"
    )]
    DeadlineExceeded {
        /// The call and its driver.
        asked: Asked,
        /// The deadline.
        after: Duration,
    },
    /// The connection broke off while the process still runs.
    #[error("{asked}: disconnected: {detail}; dispense the driver again")]
    Disconnected {
        /// The call and its driver.
        asked: Asked,
        /// The error of the transport.
        detail: String,
    },
    /// The driver refused the call.
    #[error("{asked}: the driver answered {code} \"{message}\"{}", recoverable_hint(*recoverable))]
    Refused {
        /// The call and its driver.
        asked: Asked,
        /// The status code of gRPC.
        code: Code,
        /// The driver's message, truncated and escaped.
        message: String,
        /// Whether the driver reports that a retry can help (D110); `None` if it does not report this.
        recoverable: Option<bool>,
    },
    /// The answer breaks the protocol.
    #[error("{asked}: faulty answer: {fault}; report it to the driver's vendor")]
    Malformed {
        /// The call and its driver.
        asked: Asked,
        /// The fault in the answer.
        fault: String,
    },
}

const fn gone_hint(is_worth_retrying: bool) -> &'static str {
    if is_worth_retrying { "dispense the driver again" } else { "it will not be restarted" }
}

const fn recoverable_hint(recoverable: Option<bool>) -> &'static str {
    match recoverable {
        Some(true) => "; it says that trying again can help",
        Some(false) => "; it says that trying again does not help",
        None => "",
    }
}

impl DriverError {
    /// The call and its driver.
    #[must_use]
    pub const fn asked(&self) -> &Asked {
        match self {
            Self::PluginGone { asked, .. }
            | Self::DeadlineExceeded { asked, .. }
            | Self::Disconnected { asked, .. }
            | Self::Refused { asked, .. }
            | Self::Malformed { asked, .. } => asked,
        }
    }

    /// Whether the same call may succeed after a while. The driver's own report takes precedence over our classification (D110).
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::PluginGone { is_worth_retrying, .. } => *is_worth_retrying,
            Self::DeadlineExceeded { .. } | Self::Disconnected { .. } => true,
            Self::Refused { recoverable: Some(recoverable), .. } => *recoverable,
            Self::Refused { recoverable: None, code, .. } => is_transient(*code),
            Self::Malformed { .. } => false,
        }
    }
}

/// Whether a call with this status code may succeed after a while. Drivers answer `Unknown` for all errors of their own, and
/// report in a detail when a retry can help; without that detail it does not.
const fn is_transient(code: Code) -> bool {
    match code {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable => true,
        Code::Ok
        | Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss
        | Code::Unauthenticated => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked { driver: DriverName::new("exec").unwrap(), rpc: DriverRpc::StartTask }
    }

    fn refused(code: Code, recoverable: Option<bool>) -> DriverError {
        DriverError::Refused { asked: asked(), code, message: "no room".to_owned(), recoverable }
    }

    #[test]
    fn an_error_says_what_was_asked_of_whom_and_what_may_help() {
        let gone = |is_worth_retrying| DriverError::PluginGone {
            asked: asked(),
            is_worth_retrying,
            reason: "it exited with 1".to_owned(),
        };
        let begin = "StartTask of driver exec: ";
        for (error, said) in [
            (gone(true), "the plugin is gone: it exited with 1; dispense the driver again"),
            (gone(false), "the plugin is gone: it exited with 1; it will not be restarted"),
            (refused(Code::Internal, None), "the driver answered INTERNAL \"no room\""),
            (
                refused(Code::Unknown, Some(true)),
                "the driver answered UNKNOWN \"no room\"; it says that trying again can help",
            ),
            (
                refused(Code::Unknown, Some(false)),
                "the driver answered UNKNOWN \"no room\"; it says that trying again does not help",
            ),
        ] {
            assert_eq!(error.to_string(), format!("{begin}{said}"));
            assert_eq!(error.asked(), &asked());
        }
    }

    #[test]
    fn the_word_of_the_driver_counts_before_the_code_of_its_answer_d110() {
        for (code, is_transient) in [(Code::Unavailable, true), (Code::InvalidArgument, false)] {
            assert_eq!(refused(code, None).is_transient(), is_transient);
            assert!(refused(code, Some(true)).is_transient());
            assert!(!refused(code, Some(false)).is_transient());
        }
    }
}
