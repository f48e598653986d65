//! The error of a failed call: operation, endpoint, deadline and cause (LOG-05).

use std::fmt;
use std::time::Duration;

use super::cause::{Cause, Class};
use super::code::Code;

/// A failed operation on a plugin: the step, the endpoint, the deadline, and the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError<Step, Endpoint> {
    step: Step,
    endpoint: Endpoint,
    deadline: Duration,
    cause: Box<Cause>,
}

impl<Step: Copy, Endpoint> CallError<Step, Endpoint> {
    /// Creates an error.
    #[must_use]
    pub fn new(step: Step, endpoint: Endpoint, deadline: Duration, cause: Cause) -> Self {
        Self { step, endpoint, deadline, cause: Box::new(cause) }
    }

    /// The step that failed.
    #[must_use]
    pub const fn step(&self) -> Step {
        self.step
    }

    /// The endpoint of the plugin.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The deadline of the operation.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Why it failed.
    #[must_use]
    pub const fn cause(&self) -> &Cause {
        &self.cause
    }

    /// How to handle it (table C.6).
    #[must_use]
    pub const fn class(&self) -> Class {
        self.cause.class()
    }

    /// The status code, if the plugin itself returned an error.
    #[must_use]
    pub const fn code(&self) -> Option<Code> {
        match &*self.cause {
            Cause::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether a retry after a pause may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        self.class().is_transient()
    }
}

impl<Step: fmt::Display, Endpoint: fmt::Display> fmt::Display for CallError<Step, Endpoint> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} failed: ", self.step, self.endpoint)?;
        match &*self.cause {
            Cause::DeadlineExceeded => write!(
                f,
                "no answer within our own deadline of {:?}; the plugin is slow or hangs, and the call may still be carried out",
                self.deadline
            ),
            cause => cause.fmt(f),
        }
    }
}

impl<Step, Endpoint> std::error::Error for CallError<Step, Endpoint>
where
    Self: fmt::Debug + fmt::Display,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.cause {
            Cause::Fault(fault) => Some(fault),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::super::{Fault, Problem};
    use super::*;

    #[test]
    fn a_faulty_answer_is_the_source_of_its_error_log_05() {
        let failed = |cause| CallError::new("GetPluginInfo", "/run/p.sock", Duration::from_secs(5), cause);
        let fault = Fault { rule: "C030", field: "name", problem: Problem::Empty };
        let error = failed(Cause::Fault(fault.clone()));
        assert_eq!(error.source().map(ToString::to_string), Some(fault.to_string()));
        assert!(failed(Cause::Refused).source().is_none());
    }
}
