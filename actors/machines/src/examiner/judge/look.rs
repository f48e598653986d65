//! The findings of the rules: how often each was tried and broken, and by which calls.

use std::collections::BTreeMap;

use crate::csi::Call;
use crate::examiner::report::Breach;
use crate::examiner::rule::Rule;

/// The most breaches of one rule that are kept; further ones are counted.
pub(super) const BREACHES_MAX: usize = 20;

/// The findings of one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) tried: u64,
    pub(super) broken: u64,
    pub(super) breaches: Vec<Breach>,
}

/// The findings of all rules that were tried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<Rule, Findings>);

impl Tally {
    pub(super) fn of(&self, rule: Rule) -> Findings {
        self.0.get(&rule).cloned().unwrap_or_default()
    }

    /// Begins to check the rules for one call.
    pub(super) const fn look(&mut self, at: u64, number: u64, call: Call) -> Look<'_> {
        Look { tally: self, at, number, call, broken: Vec::new() }
    }
}

/// One call, as the rules check it.
pub(super) struct Look<'a> {
    tally: &'a mut Tally,
    at: u64,
    number: u64,
    call: Call,
    broken: Vec<(Rule, String)>,
}

impl Look<'_> {
    /// The call gives an opportunity to break a rule; `problem` describes the breach.
    pub(super) fn check(&mut self, rule: Rule, holds: bool, problem: impl FnOnce() -> String) {
        self.tried(rule);
        if !holds {
            self.broken(rule, problem());
        }
    }

    /// The rules that the call broke, each with its problem.
    pub(super) fn into_broken(self) -> Vec<(Rule, String)> {
        self.broken
    }

    /// A call, or a later one, has an opportunity to break a rule.
    pub(super) fn tried(&mut self, rule: Rule) {
        self.tally.0.entry(rule).or_default().tried += 1;
    }

    /// The call breaks a rule that was tried before.
    pub(super) fn broken(&mut self, rule: Rule, problem: String) {
        let findings = self.tally.0.entry(rule).or_default();
        findings.broken += 1;
        self.broken.push((rule, problem.clone()));
        if findings.breaches.len() < BREACHES_MAX {
            let breach =
                Breach { number: self.number, at_millis: self.at, call: self.call.as_str(), problem };
            findings.breaches.push(breach);
        }
    }
}
