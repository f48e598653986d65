//! Applies one message to the plugins that it names: registrations are created, changed and removed, and the active one is elected.

use std::sync::Arc;
use std::time::Duration;

use super::draft::Draft;
use super::messages::{Active, RegistryNews};
use super::reasons::{ActiveReason, Departure};
use super::restored::Restored;
use super::state::{Plugin, Plugins, Registry, RegistryOptions, Stored};
use super::waiting::Waiting;
use crate::vocabulary::{
    AllocationId, FailoverPolicy, Fitness, Generation, PluginKey, Registration, RegistrationNumber,
    RunNumber, Timestamp,
};

/// Each activation of a plugin is at least this much later than the one before, so that the rows show which was the last.
const INSTANT: Duration = Duration::from_micros(1);

/// The registry without its plugins, one of which is borrowed mutably.
pub(super) struct Turn<'a> {
    options: &'a RegistryOptions,
    run: RunNumber,
    now: Timestamp,
    next_number: &'a mut u64,
    held: &'a mut usize,
    restored: &'a mut Restored,
    waiting: &'a mut Waiting,
    draft: &'a mut Draft,
}

impl Registry {
    /// The plugins, and a turn that records their changes in the draft.
    pub(super) fn turn(&mut self, now: Timestamp) -> (&mut Plugins, Turn<'_>) {
        let Self { options, run, next_number, plugins, held, restored, waiting, draft } = self;
        (plugins, Turn { options, run: *run, now, next_number, held, restored, waiting, draft })
    }

    /// Removes a registration, if it exists.
    pub(super) fn dismiss(
        &mut self,
        key: &PluginKey,
        allocation: &AllocationId,
        departure: Departure,
        now: Timestamp,
    ) -> bool {
        let (plugins, mut turn) = self.turn(now);
        let Some(plugin) = plugins.get_mut(key) else { return false };
        let is_there = turn.dismiss(key, plugin, allocation, departure);
        if plugin.members.is_empty() {
            plugins.remove(key);
        }
        is_there
    }
}

impl RegistryOptions {
    /// How the active registration of a plugin is chosen: as configured for it, else by the policy of its newest registration with one.
    pub(super) fn policy_of(&self, key: &PluginKey, plugin: &Plugin, run: RunNumber) -> FailoverPolicy {
        let configured = self.policies.get(&key.name);
        configured.or_else(|| plugin.policy(run)).unwrap_or(&self.policy).clone()
    }
}

