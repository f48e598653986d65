//! The laws of the owner of the processes that need only the owner and its disk; the [model](super::model::ProcessesModel) and
//! the [environment](super::environment::Environment) check those that need processes.

use callboard_actors::process::{ProcessPhase, ProcessRecord, ProcessReport, ProcessTag};
use callboard_actors::processes::{Processes, ProcessesAnswer, ProcessesNews, Recalled};
use callboard_actors::shell::{Effect, Input, Machine};
use callboard_actors::vocabulary::Moment;

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Left;
use super::disk::{ProcessesDisk, Stage};

/// Observes every step of the owner of the processes.
#[derive(Debug, Clone, Hash, Default)]
pub struct ProcessesLaws {
    /// The records on disk from which it is about to be built.
    expected: Option<Vec<ProcessRecord>>,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl ProcessesLaws {
    /// It is about to be built from these records.
    pub(super) fn expect(&mut self, records: Vec<ProcessRecord>) {
        self.expected = Some(records);
    }

    /// Subscribers receive a notification.
    pub(super) fn told(&mut self, news: &ProcessesNews, disk: &ProcessesDisk) {
        match news {
            ProcessesNews::Changed(report) => self.check_report(report, disk),
            // The report of an end waits for no disk.
            ProcessesNews::Ended(_) | ProcessesNews::Retired { .. } | ProcessesNews::Settled => {}
        }
    }

    fn check_report(&mut self, report: &ProcessReport, disk: &ProcessesDisk) {
        let stage = match report.phase {
            // PRC-09 checks that an intent is on disk before its first effect, and is retired in the end.
            ProcessPhase::Intended | ProcessPhase::Ended => return,
            ProcessPhase::Recalled
            | ProcessPhase::Spawned
            | ProcessPhase::Stopping
            | ProcessPhase::Clearing => Stage::Intended,
            ProcessPhase::Ready => Stage::Ready,
        };
        self.check(report.tag, stage, disk);
    }

    /// A caller is answered.
    pub(super) fn answered(&mut self, answer: &ProcessesAnswer, disk: &ProcessesDisk) {
        match answer {
            ProcessesAnswer::LaunchProcess(Ok(launched))
            | ProcessesAnswer::RecallProcess(Ok(Recalled::Proven(launched))) => {
                self.check(launched.tag, Stage::Ready, disk);
            }
            ProcessesAnswer::LaunchProcess(Err(_))
            | ProcessesAnswer::RecallProcess(_)
            | ProcessesAnswer::StopProcess(_)
            | ProcessesAnswer::AwaitEnd(_)
            | ProcessesAnswer::ListProcesses(_)
            | ProcessesAnswer::DescribeProcess(_)
            | ProcessesAnswer::ProcessReported(()) => {}
        }
    }

    fn check(&mut self, tag: ProcessTag, stage: Stage, disk: &ProcessesDisk) {
        if !disk.has_come(tag, stage) {
            self.verdict.violation(Law::Shell1, || {
                format!("of {tag} is told {stage:?}, and the disk does not hold it")
            });
        }
    }
}

impl LawChecker<Processes> for ProcessesLaws {
    fn rebuilt(&mut self, _: Moment, machine: &Processes) {
        let Some(expected) = self.expected.take() else { return };
        let reports = machine.view().reports;
        let known = reports.iter().map(|report| (&report.name, report.tag, report.pid, report.lifetime));
        let held = expected.iter().map(|record| {
            let pid = record.identity.as_ref().map(|identity| identity.pid);
            (&record.name, record.tag, pid, record.lifetime)
        });
        if !known.eq(held) {
            self.verdict
                .violation(Law::Shell2, || format!("it knows {reports:?}, and the disk holds {expected:?}"));
        }
    }

    fn stepped(&mut self, _: Moment, _: &Input<Processes>, _: &[Effect<Processes>], _: &Processes) {}

    fn panicked(&mut self, input: &Input<Processes>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }

    fn left(&mut self, left: &Left<Processes>, is_durable: bool) {
        if !is_durable {
            self.verdict.violation(Law::Shell1, || {
                format!("{left:?} left before the write in front of it was on disk")
            });
        }
    }
}
