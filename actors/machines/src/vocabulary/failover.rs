//! The policy for choosing the active registration of a plugin.

use std::fmt;
use std::str::FromStr;

use super::names::{AllocationId, MalformedName};

/// How the active registration of a plugin is chosen (R1). Its text is `newest-healthy`, `newest` or `pinned:ALLOCATION`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum FailoverPolicy {
    /// The newest registration that has proven to be fit (R1a, R1b, R1c). While none is fit, the newest that has not failed.
    #[default]
    NewestHealthy,
    /// The newest registration, fit or not.
    Newest,
    /// This allocation while it is registered, fit or not; otherwise as [`NewestHealthy`](Self::NewestHealthy).
    Pinned(AllocationId),
}

/// Why a text is not a [`FailoverPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedPolicy {
    /// It is not a known policy.
    #[error("{text:?} is no policy; write `newest-healthy`, `newest` or `pinned:ALLOCATION`")]
    Unknown {
        /// The text.
        text: String,
    },
    /// The name of the pinned allocation is malformed.
    #[error(transparent)]
    Name(#[from] MalformedName),
}

impl fmt::Display for FailoverPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewestHealthy => f.write_str("newest-healthy"),
            Self::Newest => f.write_str("newest"),
            Self::Pinned(allocation) => write!(f, "pinned:{allocation}"),
        }
    }
}

impl FromStr for FailoverPolicy {
    type Err = MalformedPolicy;

    fn from_str(text: &str) -> Result<Self, MalformedPolicy> {
        match (text, text.strip_prefix("pinned:")) {
            ("newest-healthy", _) => Ok(Self::NewestHealthy),
            ("newest", _) => Ok(Self::Newest),
            (_, Some(allocation)) => Ok(Self::Pinned(AllocationId::new(allocation)?)),
            (_, None) => Err(MalformedPolicy::Unknown { text: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_back_from_its_text_and_other_texts_are_refused_r9() {
        for text in ["newest-healthy", "newest", "pinned:newest"] {
            assert_eq!(text.parse::<FailoverPolicy>().unwrap().to_string(), text);
        }
        for text in ["", "oldest", "pinned", "pinned:", "pinned:../a"] {
            let error = text.parse::<FailoverPolicy>().unwrap_err().to_string();
            assert!(error.contains("write `newest-healthy`") || error.contains("allocation id"), "{error}");
        }
    }
}
