//! The succession of instances: start, retirement, restart, and the end of all.

use super::behaviour::HAND_OVER_DEADLINE;
use super::messages::{DispenseError, InstanceReport, InstancesAnswer, InstancesNews};
use super::state::{Child, ChildEnded, Entry, Instances, InstancesCall, InstancesTimer};
use crate::instance::{Half, InstanceConfig};
use crate::kernel::{CallKey, CallLost, Effects, Ending};
use crate::registry::Active;
use crate::vocabulary::{Attempt, BackoffState, Health, Moment, PluginKey, RestartHistory};

impl Instances {
    /// Reconciles a plugin's instance with the registration that the registry routes to: takes the next step towards it.
    pub(super) fn reconcile(&mut self, moment: Moment, plugin: &PluginKey, effects: &mut Effects<Self>) {
        let wanted = self.wanted.get(plugin).map(|active| active.generation);
        match (self.entries.get(plugin).map(|entry| (entry.child, entry.report.generation)), wanted) {
            (None, Some(_)) => self.start(moment, plugin, effects),
            (Some((Child::Serving { generation, .. }, _)), Some(wanted)) if generation == wanted => {}
            (Some((Child::Serving { life, .. }, _)), Some(_) | None) => {
                self.retire(moment, plugin, life, effects);
            }
            // A timer restarts it, or it was given up.
            (Some((Child::Pausing | Child::GivenUp, generation)), Some(wanted)) if generation == wanted => {}
            (Some((Child::Pausing | Child::GivenUp, _)), Some(_) | None) => {
                effects.cancel_timer(InstancesTimer::Restart(plugin.clone()));
                self.succeed(moment, plugin, effects);
            }
            // Its end decides about the next step, by the registration that is active then.
            (Some((Child::Retiring { .. }, _)), Some(_) | None) | (None, None) => {}
        }
        self.settle(plugin, effects);
    }

    /// Starts the instance of the active registration, with a full restart budget.
    fn start(&mut self, moment: Moment, plugin: &PluginKey, effects: &mut Effects<Self>) {
        let known = self.entries.remove(plugin).and_then(|entry| entry.known);
        let Some(active) = self.wanted.get(plugin) else { return };
        let entry = Entry {
            child: Child::GivenUp,
            report: starting(active, moment),
            known,
            restarts: RestartHistory::default(),
            backoff: BackoffState::default(),
        };
        effects.publish(InstancesNews::Reported(entry.report.clone()));
        self.entries.insert(plugin.clone(), entry);
        self.start_child(plugin, effects);
    }

    fn start_child(&mut self, plugin: &PluginKey, effects: &mut Effects<Self>) {
        let (Some(active), Some(entry), Some(half)) =
            (self.wanted.get(plugin), self.entries.get_mut(plugin), Half::of(plugin.plugin_type))
        else {
            return;
        };
        self.life = self.life.next();
        entry.child = Child::Serving { life: self.life, generation: active.generation };
        let config = InstanceConfig {
            plugin: plugin.clone(),
            half,
            allocation: active.registration.allocation.clone(),
            socket: active.registration.socket.clone(),
            generation: active.generation,
            expected_provider: active.registration.provider.clone(),
            predecessor: entry.known.clone(),
            limits: self.options.limits,
        };
        self.call(InstancesCall::Start { life: self.life, config: Box::new(config) }, effects);
    }

    // === Reports ===

    /// Handles a report of an instance. Those of a retiring instance or an earlier life are ignored (REG-08).
    pub(super) fn reported(&mut self, life: Attempt, report: &InstanceReport, effects: &mut Effects<Self>) {
        let plugin = &report.plugin;
        let Some(entry) = self.entries.get_mut(plugin) else { return };
        match entry.child {
            Child::Serving { life: current, .. } if current == life => {}
            Child::Serving { .. } | Child::Retiring { .. } | Child::Pausing | Child::GivenUp => return,
        }
        if entry.accept(report) {
            effects.publish(InstancesNews::Reported(entry.report.clone()));
            self.serve_waiting(plugin, effects);
            self.settle(plugin, effects);
        }
    }

    // === The end of one instance ===

    /// Asks an instance to retire. From here on it is shown as gone and is not dispensed any more.
    fn retire(&mut self, moment: Moment, plugin: &PluginKey, life: Attempt, effects: &mut Effects<Self>) {
        let Some(entry) = self.entries.get_mut(plugin) else { return };
        entry.child = Child::Retiring { life };
        if entry.say_goodbye(moment) {
            effects.publish(InstancesNews::Reported(entry.report.clone()));
        }
        let deadline = moment.now + self.options.retire_bound();
        effects.start_timer(InstancesTimer::Retire(plugin.clone()), deadline);
        effects.call(CallKey::default(), HAND_OVER_DEADLINE, InstancesCall::Retire { life });
        self.answer_checks(plugin, effects);
    }

    pub(super) fn retired_too_slowly(
        &mut self,
        moment: Moment,
        plugin: &PluginKey,
        effects: &mut Effects<Self>,
    ) {
        match self.entries.get(plugin).map(|entry| entry.child) {
            Some(Child::Retiring { life }) => {
                let again = moment.now + self.options.retire_bound();
                effects.start_timer(InstancesTimer::Retire(plugin.clone()), again);
                self.call(InstancesCall::Kill { life }, effects);
            }
            // It ended in time.
            Some(Child::Serving { .. } | Child::Pausing | Child::GivenUp) | None => {}
        }
    }

