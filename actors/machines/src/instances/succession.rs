//! Handles the succession of instances: start, retirement, restart, and shutdown.

use super::behaviour::HAND_OVER_DEADLINE;
use super::entry::{Continuation, contradicted};
use super::messages::{DispenseError, InstanceReport, InstancesAnswer};
use super::state::{ChildEnded, Entry, Instances, InstancesCall, InstancesTimer, Place};
use crate::instance::{Half, InstanceConfig};
use crate::kernel::{CallKey, CallLost, Ending, StepContext};
use crate::lease::RetireCause;
use crate::registry::Entry as Registered;
use crate::supervisor::{ChildState, Ended};
use crate::vocabulary::{Attempt, Fitness, Health, Moment, PluginKey};

impl Instances {
    /// Reconciles all instances of a plugin with its registrations, and shows the result.
    pub(super) fn reconcile_plugin(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        let places: Vec<Place> = self.places_of(plugin);
        for place in &places {
            self.reconcile(place, cx);
        }
        self.show(plugin, cx);
        for place in &places {
            self.report_fitness(place, cx);
        }
        self.move_checks(plugin, cx);
    }

    /// Reconciles an instance with its registration: takes the next step.
    fn reconcile(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let wanted = self.wanted.get(place).map(|wanted| wanted.generation);
        let goes_on = self.goes_on(place);
        if goes_on != Continuation::AsStandby
            && let Some(entry) = self.entries.get_mut(place)
        {
            match entry.child.state() {
                ChildState::Stopping(_) => entry.keep_health(goes_on, entry.report.since),
                _ => entry.kept = None,
            }
        }
        let Some(entry) = self.entries.get(place) else { return self.start(place, cx) };
        let used = entry.report.generation;
        match (entry.child.state(), wanted) {
            (ChildState::Running(_), Some(wanted)) if used == wanted && !entry.needs_successor => {}
            // The registry reports next where it routes instead.
            (ChildState::Running(_), None) if self.is_active(entry) => {}
            (ChildState::Running(_), Some(_) | None) => self.retire(place, cx),
            // Its end decides the next step, by the registration at that time.
            (ChildState::Stopping(_), Some(_) | None) => self.show_standby(place, cx),
            (ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp, None) => {
                self.succeed(place, cx);
            }
            (ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp, Some(wanted))
                if wanted > used =>
            {
                self.start(place, cx);
            }
            // It was given up, and has become the active one.
            (ChildState::GivenUp, Some(_)) if entry.needs_successor => self.revive(place, cx),
            (ChildState::Waiting(after), Some(wanted)) if after != wanted => self.renew(place, cx),
            // A timer restarts it, it was given up, or the registry has not answered yet.
            (ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp, Some(_)) => {}
        }
    }

    /// Starts the instance of a registration. Its restarts keep being counted as long as the registration has the same contents.
    fn start(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let Some(wanted) = self.wanted.get(place) else { return };
        cx.cancel_timer(InstancesTimer::Restart(place.clone()));
        let is_active = self.is_active_place(place);
        let first = Entry::new(wanted, cx.now());
        let entry = match self.entries.remove(place) {
            Some(former) => first.after(former, is_active),
            None => first,
        };
        self.entries.insert(place.clone(), entry);
        self.start_child(place, cx);
        self.show_standby(place, cx);
    }

    fn start_child(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let (plugin, allocation) = place;
        let (Some(entry), Some(half)) = (self.entries.get_mut(place), Half::of(plugin.plugin_type)) else {
            return;
        };
        self.life = self.life.next();
        entry.child.start(self.life);
        let config = InstanceConfig {
            plugin: plugin.clone(),
            half,
            allocation: allocation.clone(),
            socket: entry.registration.socket.clone(),
            generation: entry.report.generation,
            expected_provider: entry.registration.provider.clone(),
            predecessor: self.known.get(plugin).cloned(),
            former: entry.report.is_continued().then(|| Box::new(entry.report.clone())),
            limits: self.options.limits_of(allocation),
        };
        self.call(InstancesCall::Start { life: self.life, config: Box::new(config) }, cx);
        self.move_checks(plugin, cx);
    }

    // === Reports ===

