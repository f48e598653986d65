//! Checks that standbys stay warm through a takeover, in both directions (R1d).

use std::sync::Arc;

use callboard_actors::instance::InstanceConfig;
use callboard_actors::instances::InstanceReport;
use callboard_actors::registry::{Entry, Standing};
use callboard_actors::vocabulary::{Generation, Health, PluginKey, Registration, RegistrationNumber};

use super::super::law::Law;
use super::model::Place;
use super::parent::{InstancesLaws, Life};
use super::touched::Touched;

/// The contents of a registration.
#[derive(Debug, Clone, Hash)]
pub(super) struct Contents {
    number: RegistrationNumber,
    registration: Arc<Registration>,
    /// The first generation with these contents.
    since: Generation,
}

impl InstancesLaws {
    /// Records a report that contains the plugin's fingerprint.
    pub(super) fn note_read(&mut self, report: &InstanceReport) {
        if report.fingerprint.is_some() {
            self.read.insert((report.plugin.clone(), report.allocation.clone()));
        }
    }

    /// The next instance of a plugin receives what was read of it.
    pub(super) fn check_remembered(&mut self, place: &Place, config: &InstanceConfig) {
        let is_known = config.former.as_ref().is_some_and(|former| former.fingerprint.is_some());
        if self.read.contains(place) && !is_known {
            let what = format!("what was read of {} of {} is forgotten", place.0, place.1);
            self.verdict.violation(Law::R1d, || what);
        }
    }

    /// An instance gives up its connection only if another generation is registered, or its own was given out and is no longer active.
    pub(super) fn check_kept(&mut self, place: &Place, generation: Generation) {
        let is_spent = self.spent.contains(&(place.0.clone(), generation));
        if self.wanted.get(place) == Some(&generation) && !is_spent && !self.is_stopping {
            self.verdict.violation(Law::R1d, || {
                format!("generation {generation} of {} of {} has to give up its connection", place.0, place.1)
            });
        }
    }

    pub(super) fn registered(&mut self, entry: &Entry) {
        let Registration { plugin, allocation, .. } = &*entry.registration;
        if entry.standing == Standing::Confirmed && plugin.plugin_type.is_csi() {
            let place = (plugin.clone(), allocation.clone());
            self.note_contents(&place, entry);
            self.wanted.insert(place, entry.generation);
        }
    }

    /// Records the contents of a registration. Other contents make it another plugin, and the knowledge of the former one is dropped.
    fn note_contents(&mut self, place: &Place, entry: &Entry) {
        let is_same = |contents: &Contents| {
            contents.number == entry.number && contents.registration == entry.registration
        };
        if !self.contents.get(place).is_some_and(is_same) {
            let (number, registration) = (entry.number, Arc::clone(&entry.registration));
            self.read.remove(place);
            self.contents.insert(place.clone(), Contents { number, registration, since: entry.generation });
        }
    }

    /// An instance that is registered with the same contents is not gone.
    pub(super) fn check_gone(&mut self, place: &Place, generation: Generation) {
        let goes_on = self.contents.get(place).is_some_and(|contents| generation >= contents.since);
        if goes_on && self.wanted.contains_key(place) && !self.is_stopping {
            let what = format!("{} of {} is called gone, and is registered", place.0, place.1);
            self.verdict.violation(Law::R1d, || what);
        }
    }

    /// Whether the shown plugin reports another name than the one that served before: a fault, even if it is otherwise well (C031).
    fn is_renamed(&self, plugin: &PluginKey) -> bool {
        let name = |shown: &InstanceReport| Some(Arc::clone(&shown.fingerprint.as_ref()?.identity.provider));
        let shown = self.shown.get(plugin).and_then(name);
        shown.is_some_and(|name| self.served_as.get(plugin).is_some_and(|before| *before != name))
    }

    /// A standby that was well is shown as healthy, and given out, in the step in which work is routed to it (R1d).
    pub(super) fn check_warm(&mut self, touched: &Touched) {
        for (plugin, active) in touched.among(&self.active) {
            let place = (plugin.clone(), active.registration.allocation.clone());
            let serves = |life: &Life| life.generation == active.generation && !life.is_retiring;
            let is_warm = self.lives.get(&place).is_some_and(serves)
                && self.looks.is_well_in(&place, active.generation)
                && !self.is_stopping;
            let is_shown = self.shown.get(plugin).is_some_and(|shown| {
                (shown.generation, &shown.health) == (active.generation, &Health::Healthy)
            });
            if is_warm && !is_shown && !self.is_renamed(plugin) {
                let what = format!("{plugin} of {} was well, and has to be looked at first", place.1);
                return self.verdict.violation(Law::R1d, || what);
            }
        }
    }
}
