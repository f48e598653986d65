//! Carries out the effects of the owner of the processes, and checks them and their results.

use callboard_actors::processes::{Processes, ProcessesCall, ProcessesOutcome};
use callboard_actors::vocabulary::Timestamp;

use super::super::super::law::Law;
use super::super::super::law_checker::NO_CALLER_WAITS;
use super::super::super::observed::Observed;
use super::super::super::stand_in::{Left, StandIn};
use super::{NO_ASKER, ProcessesModel};

impl ProcessesModel {
    pub(super) fn returned(&mut self, now: Timestamp, call: u64, outcome: ProcessesOutcome) {
        self.owner.returned(self.moment(now), call, Ok(outcome));
    }

    pub(super) fn violation(&mut self, law: Law, what: String) {
        self.verdict.violation(law, || what);
    }

    /// Carries out the effects that have left, and checks them against the laws.
    pub(super) fn carry(&mut self, now: Timestamp) {
        let mut left = Vec::new();
        loop {
            self.owner.take_left(&mut left);
            if let Some(told) = &mut self.told {
                told.extend(Observed::noted("processes", &mut self.owner));
                told.extend(
                    left.iter().map(|left| Observed::left_to("processes", left, |asker| asker != NO_ASKER)),
                );
            }
            if left.is_empty() {
                break;
            }
            for left in left.drain(..) {
                self.take_in(now, left);
            }
        }
        for tag in self.owner.store.take_retired() {
            if self.environment.runs(tag) {
                self.violation(Law::Prc9, "a record is gone, and its process runs".to_owned());
            }
        }
        self.verdict.heard_of(self.owner.checker.verdict.broken());
        self.verdict.heard_of(self.environment.verdict.broken());
    }

    fn take_in(&mut self, now: Timestamp, left: Left<Processes>) {
        let StandIn { store, checker, .. } = &mut self.owner;
        match left {
            Left::Answer(Some(asker), answer) => {
                checker.answered(&answer, store);
                self.answered(asker);
            }
            Left::Refused(asker, _) => self.answered(asker),
            Left::Answer(None, _) => self.violation(Law::Shell7, NO_CALLER_WAITS.to_owned()),
            Left::News(_, news) => checker.told(&news, store),
            Left::Call { number, call, .. } => self.called(now, number, call),
            // The shell answers the callers that still wait.
            Left::Ended(_) => self.unanswered.clear(),
            Left::Snapshot(..) => {}
        }
    }

    fn answered(&mut self, asker: u64) {
        self.launching.remove(&asker);
        if asker != NO_ASKER && self.unanswered.remove(&asker).is_none() {
            self.violation(Law::Shell7, format!("question {asker} was answered twice"));
        }
    }

    fn called(&mut self, now: Timestamp, number: u64, call: ProcessesCall) {
        match call {
            ProcessesCall::Sweep { known, .. } => {
                self.sweep = Some((number, known));
                return;
            }
            ProcessesCall::AwaitEndings => {
                self.await_endings = Some(number);
                return;
            }
            ProcessesCall::AwaitDisk { .. } => {}
            ProcessesCall::Release => self.environment.release(),
            ProcessesCall::Start { life, config } => {
                if config.spec.is_some() && !self.owner.store.holds(config.record.tag) {
                    self.violation(Law::Prc9, "a process is started whose intent is not on disk".to_owned());
                }
                self.environment.start(life, *config);
            }
            ProcessesCall::End { life, .. } => self.environment.end(life),
            ProcessesCall::Stop { life, mode } => self.environment.stop(life, mode),
        }
        self.returned(now, number, ProcessesOutcome::Done);
    }
}