    /// Handles a report of an instance. Those of a retiring instance or an earlier life are ignored (REG-08).
    pub(super) fn reported(&mut self, life: Attempt, report: &InstanceReport, cx: &mut StepContext<Self>) {
        let place = (report.plugin.clone(), report.allocation.clone());
        let served = self.known.get(&place.0).filter(|_| !self.is_active_place(&place));
        let report = served.and_then(|served| contradicted(report, served)).unwrap_or_else(|| report.clone());
        let Some(entry) = self.entries.get_mut(&place) else { return };
        if entry.child.state() != ChildState::Running(life) {
            return;
        }
        if entry.accept(report) {
            self.changed(&place, cx);
        }
        self.report_fitness(&place, cx);
    }

    /// Publishes the new report of an instance.
    fn changed(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        self.check_gates(&place.1, cx);
        self.show_standby(place, cx);
        self.show(&place.0, cx);
    }

    // === The end of one instance ===

    /// Whether this registration continues as before, with the same contents.
    pub(super) fn goes_on(&self, place: &Place) -> Continuation {
        let is_same = |(wanted, entry): (&Registered, &Entry)| {
            wanted.number == entry.number && wanted.registration == entry.registration
        };
        match self.wanted.get(place).zip(self.entries.get(place)).is_some_and(is_same) {
            true if self.is_stopping => Continuation::No,
            true if self.is_active_place(place) => Continuation::AsActive,
            true => Continuation::AsStandby,
            false => Continuation::No,
        }
    }

    /// Asks an instance to retire. From here on it is not dispensed, and is shown as gone unless its registration continues.
    fn retire(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let goes_on = self.goes_on(place);
        let cause = self.retire_cause(&place.0);
        let Some(entry) = self.entries.get_mut(place) else { return };
        entry.keep_health(goes_on, cx.now());
        let due = cx.now() + self.options.retire_bound();
        let Some(life) = entry.child.stop(InstancesTimer::Retire(place.clone()), due, cx) else {
            return;
        };
        cx.call(CallKey::default(), HAND_OVER_DEADLINE, InstancesCall::Retire { life, cause });
        if entry.set_gone(cx.moment()) {
            self.changed(place, cx);
        }
    }

    /// The cause of a retirement, as known at this moment.
    fn retire_cause(&self, plugin: &PluginKey) -> RetireCause {
        match self.active.contains_key(plugin) {
            _ if self.is_stopping => RetireCause::HostStops,
            true => RetireCause::Superseded,
            false => RetireCause::NotServed,
        }
    }

    pub(super) fn retired_too_slowly(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(place) else { return };
        let again = cx.now() + self.options.retire_bound();
        if let Some(life) = entry.child.overdue(InstancesTimer::Retire(place.clone()), again, cx) {
            self.call(InstancesCall::Kill { life }, cx);
        }
    }