impl Turn<'_> {
    pub(super) fn admit(&mut self, key: &PluginKey, plugin: &mut Plugin, registration: Registration) {
        let mut stored = Stored {
            number: RegistrationNumber::new(self.number()),
            registration: registration.into(),
            since: self.now,
            confirmed_in: self.run,
            generation: Generation::default(),
            active_since: None,
        };
        self.renew(&mut stored);
        self.draft.tell(RegistryNews::Registered(stored.entry(self.run)));
        plugin.members.insert(stored);
        *self.held += 1;
        self.elect(key, plugin, ActiveReason::Registered);
    }

    /// Whether a registration was confirmed in this run (R8).
    pub(super) fn has_confirmed(&self, stored: &Stored) -> bool {
        stored.confirmed_in == self.run
    }

    /// Records that a registration is confirmed, perhaps with new contents.
    pub(super) fn confirm(
        &mut self,
        key: &PluginKey,
        plugin: &mut Plugin,
        number: RegistrationNumber,
        contents: Option<Registration>,
    ) {
        let Some(stored) = plugin.members.get_mut(number) else { return };
        let reason = if contents.is_some() { ActiveReason::Updated } else { ActiveReason::Confirmed };
        if let Some(registration) = contents {
            stored.registration = registration.into();
        }
        stored.confirmed_in = self.run;
        self.renew(stored);
        self.draft.tell(RegistryNews::Updated(stored.entry(self.run)));
        self.restored.settled(number);
        // It was not probed with these contents yet. An active registration stays active until it was.
        if !plugin.is_active(number) {
            plugin.fitness.forget(number);
        }
        self.elect(key, plugin, reason);
    }

    /// Sets another policy. Nothing else of the registration has changed, so it keeps its generation, and with it its connection.
    pub(super) fn change_policy(
        &mut self,
        key: &PluginKey,
        plugin: &mut Plugin,
        number: RegistrationNumber,
        registration: Registration,
    ) {
        let Some(stored) = plugin.members.get_mut(number) else { return };
        stored.registration = registration.into();
        if let Some((_, active)) = plugin.active.as_mut().filter(|(active, _)| *active == number) {
            active.registration = Arc::clone(&stored.registration);
        }
        self.draft.put(stored);
        self.draft.tell(RegistryNews::Updated(stored.entry(self.run)));
        self.elect(key, plugin, ActiveReason::Updated);
    }

    /// Gives a registration another generation, if it still has this one.
    pub(super) fn replace_generation(
        &mut self,
        key: &PluginKey,
        plugin: &mut Plugin,
        number: RegistrationNumber,
    ) {
        let Some(stored) = plugin.members.get_mut(number) else { return };
        self.renew(stored);
        self.draft.tell(RegistryNews::Renewed(stored.entry(self.run)));
        self.elect(key, plugin, ActiveReason::Renewed);
    }

    const fn number(&mut self) -> u64 {
        let number = *self.next_number;
        *self.next_number += 1;
        number
    }

    fn renew(&mut self, stored: &mut Stored) {
        stored.generation = Generation::new(self.number());
        stored.active_since = None;
        self.draft.put(stored);
    }

    fn dismiss(
        &mut self,
        key: &PluginKey,
        plugin: &mut Plugin,
        allocation: &AllocationId,
        departure: Departure,
    ) -> bool {
        let Some(stored) = plugin.members.remove(allocation) else { return false };
        let was_active = plugin.is_active(stored.number);
        *self.held -= 1;
        self.restored.settled(stored.number);
        self.draft.delete(&stored);
        self.draft.tell(RegistryNews::Deregistered(stored.entry(self.run), departure));
        let reason = if was_active { ActiveReason::Left(departure) } else { ActiveReason::Proven };
        self.elect(key, plugin, reason);
        plugin.fitness.forget(stored.number);
        true
    }

    /// Makes the best registration the active one (R1), and publishes the change if there is one.
    pub(super) fn elect(&mut self, key: &PluginKey, plugin: &mut Plugin, reason: ActiveReason) {
        let policy = &self.policy_among(key, plugin);
        let best = plugin.best(policy, self.run, self.now);
        let current = plugin.active.as_ref().map(|(number, _)| *number);
        if best != current || is_outdated(plugin) {
            let reason = if best == current { reason } else { self.note_loss(plugin, reason) };
            if best != current {
                self.keep_unused_generation(plugin);
            }
            let to = best.and_then(|number| self.activate(plugin, number));
            let former = std::mem::replace(&mut plugin.active, best.zip(to.clone()));
            if let Some(active) = &to {
                self.draft.awaken(self.waiting.come(key), active);
            }
            let from = former.map(|(_, active)| active);
            self.draft.tell(RegistryNews::ActiveChanged { plugin: key.clone(), from, to, reason });
        }
        if let Some(until) = plugin.next_calm_end(policy, self.run, self.now) {
            self.draft.elect_again(key, until);
        }
    }

    /// The policy for choosing among the registrations of a plugin. With a single one all policies are equal: the simplest stands for all.
    fn policy_among(&self, key: &PluginKey, plugin: &Plugin) -> FailoverPolicy {
        if plugin.members.is_single() {
            return FailoverPolicy::Newest;
        }
        self.options.policy_of(key, plugin, self.run)
    }

    /// Records that the active registration loses its place by failing (R1c). Returns the reason of the change: that failure, regardless of
    /// which report led to the change.
    fn note_loss(&self, plugin: &mut Plugin, reason: ActiveReason) -> ActiveReason {
        let Some((number, active)) = &plugin.active else { return reason };
        let failure = match plugin.fitness.of(*number) {
            // A registration that is stopped in order does not lose its place by failing.
            Fitness::Unfit { .. } if reason == ActiveReason::Left(Departure::Deregistered) => None,
            Fitness::Unfit { reason } => Some(Arc::clone(reason)),
            Fitness::Fit | Fitness::Unproven => None,
        };
        if failure.is_some() || reason == ActiveReason::Left(Departure::Failed) {
            let allocation = &active.registration.allocation;
            plugin.fitness.lost(allocation, *number, &self.options.calm, self.now);
        }
        match (reason, failure) {
            (ActiveReason::Proven, Some(reason)) => ActiveReason::Failed { reason },
            (reason, _) => reason,
        }
    }

    /// A CSI plugin that was never fit under its generation was not dispensed: it keeps that generation, and so its connection and the
    /// answers read over it, when it becomes active again (R1d).
    fn keep_unused_generation(&mut self, plugin: &mut Plugin) {
        let Some((number, active)) = &plugin.active else { return };
        let was_unused = active.registration.plugin.plugin_type.is_csi()
            && !plugin.fitness.was_fit_in(*number, active.generation);
        let former = plugin.members.get_mut(*number);
        if let Some(stored) = former.filter(|stored| was_unused && stored.generation == active.generation) {
            stored.active_since = None;
            self.draft.put(stored);
        }
    }

    fn activate(&mut self, plugin: &mut Plugin, number: RegistrationNumber) -> Option<Active> {
        let after = plugin.active.as_ref().map(|(_, active)| active.since + INSTANT);
        let stored = plugin.members.get_mut(number)?;
        // A generation that was dispensed is active at most once.
        if stored.active_since.is_some() {
            self.renew(stored);
            self.draft.tell(RegistryNews::Renewed(stored.entry(self.run)));
        }
        stored.active_since = Some(after.map_or(self.now, |after| after.max(self.now)));
        self.draft.put(stored);
        stored.active()
    }
}

/// Whether the contents or the generation of the active registration have changed.
fn is_outdated(plugin: &Plugin) -> bool {
    plugin.active.as_ref().is_some_and(|(number, active)| {
        plugin.members.get(*number).is_none_or(|stored| stored.generation != active.generation)
    })
}
