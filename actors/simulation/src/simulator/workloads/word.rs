//! The answers, notifications and endings of supervisors in flight to their owner.
//!
//! Answers and notifications of one supervisor arrive in their order, the endings of all together, and these three may overtake each other.

use callboard_actors::allocation::AllocationAnswer;
use callboard_actors::allocations::{AllocationReported, AllocationsAsk, OrderAnswer, SupervisorEnded};
use callboard_actors::shell::{AskError, Ending, Machine};

use super::super::super::law::Law;
use super::owner::NO_ASKER;
use super::*;

/// The kind of an order to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Order,
    Look,
}

impl Kind {
    /// The outcome for its owner when the supervisor cannot answer.
    pub(super) const fn failed(self, error: AskError) -> AllocationsOutcome {
        match self {
            Self::Order => AllocationsOutcome::Told(Err(error)),
            Self::Look => AllocationsOutcome::Seen(Err(error)),
        }
    }

    /// The outcome for its owner when the supervisor no longer lives.
    pub(super) fn is_over(self) -> AllocationsOutcome {
        self.failed(AskError::NotRunning { actor: Allocation::KIND.to_owned() })
    }
}

impl Workloads {
    /// A supervisor has ended: callers that wait for it are answered, and its owner will be notified.
    pub(super) fn is_missed(&mut self, place: usize, held: Held, ending: Ending) {
        let workload = &mut self.all[place];
        for (call, kind) in held.told {
            workload.answers.push_back((call, kind.is_over()));
        }
        let allocation = workload.spec.allocation.clone();
        self.owner_model.endings.push(SupervisorEnded { allocation, life: held.life, ending });
        self.owner_model.is_stirred = true;
        self.mark_changed(place);
    }

    /// Something has changed in this allocation.
    pub(super) fn mark_changed(&mut self, place: usize) {
        self.all[place].is_content = false;
        self.changed.push(place);
    }
}

impl HostModel {
    pub(super) fn supervisor_answers(&mut self, place: usize, call: u64, answer: &AllocationAnswer) {
        let workload = &mut self.workloads.all[place];
        let is_awaited = workload.slot.as_mut().and_then(|held| held.told.remove(&call)).is_some();
        if !is_awaited {
            return self.violation(Law::Shell7, format!("call {call} to a supervisor was answered twice"));
        }
        let answered = match answer {
            AllocationAnswer::MakeReady(made) => OrderAnswer::Prepared(made.clone()),
            AllocationAnswer::NoteStart(())
            | AllocationAnswer::NoteExit(())
            | AllocationAnswer::NoteHealth(())
            | AllocationAnswer::NoteDisk(()) => OrderAnswer::Noted,
            AllocationAnswer::StopSupervision(report) => OrderAnswer::Stopped(report.clone()),
            AllocationAnswer::DescribeAllocation(status) => {
                return workload.answers.push_back((call, AllocationsOutcome::Seen(Ok(status.clone()))));
            }
        };
        workload.answers.push_back((call, AllocationsOutcome::Told(Ok(answered))));
    }

    pub(super) fn supervisor_fails(&mut self, place: usize, call: u64, error: AskError) {
        let workload = &mut self.workloads.all[place];
        if let Some(kind) = workload.slot.as_mut().and_then(|held| held.told.remove(&call)) {
            workload.answers.push_back((call, kind.failed(error)));
        }
    }

    pub(super) fn answer_arrives(&mut self, place: usize) {
        self.catch_up_owner();
        let moment = self.moment();
        if let Some((call, outcome)) = self.workloads.all[place].answers.pop_front() {
            self.workloads.owner_model.returned(moment, call, outcome);
        }
        self.carry_owner();
    }

    pub(super) fn news_arrive(&mut self, place: usize) {
        self.catch_up_owner();
        let moment = self.moment();
        let workload = &mut self.workloads.all[place];
        if let Some((life, news)) = workload.news.pop_front() {
            let allocation = workload.spec.allocation.clone();
            let reported = AllocationReported { allocation, life, news };
            self.workloads.owner_model.owner.ask(
                moment,
                NO_ASKER,
                AllocationsAsk::AllocationReported(reported),
            );
        }
        self.carry_owner();
    }

    pub(super) fn endings_arrive(&mut self) {
        let moment = self.moment();
        let owner_model = &mut self.workloads.owner_model;
        if owner_model.endings.is_empty() {
            return;
        }
        if let Some(call) = owner_model.await_endings.take() {
            let ended = std::mem::take(&mut owner_model.endings);
            owner_model.returned(moment, call, AllocationsOutcome::Ended(ended));
        }
    }
}
