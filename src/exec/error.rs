//! Why the driver ended otherwise than it was told to.

use crate::plugin::ServeError;

/// Why the driver ended otherwise than it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It does not serve, or no longer.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Its name is that of a driver built into Nomad, and nobody said that this is meant.
    #[error(
        "a driver named {name:?} takes the tasks of the driver that is built into Nomad, and runs them without its isolation; choose another --name, or say --allow-builtin-name if that is meant"
    )]
    BuiltinName {
        /// The name.
        name: String,
    },
    /// It ended before it said where it is, as it was told to.
    #[error("the driver ends before its line with exit code {code}, as --exit-before-line demands")]
    EarlyEnd {
        /// The exit code it was told to end with.
        code: u8,
    },
    /// The system refused what a fault needs.
    #[error("cannot misbehave as demanded: {0}")]
    Fault(#[source] std::io::Error),
}

impl ExecError {
    /// The exit code of a process that ends for this reason.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::EarlyEnd { code } => *code,
            Self::Serve(_) | Self::BuiltinName { .. } | Self::Fault(_) => 1,
        }
    }

    /// Whether a new start may succeed with nobody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Serve(error) => error.is_transient(),
            Self::EarlyEnd { .. } => true,
            Self::BuiltinName { .. } | Self::Fault(_) => false,
        }
    }
}
