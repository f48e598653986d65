//! Records the results of the instances' looks, as reported to the supervisor.

use std::collections::BTreeMap;

use callboard_actors::instances::InstanceReport;
use callboard_actors::vocabulary::{Fitness, Generation, Health};

use super::model::Place;

#[derive(Debug, Clone, Hash)]
pub(super) struct Looks {
    /// The fitness that each one reported last.
    found: BTreeMap<Place, Fitness>,
    /// The instances whose last look was good, with the generation of that look, and whose connection has not ended by itself since.
    well: BTreeMap<Place, Generation>,
}

impl Looks {
    pub(super) const fn new() -> Self {
        Self { found: BTreeMap::new(), well: BTreeMap::new() }
    }

    pub(super) fn reported(&mut self, report: &InstanceReport) {
        let place = (report.plugin.clone(), report.allocation.clone());
        self.found.insert(place.clone(), report.fitness.clone());
        match (&report.health, &report.fitness) {
            (Health::Healthy, Fitness::Fit | Fitness::Unproven) => {
                self.well.insert(place, report.generation);
            }
            // A successor that has not looked yet proves nothing.
            (Health::Starting, Fitness::Fit | Fitness::Unproven)
                if self.well.get(&place) != Some(&report.generation) => {}
            (Health::Healthy | Health::Starting | Health::Unhealthy { .. } | Health::Gone, _) => {
                self.well.remove(&place);
            }
        }
    }

    /// Its connection has ended, without a request.
    pub(super) fn lost(&mut self, place: &Place) {
        self.well.remove(place);
    }

    /// Its registration has left.
    pub(super) fn left(&mut self, place: &Place) {
        self.found.remove(place);
        self.well.remove(place);
    }

    pub(super) fn found(&self, place: &Place) -> Option<&Fitness> {
        self.found.get(place)
    }

    /// Whether it was well under this generation.
    pub(super) fn is_well_in(&self, place: &Place, generation: Generation) -> bool {
        self.well.get(place) == Some(&generation)
    }

    pub(super) fn is_well(&self, place: &Place) -> bool {
        self.well.contains_key(place)
    }
}
