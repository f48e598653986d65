//! The report of an exam.

use std::collections::BTreeMap;

use super::rule::Rule;

/// A call that broke a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The number of the call in the exam; 0: the end of the exam.
    pub number: u64,
    /// When it arrived, in milliseconds since the beginning of the exam.
    pub at_millis: u64,
    /// Its name.
    pub call: &'static str,
    /// The problem.
    pub problem: String,
}

/// The findings about one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReport {
    /// The rule.
    pub rule: Rule,
    /// How often a call could have broken it.
    pub tried: u64,
    /// How often a call broke it.
    pub broken: u64,
    /// The first calls that broke it.
    pub breaches: Vec<Breach>,
}

/// A step or object that was not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The volume, snapshot or group; of a volume that may have been created, its name.
    pub of: String,
    /// The step or object, and its state.
    pub what: String,
    /// The call that did it; 0: it does not belong to a single call.
    pub number: u64,
}

/// All findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How often the plugin was started.
    pub starts: u64,
    /// How often each call arrived, by name.
    pub calls: BTreeMap<&'static str, u64>,
    /// All rules, in the order of their ids.
    pub rules: Vec<RuleReport>,
    /// Everything that is still up, or may be.
    pub open: Vec<Open>,
}

impl Report {
    /// The rules that were broken.
    pub fn broken(&self) -> impl Iterator<Item = &RuleReport> {
        self.rules.iter().filter(|rule| rule.broken > 0)
    }

    /// Whether no rule was broken.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.broken().next().is_none()
    }
}
