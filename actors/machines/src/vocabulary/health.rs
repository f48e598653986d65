//! The health of an instance.

use std::fmt;

/// The known health of an instance. Unknown is a value of its own and is never treated as healthy or unhealthy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Health {
    /// No complete answer has arrived yet.
    Starting,
    /// Every capability has been read over the connection that work would use, and the last probe reported ready.
    Healthy,
    /// It does not serve.
    Unhealthy {
        /// The attempted operation and its result.
        reason: String,
    },
    /// It has left.
    Gone,
}

impl Health {
    /// The health as a word, without the reason.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy { .. } => "unhealthy",
            Self::Gone => "gone",
        }
    }

    /// Why it is unhealthy, if it is.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unhealthy { reason } => Some(reason),
            Self::Starting | Self::Healthy | Self::Gone => None,
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "unhealthy: {reason}"),
            None => f.write_str(self.as_str()),
        }
    }
}
