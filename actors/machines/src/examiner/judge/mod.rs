//! The judge: a state machine over observations, and the rules that it holds against each call.
//!
//! ```text
//!   steps      the steps of volumes: down, up or unknown
//!   known      what is known from answers
//!   attempts   calls that failed, until they succeed or are undone
//!   look       how often each rule was tried and broken
//!
//!   flight     one call at a time, and none before the plugin is ready      C001 C002 C039 C041
//!   gates      calls and fields only with their capability                  C033 C070 C120 ...
//!   sizes      sizes and forms of fields                                    C004 C005 C052 C058 ...
//!   contexts   ids and contexts as the plugin gave them                     C059 C060 C073 C074 ...
//!   order      up in order, down in reverse order                           C079 C121 C131 C.4 ...
//!   paths      staging paths and targets                                    C125 C135 C136
//!   retries    the calls after an error                                     C003 C013 C017 ...
//!   undone     at the end: the steps that were never undone                 C014 C130 C141 ...
//! ```
//!
//! A call is judged when it begins, by what its caller could know then. Its effect on the state is applied when it ends.

mod steps;

mod known;

mod attempts;

mod look;

mod contexts;
mod flight;
mod gates;
mod order;
mod paths;
mod retries;
mod sizes;
mod undone;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use attempts::Attempts;
use known::{Known, Readiness};
use look::Tally;
use steps::{Change, Doubt, End, kind_of};

use super::event::{Event, Outcome};
use super::report::{Report, RuleReport};
use super::request::Request;
use super::rule::Rule;
use super::surface::Surface;
use crate::csi::Call;
use crate::rpc::Code;

/// Judges the calls of an orchestrator by their requests and answers.
#[derive(Debug, Clone)]
pub struct Judge {
    surface: Surface,
    known: Known,
    flights: BTreeMap<u64, Flight>,
    attempts: Attempts,
    tally: Tally,
    /// How often each call has arrived.
    calls: BTreeMap<Call, u64>,
    starts: u64,
}

/// A call in flight.
#[derive(Debug, Clone)]
struct Flight {
    call: Call,
    request: Request,
    change: Option<Change>,
}

/// A call as the rules check it.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    at: u64,
    call: Call,
    request: &'a Request,
}

impl Judge {
    /// A judge for a plugin that claims this surface.
    #[must_use]
    pub fn new(surface: Surface) -> Self {
        let known = Known::default();
        let (attempts, tally) = (Attempts::default(), Tally::default());
        Self { surface, known, flights: BTreeMap::new(), attempts, tally, calls: BTreeMap::new(), starts: 0 }
    }

    /// Handles an observation. Returns the rules that a beginning call breaks, each with its problem.
    pub fn observe(&mut self, event: &Event) -> Vec<(Rule, String)> {
        match event {
            Event::Begins { at, number, call, request } => {
                return self.begin(*number, Asked { at: *at, call: *call, request });
            }
            Event::Starts { at } => self.start(*at),
            Event::Ends { at, number, outcome } => self.end(*at, *number, outcome),
            Event::Leaves { at, number } => self.lose(*at, *number),
        }
        Vec::new()
    }

    /// The findings so far. `is_over` means that the orchestrator has undone everything, as far as it knows: steps that are still up
    /// then break the rules about undoing.
    #[must_use]
    pub fn report(&self, is_over: bool) -> Report {
        let mut tally = self.tally.clone();
        let open = undone::open(&self.known);
        if is_over {
            undone::judge(&self.known, &mut tally);
        }
        let rules = Rule::ALL.iter().map(|rule| {
            let findings = tally.of(*rule);
            RuleReport {
                rule: *rule,
                tried: findings.tried,
                broken: findings.broken,
                breaches: findings.breaches,
            }
        });
        let calls = self.calls.iter().map(|(call, count)| (call.as_str(), *count)).collect();
        Report { starts: self.starts, calls, rules: rules.collect(), open }
    }

    /// Calls in flight to the former process, if any, are lost with it.
    fn start(&mut self, at: u64) {
        self.starts += 1;
        for number in self.flights.keys().copied().collect::<Vec<_>>() {
            self.lose(at, number);
        }
        self.known.readiness = Readiness::Unknown;
        self.attempts.capabilities_may_have_changed();
    }

    fn begin(&mut self, number: u64, asked: Asked<'_>) -> Vec<(Rule, String)> {
        let Asked { at, call, request } = asked;
        *self.calls.entry(call).or_default() += 1;
        let mut look = self.tally.look(at, number, call);
        flight::judge(&self.flights, self.known.readiness, asked, &mut look);
        gates::judge(&self.surface, asked, &mut look);
        sizes::judge(asked, &mut look);
        contexts::judge(&self.surface, &self.known, asked, &mut look);
        order::judge(&self.surface, &self.known, asked, &mut look);
        paths::judge(&self.surface, &self.known, asked, &mut look);
        retries::judge(&self.surface, &self.known, &self.attempts, asked, &mut look);
        let broken = look.into_broken();
        self.known.meet(&asked);
        self.attempts.begin(at, call, request);
        let change = self.known.steps.begin(number, call, request);
        self.flights.insert(number, Flight { call, request: request.clone(), change });
        broken
    }

    fn end(&mut self, at: u64, number: u64, outcome: &Outcome) {
        // Without a flight its caller has left: the answer reached no caller.
        let Some(flight) = self.flights.remove(&number) else { return };
        let Flight { call, request, change } = flight;
        let is_undo = matches!(kind_of(call), Some((_, true))) || call == Call::DeleteVolume;
        let code = match outcome {
            Outcome::Answered(answer) => {
                self.known.learn(number, call, &request, answer);
                if self.known.readiness == Readiness::NotReady && call == Call::Probe {
                    self.tally.look(at, number, call).tried(Rule::C039);
                }
                Code::Ok
            }
            Outcome::Failed(code) => Code::from_number(*code),
        };
        let end = End::of(code, is_undo);
        if let Some(change) = change {
            self.known.steps.end(number, &request, change, end);
        }
        self.known.note_failure(number, call, &request, code);
        retries::tried(call, code, &mut self.tally.look(at, number, call));
        self.attempts.end(at, call, request, Some(code));
    }

    /// The caller of a call has left, so it does not receive the outcome (C015).
    fn lose(&mut self, at: u64, number: u64) {
        let Some(Flight { call, request, change }) = self.flights.remove(&number) else { return };
        if let Some(change) = change {
            self.known.steps.end(number, &request, change, End::Unknown(Doubt::Left));
        }
        self.known.note_loss(number, call, &request);
        self.attempts.end(at, call, request, None);
    }
}
