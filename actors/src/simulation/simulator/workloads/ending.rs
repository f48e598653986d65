//! What the supervised allocations come to when nothing goes wrong any more.

use std::collections::BTreeMap;

use super::super::super::law::Law;
use super::*;
use crate::registry::{Entry, Standing};
use crate::shell::Machine;

impl Company {
    /// A second in which all is well among the supervised allocations, and their host says what must be said.
    pub(in super::super) fn calm_workloads(&mut self) {
        for place in 0..self.workloads.count() {
            let who = Workloads::number(place);
            let at = place as usize;
            if self.workloads.all[at].is_content() {
                continue;
            }
            self.workload_does(who, WorkloadDoing::Raise);
            if let Some(order) = self.workloads.next_order(who) {
                self.workload_does(who, WorkloadDoing::Order(order));
            }
            if self.workloads.all[at].next_due().is_some_and(|due| due <= self.now) {
                self.workload_does(who, WorkloadDoing::Due);
            }
            while self.workloads.open_calls(who) > 0 {
                self.workload_does(who, WorkloadDoing::Meet(0, Reply::Good));
            }
            while !self.workloads.all[at].arrivals.is_empty() {
                self.workload_does(who, WorkloadDoing::Deliver);
            }
            self.hear();
        }
    }

    /// All is calm: the registry knows of a supervised allocation what its supervisor and its task say.
    pub(in super::super) fn check_workloads(&mut self) {
        let Some(view) = self.registry.machine().map(Machine::view) else { return };
        let mut known: BTreeMap<&AllocationId, Vec<&Entry>> = BTreeMap::new();
        for entry in &view.entries {
            known.entry(&entry.registration.allocation).or_default().push(entry);
        }
        let mut found = None;
        for workload in &self.workloads.all {
            let entries = known.remove(&workload.config.spec.allocation).unwrap_or_default();
            if let Some((law, what)) = workload.contradicts(&entries) {
                found.get_or_insert((law, format!("{}: {what}", workload.config.spec.allocation)));
            }
        }
        if let Some((law, what)) = found {
            self.cry(law, what);
        }
    }
}

impl Workload {
    /// Whether nothing more is to be expected: from here on one round is like the other.
    fn is_content(&self) -> bool {
        match &self.seat {
            Seat::Vacant => !self.runs,
            Seat::Pausing => false,
            Seat::Taken(_) => {
                let is_at_rest = match self.owner.task {
                    Task::Running => {
                        self.runs
                            && self.phase == AllocationPhase::Registered
                            && self.owner.health == Health::Healthy
                    }
                    Task::NotStarted | Task::Exited | Task::Leaving => self.next_due().is_none(),
                };
                let is_silent =
                    self.calls.is_empty() && self.arrivals.is_empty() && self.deadlines.is_empty();
                is_at_rest && is_silent && self.owner.unanswered.is_empty() && self.next_order().is_none()
            }
        }
    }

    /// In what the registry is not what the supervisor and the task say.
    fn contradicts(&self, entries: &[&Entry]) -> Option<(Law, String)> {
        if !self.owner.unanswered.is_empty() {
            return Some((Law::Shell7, format!("{:?} was never answered", self.owner.unanswered)));
        }
        if self.has_left && self.around.has_directory && !self.is_untidy {
            return Some((Law::A4, "it has left, and its files are there".to_owned()));
        }
        match (&self.seat, self.owner.task) {
            (Seat::Taken(_), Task::Running) if !self.is_known_as_it_is(entries) => {
                let (phase, health) = (self.phase.as_str(), &self.owner.health);
                Some((Law::A3, format!("it runs, is {phase} and {health}, and is registered as {entries:?}")))
            }
            (Seat::Taken(_), Task::Leaving) => Some((Law::S4, "told to leave, it goes on".to_owned())),
            (Seat::Pausing, _) => Some((Law::Shell4, "no supervisor lives".to_owned())),
            (Seat::Vacant, _) | (Seat::Taken(_), Task::NotStarted | Task::Exited) if !entries.is_empty() => {
                Some((Law::A4, format!("it does not run, and is registered as {entries:?}")))
            }
            (Seat::Vacant | Seat::Taken(_), _) => None,
        }
    }

    fn is_known_as_it_is(&self, entries: &[&Entry]) -> bool {
        let is_so = |entry: &&Entry| {
            let is_present = self.runs_as(entry.registration.version.as_deref());
            is_present && entry.standing == Standing::Confirmed
        };
        // Who comes after one that told another name is not taken for the same plugin, and stays registered.
        let is_refused = self.owner.health.reason().is_some_and(|reason| reason.contains("C031"));
        let is_well = self.owner.health == Health::Healthy || is_refused;
        let is_shown = self.phase == AllocationPhase::Registered && is_well && self.runs;
        is_shown && entries.len() == self.config.spec.plugins().len() && entries.iter().all(is_so)
    }
}
