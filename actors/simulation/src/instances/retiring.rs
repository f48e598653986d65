//! Checks when an instance retires, and for which cause.

use callboard_actors::lease::RetireCause;
use callboard_actors::vocabulary::{AllocationId, Attempt, Health, PluginKey};

use super::super::law::Law;
use super::model::Place;
use super::parent::{InstancesLaws, Life};
use super::touched::Touched;

impl InstancesLaws {
    pub(super) fn retires(&mut self, life: Attempt, cause: RetireCause, bounds: &[Place]) {
        let found = self.lives.find_mut(|other| other.life == life);
        let Some((place, found)) = found else { return };
        found.is_retiring = true;
        let (plugin, generation) = (place.0.clone(), found.generation);
        self.check_kept(&place, generation);
        self.gates.ended(&place);
        if !bounds.contains(&place) {
            self.verdict.violation(Law::I1, || format!("the instance of {plugin} retires without a bound"));
        }
        let known = match (self.is_stopping, self.active.contains_key(&plugin)) {
            (true, _) => RetireCause::HostStops,
            (false, true) => RetireCause::Superseded,
            (false, false) => RetireCause::NotServed,
        };
        if cause != known {
            self.verdict.violation(Law::I8, || {
                format!("the instance of {plugin} is told {cause:?}; it is {known:?}")
            });
        }
    }

    /// An instance retires from the moment at which its generation is no longer registered, or work is routed elsewhere. An instance
    /// whose registration has left is no longer reported as healthy.
    pub(super) fn check_retired(&mut self, touched: &Touched) {
        for (plugin, standby) in touched.among(self.standby.by_plugin()) {
            for (allocation, report) in standby {
                let place = (plugin.clone(), allocation.clone());
                if report.health == Health::Healthy && !self.wanted.contains_key(&place) {
                    let what = format!("{plugin} of {allocation} is called healthy and has left");
                    return self.verdict.violation(Law::Reg8, || what);
                }
            }
        }
        for (plugin, lives) in touched.among(self.lives.by_plugin()) {
            for (allocation, life) in lives {
                if self.is_over(plugin, allocation, life) {
                    let what = format!("{life:?} of {plugin} serves although it is not to serve any more");
                    return self.verdict.violation(Law::I1, || what);
                }
            }
        }
    }

    /// Whether an instance should have been asked to retire by now.
    fn is_over(&self, plugin: &PluginKey, allocation: &AllocationId, life: &Life) -> bool {
        let is_spent = self.spent.contains(&(plugin.clone(), life.generation));
        let is_active = self.active.get(plugin).is_some_and(|active| active.generation == life.generation);
        // When the active one leaves, the same message of the registry contains the new route.
        let is_wanted =
            is_active || self.wanted.get(&(plugin.clone(), allocation.clone())) == Some(&life.generation);
        (!is_wanted || is_spent) && !life.is_retiring && !self.is_stopping
    }
}
