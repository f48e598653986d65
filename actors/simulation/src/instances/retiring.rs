//! When an instance retires, and for which cause.

use callboard_actors::instance::InstanceReport;
use callboard_actors::lease::RetireCause;
use callboard_actors::vocabulary::{Attempt, Health};

use super::super::law::Law;
use super::model::Place;
use super::parent::InstancesLaws;
use super::touched::Touched;

impl InstancesLaws {
    pub(super) fn retires(&mut self, life: Attempt, cause: RetireCause, bounds: &[Place]) {
        let found = self.lives.iter_mut().find(|(_, other)| other.life == life);
        let Some((place, found)) = found else { return };
        found.is_retiring = true;
        let (place, plugin, generation) = (place.clone(), place.0.clone(), found.generation);
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

    /// From the moment in which its generation is not registered any more, or work is routed elsewhere, an instance retires. One whose
    /// registration has left is not called healthy any more.
    pub(super) fn check_retired(&mut self, touched: &Touched) {
        let has_left = |(place, report): &(&Place, &InstanceReport)| {
            report.health == Health::Healthy && !self.wanted.contains_key(place)
        };
        let mut standby = self.standby.iter().filter(|((plugin, _), _)| touched.has(plugin));
        if let Some((_, report)) = standby.find(has_left) {
            let what = format!("{} of {} is called healthy and has left", report.plugin, report.allocation);
            return self.verdict.violation(Law::Reg8, || what);
        }
        for (place, life) in self.lives.iter().filter(|((plugin, _), _)| touched.has(plugin)) {
            let (plugin, _) = place;
            let is_spent = self.spent.contains(&(plugin.clone(), life.generation));
            let is_active =
                self.active.get(plugin).is_some_and(|active| active.generation == life.generation);
            // When the active one leaves, the registry says in the same breath where it routes instead.
            let is_wanted = is_active || self.wanted.get(place) == Some(&life.generation);
            if (!is_wanted || is_spent) && !life.is_retiring && !self.is_stopping {
                let what = format!("{life:?} of {plugin} serves although it is not to serve any more");
                self.verdict.violation(Law::I1, || what);
                return;
            }
        }
    }
}
