//! What the owner of the processes and its processes come to when nothing goes wrong any more.

use super::super::law::Law;
use super::super::witness::{Violation, cry};
use super::world::{ProcessesWorld, options};
use crate::process::{ProcessPhase, ProcessTag};
use crate::shell::{Machine, StopMode};
use crate::vocabulary::Timestamp;

impl ProcessesWorld {
    /// What everything comes to when nothing goes wrong any more.
    pub(super) fn check_end(&self) -> Result<(), Violation> {
        if !self.unanswered.is_empty() {
            return cry(Law::Shell7, format!("questions {:?} were never answered", self.unanswered));
        }
        match self.stopped {
            Some((mode, since)) => self.check_stopped(mode, since),
            None => self.check_calm(),
        }
    }

    fn check_stopped(&self, mode: StopMode, since: Timestamp) -> Result<(), Violation> {
        if !self.owner.has_ended() {
            return cry(Law::S4, "told to stop, it goes on");
        }
        // What does not end in time is left to the next run of the host, by its record.
        let is_late = self.now.since(since) >= options().stop_margin;
        let is_left = is_late || mode == StopMode::Detach && self.left.survives;
        let is_in_order = |tag| is_left && self.owner.books.holds(tag);
        if self.ground.running().all(is_in_order) {
            return Ok(());
        }
        cry(Law::S4, "it has ended, and a process runs that should not, or that no record finds")
    }

    fn check_calm(&self) -> Result<(), Violation> {
        let Some(machine) = self.owner.machine() else {
            return cry(Law::Shell4, "the owner of the processes does not live");
        };
        let reports = machine.view().reports;
        let owns =
            |tag| reports.iter().any(|report| report.tag == tag && report.phase == ProcessPhase::Ready);
        if !self.ground.running().all(owns) {
            return cry(Law::Prc9, format!("a process runs that nobody owns; known are {reports:?}"));
        }
        if let Some(report) = reports.iter().find(|report| !self.ground.runs(report.tag)) {
            return cry(Law::Prc9, format!("nothing of {} runs, and it is kept: {report:?}", report.name));
        }
        let is_kept = |tag: ProcessTag| reports.iter().any(|report| report.tag == tag);
        if self.owner.books.read().iter().all(|record| is_kept(record.tag)) {
            return Ok(());
        }
        cry(Law::Prc9, "a record is left of a process that is over")
    }
}
