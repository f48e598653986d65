//! The task drivers in the inventory.

use super::behaviour::{FOLLOW_DEADLINE, REFOLLOW_PAUSE};
use super::messages::{FirstSummary, InventoryNews};
use super::state::{DriversItem, Inventory, InventoryCall, InventoryOutcome, InventoryTimer, Phase};
use crate::driver::{DriverHealth, DriverReport};
use crate::drivers::DriversNews;
use crate::shell::{CallKey, CallLost, Effects, FeedItem};
use crate::vocabulary::{DriverName, Generation, Moment, PluginKey, PluginName, PluginType};

impl Inventory {
    pub(super) fn follow_drivers(&mut self, afresh: bool, effects: &mut Effects<Self>) {
        if self.drivers.is_followed {
            self.drivers.following = self.drivers.following.next();
            effects.call(self.drivers_key(), FOLLOW_DEADLINE, InventoryCall::FollowDrivers { afresh });
        }
    }

    fn drivers_key(&self) -> CallKey {
        CallKey { generation: Generation::default(), attempt: self.drivers.following }
    }

    pub(super) fn drivers_returned(
        &mut self,
        moment: Moment,
        key: CallKey,
        outcome: &Result<InventoryOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        // Another try of following is under way.
        if key != self.drivers_key() {
            return;
        }
        match outcome {
            Ok(InventoryOutcome::Drivers(Ok(items))) => {
                items.iter().for_each(|item| self.driver_heard(item, effects));
                self.follow_drivers(false, effects);
                self.publish_if_known(effects);
            }
            // Nothing happened for a long time.
            Err(CallLost::DeadlineExceeded(_)) => self.follow_drivers(false, effects),
            Ok(InventoryOutcome::Drivers(Err(_)) | InventoryOutcome::Instances(_))
            | Err(CallLost::Crashed(_) | CallLost::Busy(_)) => {
                effects.start_timer(InventoryTimer::RefollowDrivers, moment.now + REFOLLOW_PAUSE);
            }
        }
    }

    fn driver_heard(&mut self, item: &DriversItem, effects: &mut Effects<Self>) {
        match item {
            // What is missing in a snapshot has left.
            FeedItem::Snapshot { view, .. } => {
                self.drivers.is_heard = true;
                let is_there = |name: &DriverName| view.reports.iter().any(|report| report.name == *name);
                let known = self.drivers.reports.keys().cloned();
                let left: Vec<DriverName> = known.filter(|name| !is_there(name)).collect();
                left.iter().for_each(|name| self.driver_left(name, effects));
                view.reports.iter().for_each(|report| self.driver_reported(report, effects));
            }
            FeedItem::Change { news: DriversNews::Reported(report), .. } => {
                self.driver_reported(report, effects);
            }
            FeedItem::Change { news: DriversNews::Left(report), .. } => {
                self.driver_left(&report.name, effects);
            }
            FeedItem::Change {
                news: DriversNews::DeadLetters { .. } | DriversNews::EventsInterrupted { .. },
                ..
            } => {}
            // A snapshot follows.
            FeedItem::Lagged { .. } => {}
        }
    }

    fn driver_reported(&mut self, report: &DriverReport, effects: &mut Effects<Self>) {
        let known = self.drivers.reports.insert(report.name.clone(), report.clone());
        let is_news = !known.is_some_and(|known| known.equals(report));
        match self.phase {
            Phase::Published { .. } if is_news => {
                effects.publish(InventoryNews::DriverChanged(report.clone()))
            }
            // It says the same (SCL-05), or nothing is told yet (N1).
            Phase::Published { .. } | Phase::Gathering { .. } => {}
        }
    }

    fn driver_left(&mut self, name: &DriverName, effects: &mut Effects<Self>) {
        let was_there = self.drivers.reports.remove(name).is_some();
        match self.phase {
            Phase::Published { .. } if was_there => {
                effects.publish(InventoryNews::DriverRemoved(name.clone()))
            }
            Phase::Published { .. } | Phase::Gathering { .. } => {}
        }
    }

    /// Whether it is known of every driver if it serves. One that fails is known (HLT-04).
    pub(super) fn are_drivers_known(&self) -> bool {
        let is_known = |report: &DriverReport| report.health != DriverHealth::NoAnswerYet;
        !self.drivers.is_followed || (self.drivers.is_heard && self.drivers.reports.values().all(is_known))
    }

    /// Sorts the drivers by what they say (N2).
    pub(super) fn add_drivers(&self, summary: &mut FirstSummary) {
        for report in self.drivers.reports.values() {
            // What may be the name of a driver may be the name of any plugin.
            let Ok(name) = PluginName::new(report.name.as_str()) else { continue };
            let driver = PluginKey::new(PluginType::Driver, name);
            match report.health {
                DriverHealth::Healthy => summary.healthy.push(driver),
                DriverHealth::Unhealthy => summary.unhealthy.push((driver, report.reason.clone())),
                DriverHealth::Undetected => summary.undetected.push(driver),
                DriverHealth::NoAnswerYet => summary.no_answer.push(driver),
                DriverHealth::Gone => {}
            }
        }
    }
}
