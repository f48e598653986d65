//! Checks the final state of the supervised allocations once faults have stopped.

use std::collections::BTreeMap;

use callboard_actors::registry::{Entry, Standing};
use callboard_actors::shell::Machine;

use super::super::super::allocations::Known;
use super::super::super::law::Law;
use super::*;

impl HostModel {
    /// One second without faults among the supervised allocations, in which their host sends the required messages.
    pub(in super::super) fn calm_workloads(&mut self) {
        self.workloads_do(WorkloadsDoing::Endings);
        self.workloads_do(WorkloadsDoing::Due);
        for place in 0..self.workloads.count() {
            let who = Workloads::number(place);
            let at = place as usize;
            if self.workloads.is_content(at) {
                continue;
            }
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
            while !self.workloads.all[at].answers.is_empty() {
                self.workload_does(who, WorkloadDoing::Answer);
            }
            while !self.workloads.all[at].news.is_empty() {
                self.workload_does(who, WorkloadDoing::News);
            }
            self.dispatch();
        }
    }

    /// At rest, the registry's entries for a supervised allocation agree with its supervisor and its task.
    pub(in super::super) fn check_workloads(&mut self) {
        let Some(view) = self.registry.machine().map(Machine::view) else { return };
        let mut known: BTreeMap<&AllocationId, Vec<&Entry>> = BTreeMap::new();
        for entry in &view.entries {
            known.entry(&entry.registration.allocation).or_default().push(entry);
        }
        let mut found = None;
        for workload in &self.workloads.all {
            let entries = known.remove(workload.name()).unwrap_or_default();
            let is_said = self.workloads.owner_model.known(workload.name());
            if let Some((law, what)) = workload.contradicts(is_said, &entries) {
                found.get_or_insert((law, format!("{}: {what}", workload.name())));
            }
        }
        found = found.or_else(|| self.workloads.contradict());
        if let Some((law, what)) = found {
            self.violation(law, what);
        }
    }
}

impl Workloads {
    /// Whether this allocation is at rest: from here on all rounds are alike.
    fn is_content(&mut self, place: usize) -> bool {
        let workload = &mut self.all[place];
        workload.is_content =
            workload.is_content || workload.rests(self.owner_model.known(&workload.spec.allocation));
        workload.is_content
    }

    /// The violation in the state of their owner, if there is one.
    fn contradict(&self) -> Option<(Law, String)> {
        let owner_model = &self.owner_model;
        if let Some((asker, (place, _))) = owner_model.unanswered.first_key_value() {
            let name = self.all[*place].name();
            return Some((Law::Shell7, format!("question {asker} about {name} was never answered")));
        }
        let known = self.all.iter().filter(|workload| owner_model.known(workload.name()).is_some()).count();
        let kept = owner_model.owner.store.len();
        (kept != known).then(|| (Law::A5, format!("{kept} allocations are kept, and {known} are known")))
    }
}

impl Workload {
    fn rests(&self, known: Option<&Known>) -> bool {
        let is_at_rest = match known.map(|known| known.task) {
            None => self.slot.is_none(),
            Some(Task::Running) => {
                let is_shown = self.phase == AllocationPhase::Registered && self.health == Health::Healthy;
                self.slot.is_some() && self.runs && is_shown
            }
            Some(Task::NotStarted | Task::Exited | Task::Leaving) => {
                self.slot.is_some() && self.next_due().is_none()
            }
        };
        let is_silent = self.calls.is_empty() && self.arrivals.is_empty() && self.deadlines.is_empty();
        let is_heard = self.answers.is_empty() && self.news.is_empty();
        let is_answered = known.is_none_or(|known| known.orders.is_empty());
        is_at_rest && is_silent && is_heard && is_answered && self.next_order(known).is_none()
    }

    /// The disagreement between registry, owner, supervisor and task, if there is one.
    fn contradicts(&self, known: Option<&Known>, entries: &[&Entry]) -> Option<(Law, String)> {
        if self.has_left && self.around.has_directory && !self.is_untidy {
            return Some((Law::A4, "it has left, and its files are there".to_owned()));
        }
        let (known, held) = match (known, &self.slot) {
            (Some(known), Some(held)) => (known, held),
            (Some(_), None) => return Some((Law::A5, "it is known, and has no supervisor".to_owned())),
            (None, Some(_)) => {
                return Some((Law::A5, "it is not known, and its supervisor lives".to_owned()));
            }
            (None, None) => return self.is_still_registered(entries),
        };
        let thought = held.supervisor.checker.task();
        match known.task {
            _ if held.life != known.life => {
                Some((Law::A5, "another life of it lives than its owner thinks".to_owned()))
            }
            Task::Leaving => Some((Law::S4, "told to leave, it goes on".to_owned())),
            task if task != thought => {
                Some((Law::A5, format!("it is {task:?}, and its supervisor takes it for {thought:?}")))
            }
            Task::Running if !self.is_known_as_it_is(entries) => {
                let (phase, health) = (self.phase.as_str(), &self.health);
                Some((Law::A3, format!("it runs, is {phase} and {health}, and is registered as {entries:?}")))
            }
            Task::Running => None,
            Task::NotStarted | Task::Exited => self.is_still_registered(entries),
        }
    }

    /// An allocation that was given up while it left could not be deregistered.
    fn is_still_registered(&self, entries: &[&Entry]) -> Option<(Law, String)> {
        let is_left = !entries.is_empty() && !self.is_abandoned;
        is_left.then(|| (Law::A4, format!("it does not run, and is registered as {entries:?}")))
    }

    fn is_known_as_it_is(&self, entries: &[&Entry]) -> bool {
        let is_so = |entry: &&Entry| {
            let is_present = self.runs_as(entry.registration.version.as_deref());
            is_present && entry.standing == Standing::Confirmed
        };
        // A successor of a plugin with another name is not accepted as the same plugin, and stays registered (C031).
        let tells_another =
            |reason: &str| reason.contains("name was \"") || reason.contains("and calls itself");
        let is_refused = self.health.reason().is_some_and(tells_another);
        let is_well = self.health == Health::Healthy || is_refused;
        let is_shown = self.phase == AllocationPhase::Registered && is_well && self.runs;
        is_shown && entries.len() == self.spec.plugins().len() && entries.iter().all(is_so)
    }
}
