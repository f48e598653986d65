//! Rule violations in answers.

use std::fmt;

/// A rule of the specification that a plugin's answer breaks. It is the plugin's fault, reported and never a crash (C011).
///
/// It contains what was wrong and its length, but of the plugin's text only a short excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule, for instance `C030`.
    pub rule: &'static str,
    /// The field or the part of the answer.
    pub field: &'static str,
    /// The problem.
    pub problem: Problem,
}

/// How an answer breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { bytes, limit } => write!(f, "has {bytes} bytes, at most {limit} are allowed"),
            Self::Malformed { excerpt, expected } => write!(f, "is \"{excerpt}\", expected {expected}"),
            Self::Negative { value } => write!(f, "is {value}, below zero"),
            Self::Changed { before, now } => write!(f, "was \"{before}\" and is now \"{now}\""),
            Self::Unreadable { detail } => write!(f, "cannot be read: {detail}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (rule {})", self.field, self.problem, self.rule)
    }
}

impl std::error::Error for Fault {}
