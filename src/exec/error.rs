//! Errors that end the driver.

use crate::plugin::ServeError;

/// Why the driver ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It cannot serve, or stopped serving.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Its name is that of a driver built into Nomad, and this was not permitted.
    #[error(
        "a driver named {name:?} takes the tasks of the driver that is built into Nomad, and runs them without its isolation; choose another --name, or say --allow-builtin-name if that is meant"
    )]
    BuiltinName {
        /// The name.
        name: String,
    },
    /// It ended before its handshake line, as demanded.
    #[error("the driver ends before its line with exit code {code}, as --exit-before-line demands")]
    EarlyEnd {
        /// The demanded exit code.
        code: u8,
    },
    /// The system refused a call that a fault needs.
    #[error("cannot misbehave as demanded: {0}")]
    Fault(#[source] std::io::Error),
}

impl ExecError {
    /// The exit code for this error.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::EarlyEnd { code } => *code,
            Self::Serve(_) | Self::BuiltinName { .. } | Self::Fault(_) => 1,
        }
    }

    /// Whether a retry may succeed without any change.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Serve(error) => error.is_transient(),
            Self::EarlyEnd { .. } => true,
            Self::BuiltinName { .. } | Self::Fault(_) => false,
        }
    }
}
