//! The health of an instance.

use std::fmt;

/// What is known of an instance's health. Not knowing is a value of its own and never rounded to a yes or a no.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Health {
    /// No full answer has come yet.
    Starting,
    /// Every capability has been read over the connection that work would take, and the last probe said ready.
    Healthy,
    /// It does not serve.
    Unhealthy {
        /// What was tried, and what came back.
        reason: String,
    },
    /// It has left.
    Gone,
}

impl Health {
    /// The bare word for it.
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
