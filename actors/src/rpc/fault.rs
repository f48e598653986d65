//! What can be wrong with an answer.

use std::fmt;

/// A rule of the specification that a plugin's answer breaks. It is the plugin's fault, reported and never a crash (C011).
///
/// It tells what was wrong and how long it was; it never carries what the plugin sent beyond a short excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule, for instance `C030`.
    pub rule: &'static str,
    /// The field or the part of the answer that breaks it.
    pub field: &'static str,
    /// In which way.
    pub problem: Problem,
}

/// The way in which an answer breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It is empty and must not be.
    Empty,
    /// It is longer than allowed.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most that is allowed, in bytes.
        limit: usize,
    },
    /// It is not written as the rule demands.
    Malformed {
        /// Its beginning, escaped.
        excerpt: String,
        /// How it should be.
        expected: &'static str,
    },
    /// It is below zero.
    Negative {
        /// The value.
        value: i64,
    },
    /// It differs from what the plugin said before.
    Changed {
        /// What it said before, escaped and cut.
        before: String,
        /// What it says now, escaped and cut.
        now: String,
    },
    /// The answer could not be read as an answer at all.
    Unreadable {
        /// What the decoder said.
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
