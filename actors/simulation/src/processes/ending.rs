//! Checks the final state of the owner of the processes and of its processes once faults have stopped.

use callboard_actors::process::{Lifetime, ProcessPhase};
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::Timestamp;

use super::super::law::Law;
use super::model::{ProcessesModel, options};

impl ProcessesModel {
    /// At rest, the host has ended in order, or every running process is owned and has its record.
    pub(in super::super) fn check_end(&mut self, now: Timestamp) {
        let found = match self.stopped {
            Some((mode, since)) => self.check_stopped(now, mode, since),
            None => self.check_calm(),
        };
        if let Err((law, what)) = found {
            self.verdict.violation(law, || what);
        }
    }

    /// At rest on a sick disk, only launches wait for the disk, and every process that was to end has ended.
    pub(super) fn check_sick(&mut self) {
        let unanswered = self.unanswered().find(|asker| !self.launching.contains(asker));
        let left = self.environment.running().count();
        let what = match self.stopped {
            None if self.owner.machine().is_none() => {
                "the owner of the processes waits for it to be built again".to_owned()
            }
            Some(_) if !self.owner.has_ended() => {
                "told to stop, the owner of the processes goes on".to_owned()
            }
            Some((StopMode::Stop, _)) if left > 0 => {
                format!("the host has stopped, and {left} processes run")
            }
            Some(_) => return,
            None => match unanswered {
                Some(asker) => format!("question {asker} has no answer"),
                None => return,
            },
        };
        self.verdict.violation(Law::Shell1a, || format!("the disk is sick: {what}"));
    }

    fn check_stopped(&self, now: Timestamp, mode: StopMode, since: Timestamp) -> Result<(), (Law, String)> {
        if !self.owner.has_ended() {
            return Err((Law::S3, "told to stop, the owner of the processes goes on".to_owned()));
        }
        // A process that does not end in time is left to the next run of the host, by its record.
        let is_late = now.since(since) >= options().stop_margin;
        let is_in_order = |(tag, lifetime)| {
            let is_left = mode == StopMode::Detach && lifetime == Lifetime::Surviving;
            (is_late || is_left) && self.owner.store.holds(tag)
        };
        if self.environment.lifetimes().all(is_in_order) {
            return Ok(());
        }
        Err((Law::S4, "it has ended, and a process runs that should not, or that no record finds".to_owned()))
    }

    fn check_calm(&self) -> Result<(), (Law, String)> {
        if let Some(asker) = self.unanswered().next() {
            return Err((Law::Shell7, format!("question {asker} was never answered")));
        }
        let Some(machine) = self.owner.machine() else {
            return Err((Law::Shell4, "the owner of the processes does not live".to_owned()));
        };
        let reports = machine.view().reports;
        let owns =
            |tag| reports.iter().any(|report| report.tag == tag && report.phase == ProcessPhase::Ready);
        if !self.environment.running().all(owns) {
            return Err((Law::Prc9, format!("a process runs that has no owner; known are {reports:?}")));
        }
        if let Some(report) = reports.iter().find(|report| !self.environment.runs(report.tag)) {
            let what = format!("nothing of {} runs, and it is kept: {report:?}", report.name);
            return Err((Law::Prc9, what));
        }
        let records = || self.owner.store.records();
        if !records().all(|record| reports.iter().any(|report| report.tag == record.tag)) {
            return Err((Law::Prc9, "a record is left of a process that is over".to_owned()));
        }
        if !self.environment.running().all(|tag| self.owner.store.holds(tag)) {
            return Err((Law::Prc9, "a process runs that has no record".to_owned()));
        }
        Ok(())
    }
}
