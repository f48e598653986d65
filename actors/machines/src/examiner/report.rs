//! The report of an exam.

use std::collections::BTreeMap;

use super::rule::Rule;

/// A call that broke a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The number of the call in the exam; 0: the end of the exam.
    pub number: u64,
    /// When it came, in milliseconds since the beginning of the exam.
    pub at_millis: u64,
    /// Its name.
    pub call: &'static str,
    /// What was wrong.
    pub problem: String,
}

/// What was found about one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleReport {
    /// The rule.
    pub rule: Rule,
    /// How often a call could have broken it.
    pub tried: u64,
    /// How often one did.
    pub broken: u64,
    /// The first calls that did.
    pub breaches: Vec<Breach>,
}

/// Something that was done and not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The volume, snapshot or group; of a volume that may have been created, its name.
    pub of: String,
    /// What it is, and its state.
    pub what: String,
    /// The call that did it; 0: it is not of a single call.
    pub number: u64,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How often the plugin was started.
    pub starts: u64,
    /// How often each call came, by name.
    pub calls: BTreeMap<&'static str, u64>,
    /// All rules, in the order of their ids.
    pub rules: Vec<RuleReport>,
    /// What is still up, or may be.
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