    pub(super) fn ended(&mut self, ended: &ChildEnded, cx: &mut StepContext<Self>) {
        let ChildEnded { plugin, allocation, life, ending } = ended;
        let place = (plugin.clone(), allocation.clone());
        match self.entries.get(&place).and_then(|entry| entry.child.ended(*life)) {
            Some(Ended::OnRequest) => {
                cx.cancel_timer(InstancesTimer::Retire(place.clone()));
                self.succeed(&place, cx);
            }
            Some(Ended::ByItself) => match ending {
                Ending::Normal => self.lost(&place, cx),
                Ending::Panicked(_) if self.may_restart(cx.moment(), &place) => self.lost(&place, cx),
                Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_) | Ending::Killed => {
                    self.fell(&place, ending, cx);
                }
            },
            // An earlier life (REG-08).
            None => {}
        }
    }

    pub(super) fn not_started(
        &mut self,
        (plugin, allocation): Place,
        life: Attempt,
        lost: &CallLost,
        cx: &mut StepContext<Self>,
    ) {
        let ending = Ending::Failed(format!("it could not be started: {lost}"));
        self.ended(&ChildEnded { plugin, allocation, life, ending }, cx);
    }

    /// The next instance of a registration starts, or there is no next one.
    fn succeed(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        if self.wanted.contains_key(place) && !self.is_stopping {
            self.start_again(place, cx);
        } else {
            cx.cancel_timer(InstancesTimer::Restart(place.clone()));
            if self.entries.get_mut(place).is_some_and(|entry| entry.set_gone(cx.moment())) {
                self.changed(place, cx);
            }
            self.entries.remove(place);
            self.show_standby(place, cx);
        }
        self.show(&place.0, cx);
        self.move_checks(&place.0, cx);
        self.answer_retirement(&place.1, cx);
        self.end_if_empty(cx);
    }

    /// Starts the next instance of a registration, under a new generation.
    fn start_again(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let (Some(wanted), Some(entry)) = (self.wanted.get(place), self.entries.get_mut(place)) else {
            return;
        };
        if wanted.generation > entry.report.generation {
            self.start(place, cx);
        } else {
            entry.go_on();
            self.renew(place, cx);
        }
    }

    /// Its connection has ended. The plugin is checked again at once, unless this happens repeatedly.
    fn lost(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        if !self.wanted.contains_key(place) {
            return self.succeed(place, cx);
        }
        let Some(entry) = self.entries.get_mut(place) else { return };
        entry.kept = None;
        // Its last report may still be in flight.
        if entry.report.health == Health::Healthy {
            entry.set_health(cx.moment(), Health::Starting);
        }
        let restart = InstancesTimer::Restart(place.clone());
        if let Some((times, pause)) = entry.child.lost(restart, &self.options.restart_backoff, cx) {
            // Its state is unknown during the pause, so a healthy standby is better.
            let reason = format!(
                "its connection ended {times} times in a row; it is connected to again after {pause:?}"
            );
            entry.report.fitness = Fitness::Unfit { reason: reason.into() };
        } else {
            self.start_again(place, cx);
        }
        self.changed(place, cx);
        self.report_fitness(place, cx);
        self.move_checks(&place.0, cx);
    }

    fn fell(&mut self, place: &Place, ending: &Ending, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        let policy = (&self.options.restart_budget, &self.options.restart_backoff);
        let next = if entry.child.fell(InstancesTimer::Restart(place.clone()), policy, cx) {
            "it is started again"
        } else {
            "restart budget exhausted, so it is started again only when its plugin is registered again or checked"
        };
        let reason = format!("the instance ended ({ending}); {next}");
        entry.report.fitness = Fitness::Unfit { reason: reason.as_str().into() };
        entry.has_crashed = true;
        entry.kept = None;
        if entry.set_health(cx.moment(), Health::Unhealthy { reason }) {
            self.changed(place, cx);
        }
        self.report_fitness(place, cx);
        self.answer_checks(&place.0, cx);
        self.answer_retirement(&place.1, cx);
    }

    fn may_restart(&mut self, moment: Moment, place: &Place) -> bool {
        let budget = &self.options.restart_budget;
        self.entries.get_mut(place).is_some_and(|entry| entry.child.may_restart(budget, moment))
    }

    pub(super) fn restart_due(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        // Otherwise another generation has come meanwhile, or none is left.
        if self.entries.get(place).is_some_and(|entry| entry.child.state() == ChildState::Pausing) {
            self.start_again(place, cx);
            self.show(&place.0, cx);
        }
    }

    pub(super) fn revive(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.needs_successor = false;
            entry.child.forgive();
        }
        self.start_again(place, cx);
        self.show(&place.0, cx);
    }

    // === Shutdown ===

    pub(super) fn stop(&mut self, cx: &mut StepContext<Self>) {
        self.is_stopping = true;
        cx.cancel_timer(InstancesTimer::Refollow);
        self.close_gates(cx);
        for (plugin, waiting) in self.dispensing.take_all() {
            for id in waiting {
                cx.cancel_timer(InstancesTimer::Dispense(plugin.clone(), id));
                let error = DispenseError::Stopping { plugin: plugin.clone() };
                cx.reply(id, InstancesAnswer::Dispense(Err(error)));
            }
        }
        self.entries.values_mut().for_each(|entry| entry.kept = None);
        let entries: Vec<_> =
            self.entries.iter().map(|(place, entry)| (place.clone(), entry.child.state())).collect();
        for (place, child) in entries {
            match child {
                ChildState::Running(_) => self.retire(&place, cx),
                ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp => {
                    self.succeed(&place, cx);
                }
                ChildState::Stopping(_) => self.show_standby(&place, cx),
            }
            self.answer_checks(&place.0, cx);
        }
        self.end_if_empty(cx);
    }

    fn end_if_empty(&mut self, cx: &mut StepContext<Self>) {
        if self.is_stopping && self.entries.is_empty() {
            cx.stop();
        }
    }
}
