//! Rule violations in requests and answers.

use std::fmt;

/// A rule of the specification that an answer breaks, or a request. An answer is the plugin's fault, reported and never a crash
/// (C011); a request is refused before it is sent.
///
/// It contains the problem and its length, but only a short excerpt of the text itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The rule, for instance `C030`: for code and tests. The text for people omits it.
    pub rule: &'static str,
    /// The field or the part of the request or answer.
    pub field: &'static str,
    /// The problem.
    pub problem: Problem,
}

impl Fault {
    /// Whether it is a request that needs a capability which the plugin does not report.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        matches!(self.problem, Problem::Unsupported { .. })
    }
}

/// How a request or an answer breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Problem {
    /// It is empty and must not be.
    Empty,
    /// It exceeds the length limit.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Its format is wrong.
    Malformed {
        /// Its beginning, escaped.
        excerpt: String,
        /// The expected format.
        expected: &'static str,
    },
    /// It is negative.
    Negative {
        /// The value.
        value: i64,
    },
    /// It is above the limit.
    TooLarge {
        /// The value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// It needs a capability that the plugin does not report.
    Unsupported {
        /// The capability, by its name in the specification.
        capability: &'static str,
    },
    /// It contradicts another field, or the request that it answers.
    Inconsistent {
        /// The contradiction, after the name of the field: `is set without ...`.
        detail: String,
    },
    /// It differs from an earlier answer.
    Changed {
        /// The earlier value, escaped and truncated.
        before: String,
        /// The present value, escaped and truncated.
        now: String,
    },
    /// The answer could not be decoded.
    Unreadable {
        /// The error of the decoder.
        detail: String,
    },
}

impl Problem {
    /// The remedy for a request, for people.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Empty => "set it",
            Self::TooLong { .. } => "shorten it",
            Self::Malformed { .. } | Self::Unreadable { .. } => "write it in the expected format",
            Self::Negative { .. } | Self::TooLarge { .. } => "choose a number within the limits",
            Self::Unsupported { .. } => "leave it out, or use a plugin that has the capability",
            Self::Inconsistent { .. } => "change this field, or what it contradicts",
            Self::Changed { .. } => "use the former value",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { bytes, limit } => write!(f, "has {bytes} bytes, at most {limit} are allowed"),
            Self::Malformed { excerpt, expected } => write!(f, "is \"{excerpt}\", expected {expected}"),
            Self::Negative { value } => write!(f, "is {value}, below zero"),
            Self::TooLarge { value, limit } => write!(f, "is {value}, at most {limit} is allowed"),
            Self::Unsupported { capability } => {
                write!(f, "needs the capability {capability}, which the plugin does not report")
            }
            Self::Inconsistent { detail } => f.write_str(detail),
            Self::Changed { before, now } => write!(f, "was \"{before}\" and is now \"{now}\""),
            Self::Unreadable { detail } => write!(f, "cannot be read: {detail}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for Fault {}
