//! Reports to the registry which registrations are fit, and which need a new generation.

use std::time::Duration;

use super::state::{Entry, Instances, InstancesCall, InstancesTimer, Place};
use crate::kernel::StepContext;
use crate::registry::{Renew, ReportFitness};
use crate::supervisor::{ChildState, DynamicChild};
use crate::vocabulary::{Fitness, Generation};

/// The pause before a report that the registry did not take is sent again; with jitter, since many may be sent at once.
const RESEND_PAUSE: Duration = Duration::from_millis(500);
const RESEND_JITTER_PERCENT: u32 = 50;

impl Instances {
    /// Reports the fitness of a registration, if the registry received another fitness or none.
    pub(super) fn report_fitness(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        let fitness = &entry.report.fitness;
        let is_retiring =
            matches!(entry.child.state(), ChildState::Stopping(_)) || !self.wanted.contains_key(place);
        if self.is_stopping || is_retiring || entry.told.as_ref() == Some(fitness) {
            return;
        }
        entry.told = Some(fitness.clone());
        entry.was_told_fit |= *fitness == Fitness::Fit;
        let report = ReportFitness {
            plugin: place.0.clone(),
            allocation: place.1.clone(),
            generation: entry.report.generation,
            fitness: fitness.clone(),
        };
        self.call(InstancesCall::Report(report), cx);
    }

    /// Asks for a new generation; the next instance starts with it.
    pub(super) fn renew(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let (Some(wanted), Some(entry)) = (self.wanted.get(place), self.entries.get_mut(place)) else {
            return;
        };
        entry.child.wait_for(wanted.generation);
        let renew =
            Renew { plugin: place.0.clone(), allocation: place.1.clone(), generation: wanted.generation };
        self.call(InstancesCall::Renew(renew), cx);
    }

    /// Each confirmed registration begins with a new generation: its present one may have had a connection.
    pub(super) fn take_over_generations(&mut self) {
        for (place, wanted) in &self.wanted {
            let entry = Entry::new(wanted, wanted.since);
            let child = DynamicChild::new(ChildState::Waiting(Generation::default()));
            self.entries.insert(place.clone(), Entry { child, ..entry });
        }
    }

    /// The registry did not take a message, or it is not known whether it did.
    pub(super) fn not_told(&mut self, place: Place, cx: &mut StepContext<Self>) {
        if let Some(entry) = self.entries.get_mut(&place) {
            entry.told = None;
            let pause = cx.moment().spread(RESEND_PAUSE, RESEND_JITTER_PERCENT);
            cx.start_timer(InstancesTimer::Resend(place), cx.now() + pause);
        }
    }

    pub(super) fn resend(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        if self.is_stopping {
            return;
        }
        match self.entries.get(place).map(|entry| entry.child.state()) {
            Some(ChildState::Waiting(_)) => self.renew(place, cx),
            Some(ChildState::Running(_)) => self.report_fitness(place, cx),
            // Its successor reports.
            Some(ChildState::Stopping(_) | ChildState::Pausing | ChildState::GivenUp) | None => {}
        }
    }
}