    pub(super) fn ended(&mut self, moment: Moment, ended: &ChildEnded, effects: &mut Effects<Self>) {
        let ChildEnded { plugin, life, ending } = ended;
        match self.entries.get(plugin).map(|entry| entry.child) {
            Some(Child::Retiring { life: current }) if current == *life => {
                effects.cancel_timer(InstancesTimer::Retire(plugin.clone()));
                self.succeed(moment, plugin, effects);
            }
            Some(Child::Serving { life: current, .. }) if current == *life => {
                self.fell(moment, plugin, ending, effects);
            }
            // The ending of an earlier life, which has a successor or was swept (REG-08).
            Some(Child::Retiring { .. } | Child::Serving { .. } | Child::Pausing | Child::GivenUp) | None => {
            }
        }
    }

    pub(super) fn not_started(
        &mut self,
        moment: Moment,
        plugin: &PluginKey,
        life: Attempt,
        lost: &CallLost,
        effects: &mut Effects<Self>,
    ) {
        let ending = Ending::Failed(format!("it could not be started: {lost}"));
        self.ended(moment, &ChildEnded { plugin: plugin.clone(), life, ending }, effects);
    }

    fn succeed(&mut self, moment: Moment, plugin: &PluginKey, effects: &mut Effects<Self>) {
        if self.wanted.contains_key(plugin) && !self.is_stopping {
            self.start(moment, plugin, effects);
        } else if let Some(mut entry) = self.entries.remove(plugin) {
            entry.say_goodbye(moment);
            effects.publish(InstancesNews::Left(entry.report));
            self.answer_checks(plugin, effects);
        }
        self.settle(plugin, effects);
        self.answer_retirement(effects);
        self.end_if_empty(effects);
    }

    fn fell(&mut self, moment: Moment, plugin: &PluginKey, ending: &Ending, effects: &mut Effects<Self>) {
        let Some(entry) = self.entries.get_mut(plugin) else { return };
        let next = if entry.restarts.charge(&self.options.restart_budget, moment.now) {
            let pause = entry.backoff.failed(&self.options.restart_backoff, moment);
            effects.start_timer(InstancesTimer::Restart(plugin.clone()), moment.now + pause);
            entry.child = Child::Pausing;
            "it is started again"
        } else {
            entry.child = Child::GivenUp;
            "that happened too often, so it is started again only when its plugin is registered anew or checked"
        };
        if entry.set_health(
            moment,
            Health::Unhealthy { reason: format!("the instance ended ({ending}); {next}") },
        ) {
            effects.publish(InstancesNews::Reported(entry.report.clone()));
        }
        self.answer_checks(plugin, effects);
        self.serve_waiting(plugin, effects);
        self.settle(plugin, effects);
        self.answer_retirement(effects);
    }

    pub(super) fn restart_due(&mut self, plugin: &PluginKey, effects: &mut Effects<Self>) {
        match self.entries.get(plugin).map(|entry| entry.child) {
            Some(Child::Pausing) => self.start_child(plugin, effects),
            // Another registration came meanwhile, or none is left.
            Some(Child::Serving { .. } | Child::Retiring { .. } | Child::GivenUp) | None => {}
        }
    }

    pub(super) fn revive(&mut self, moment: Moment, plugin: &PluginKey, effects: &mut Effects<Self>) {
        self.start(moment, plugin, effects);
        self.settle(plugin, effects);
    }

    // === Shutdown ===

    pub(super) fn stop(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        self.is_stopping = true;
        effects.cancel_timer(InstancesTimer::Refollow);
        for (plugin, waiting) in self.dispensing.take_all() {
            for id in waiting {
                effects.cancel_timer(InstancesTimer::Dispense(plugin.clone(), id));
                let error = DispenseError::Stopping { plugin: plugin.clone() };
                effects.reply(id, InstancesAnswer::Dispense(Err(error)));
            }
        }
        let entries: Vec<_> =
            self.entries.iter().map(|(plugin, entry)| (plugin.clone(), entry.child)).collect();
        for (plugin, child) in entries {
            match child {
                Child::Serving { life, .. } => self.retire(moment, &plugin, life, effects),
                Child::Pausing | Child::GivenUp => {
                    effects.cancel_timer(InstancesTimer::Restart(plugin.clone()));
                    self.succeed(moment, &plugin, effects);
                }
                Child::Retiring { .. } => {}
            }
        }
        self.end_if_empty(effects);
    }

    fn end_if_empty(&mut self, effects: &mut Effects<Self>) {
        if self.is_stopping && self.entries.is_empty() {
            effects.stop();
        }
    }
}

impl Entry {
    /// Stores a report. False means that it contains nothing new (SCL-05).
    fn accept(&mut self, report: &InstanceReport) -> bool {
        let since = if self.report.health.as_str() == report.health.as_str() {
            self.report.since
        } else {
            report.since
        };
        let report = InstanceReport { since, ..report.clone() };
        if report == self.report {
            return false;
        }
        if report.fingerprint.is_some() {
            self.known.clone_from(&report.fingerprint);
        }
        self.report = report;
        true
    }

    /// Sets the health to gone. False means that it was set before.
    fn say_goodbye(&mut self, moment: Moment) -> bool {
        self.set_health(moment, Health::Gone)
    }

    /// Sets a health that no instance reported. False means that it was set before (SCL-05).
    fn set_health(&mut self, moment: Moment, health: Health) -> bool {
        if self.report.health == health {
            return false;
        }
        if self.report.health.as_str() != health.as_str() {
            self.report.since = moment.now;
        }
        self.report.health = health;
        true
    }
}

fn starting(active: &Active, moment: Moment) -> InstanceReport {
    let registration = &active.registration;
    InstanceReport {
        plugin: registration.plugin.clone(),
        allocation: registration.allocation.clone(),
        socket: registration.socket.clone(),
        generation: active.generation,
        health: Health::Starting,
        since: moment.now,
        fingerprint: None,
        remarks: Vec::new(),
    }
}
