//! Shows the state of a plugin: the report of the registration that work is routed to.

use std::sync::Arc;

use super::entry::Continuation;
use super::messages::{InstanceReport, InstancesNews};
use super::state::{Entry, Instances, Place};
use crate::kernel::StepContext;
use crate::registry::Active;
use crate::supervisor::ChildState;
use crate::vocabulary::{Fitness, Generation, Health, Moment, PluginKey, Registration, Timestamp};

impl Instances {
    /// Whether work is routed to this instance, or was until it began to retire.
    pub(super) fn is_active(&self, entry: &Entry) -> bool {
        let active = self.active.get(&entry.report.plugin);
        active.is_some_and(|active| active.generation == entry.report.generation)
    }

    pub(super) fn active_place(&self, plugin: &PluginKey) -> Option<Place> {
        let active = self.active.get(plugin)?;
        Some((plugin.clone(), active.registration.allocation.clone()))
    }

    /// The instance of the active registration, also one of its former generation.
    pub(super) fn active_entry(&self, plugin: &PluginKey) -> Option<&Entry> {
        self.entries.get(&self.active_place(plugin)?)
    }

    /// Whether work is routed to this registration.
    pub(super) fn is_active_place(&self, (plugin, allocation): &Place) -> bool {
        self.active.get(plugin).is_some_and(|active| active.registration.allocation == *allocation)
    }

    /// Whether work is routed to another registration than this one, and its plugin is shown by another one.
    pub(super) fn is_standby(&self, place: &Place) -> bool {
        let (plugin, allocation) = place;
        let is_shown = self.shown.get(plugin).is_some_and(|shown| shown.allocation == *allocation);
        !is_shown && !self.is_active_place(place)
    }

    /// Publishes changes of a registration that stands by, or no longer does.
    pub(super) fn show_standby(&mut self, place: &Place, cx: &mut StepContext<Self>) {
        let standby = self.entries.get(place).filter(|_| self.is_standby(place)).map(Entry::shown_report);
        match (standby, self.shown_standby.get(place)) {
            (Some(report), Some(shown)) if report.looks_like(shown) => {}
            (Some(report), _) => {
                cx.publish(InstancesNews::Standby(report.clone()));
                self.shown_standby.insert(place.clone(), report);
            }
            // It is the active one now; its report is published as the plugin's.
            (None, Some(_)) if self.entries.contains_key(place) => {
                self.shown_standby.remove(place);
            }
            (None, Some(shown)) => {
                if shown.health != Health::Gone {
                    cx.publish(InstancesNews::Standby(gone(shown.clone(), cx.moment())));
                }
                self.shown_standby.remove(place);
            }
            (None, None) => {}
        }
    }

    /// The registrations of a plugin that are confirmed or have an instance.
    pub(super) fn places_of(&self, plugin: &PluginKey) -> Vec<Place> {
        let allocations = self.allocations.get(plugin).into_iter().flatten();
        allocations.map(|allocation| (plugin.clone(), allocation.clone())).collect()
    }

    /// Forgets the registrations of a plugin that have left and have no instance.
    fn forget_places(&mut self, plugin: &PluginKey) {
        let Some(allocations) = self.allocations.get_mut(plugin) else { return };
        allocations.retain(|allocation| {
            let place = (plugin.clone(), allocation.clone());
            self.wanted.contains_key(&place) || self.entries.contains_key(&place)
        });
        if allocations.is_empty() {
            self.allocations.remove(plugin);
        }
    }

    /// Publishes changes of a plugin (SCL-05), and answers the callers that wait for it.
    pub(super) fn show(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        self.forget_places(plugin);
        let before = self.shown.get(plugin).map(|shown| shown.allocation.clone());
        match self.present_report(cx.moment(), plugin) {
            Some(report) if self.shown.get(plugin).is_some_and(|shown| shown.looks_like(&report)) => {
                self.shown.insert(plugin.clone(), report);
            }
            Some(report) => {
                cx.publish(InstancesNews::Reported(report.clone()));
                if let Some(fingerprint) = &report.fingerprint {
                    self.known.insert(plugin.clone(), Arc::clone(fingerprint));
                }
                self.shown.insert(plugin.clone(), report);
            }
            None => {
                self.known.remove(plugin);
                if let Some(report) = self.shown.remove(plugin) {
                    cx.publish(InstancesNews::Left(gone(report, cx.moment())));
                }
            }
        }
        let now = self.shown.get(plugin).map(|shown| shown.allocation.clone());
        if now != before {
            for allocation in [before, now].into_iter().flatten() {
                self.show_standby(&(plugin.clone(), allocation), cx);
            }
        }
        self.serve_waiting(plugin, cx);
        self.settle(plugin, cx);
    }

    fn present_report(&self, moment: Moment, plugin: &PluginKey) -> Option<InstanceReport> {
        let shown = self.shown.get(plugin);
        // A host that is stopping publishes no more changes.
        let active = self.active.get(plugin).filter(|_| !self.is_stopping);
        let Some(active) = active else {
            // The last report is shown until its instance has ended.
            let shown = shown?;
            let entry = self.entries.get(&(plugin.clone(), shown.allocation.clone()))?;
            return Some(entry.report.clone()).filter(|report| report.generation == shown.generation);
        };
        let entry = self.active_entry(plugin);
        if let Some(report) = entry.and_then(|entry| self.report_between(active, entry)) {
            return Some(report);
        }
        let is_of_it = |entry: &&Entry| match entry.child.state() {
            // Its successor cannot start before it has ended.
            ChildState::Stopping(_) => true,
            ChildState::Running(_) | ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp => {
                entry.report.generation == active.generation
            }
        };
        let is_shown = |shown: &&InstanceReport| shown.generation == active.generation;
        let report = entry.filter(is_of_it).map(|entry| entry.report.clone());
        report.or_else(|| shown.filter(is_shown).cloned()).or_else(|| Some(starting(active, moment)))
    }
}

impl Instances {
    /// The shown report of an active registration that continues while its former instance still retires: its next instance starts after
    /// that, and the registration is not gone (R1d).
    fn report_between(&self, active: &Active, entry: &Entry) -> Option<InstanceReport> {
        let place = (entry.report.plugin.clone(), entry.report.allocation.clone());
        let (_, since) = entry.kept.as_ref().filter(|_| self.goes_on(&place) == Continuation::AsActive)?;
        let first = first_report(&active.registration, active.generation, *since);
        matches!(entry.child.state(), ChildState::Stopping(_)).then(|| first.after(&entry.report))
    }
}

/// The first report of a generation.
pub(super) fn first_report(
    registration: &Registration,
    generation: Generation,
    since: Timestamp,
) -> InstanceReport {
    InstanceReport {
        plugin: registration.plugin.clone(),
        allocation: registration.allocation.clone(),
        socket: registration.socket.clone(),
        generation,
        health: Health::Starting,
        since,
        fitness: Fitness::Unproven,
        fingerprint: None,
        remarks: Vec::new(),
    }
}

fn starting(active: &Active, moment: Moment) -> InstanceReport {
    first_report(&active.registration, active.generation, moment.now)
}

fn gone(report: InstanceReport, moment: Moment) -> InstanceReport {
    let since = if report.health == Health::Gone { report.since } else { moment.now };
    InstanceReport { health: Health::Gone, since, ..report }
}
