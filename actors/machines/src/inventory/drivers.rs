//! Handles the drivers among the offers: the first wait covers each of them, and their reports are followed from then on.

use std::collections::BTreeSet;
use std::time::Duration;

use super::messages::Offer;
use super::state::{
    DriversItem, Inventory, InventoryCall, InventoryOutcome, InventoryTimer, Phase, Source, driver_key,
};
use crate::FeedItem;
use crate::driver::{DriverHealth, DriverReport};
use crate::drivers::{DriverSummary, DriversNews};
use crate::kernel::{CallKey, CallLost, REFOLLOW_PAUSE, StepContext};
use crate::vocabulary::{Family, Health, PluginKey};

/// The extra time for the answer of the owner of the drivers, beyond the time that the owner itself waits.
const DRIVERS_MARGIN: Duration = Duration::from_secs(1);

impl Inventory {
    // === The first wait ===

    pub(super) fn ask_drivers(&self, cx: &mut StepContext<Self>) {
        if let Phase::Gathering { drivers: None, .. } = &self.phase {
            let within = self.first_until.since(cx.now());
            let call = InventoryCall::AwaitDrivers { within };
            cx.call(CallKey::default(), within.saturating_add(DRIVERS_MARGIN), call);
        }
    }

    /// Records the known state of drivers, and follows them from there. At the end of the first wait no driver is asked again.
    pub(super) fn drivers_told(
        &mut self,
        outcome: &Result<InventoryOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let Phase::Gathering { drivers, .. } = &mut self.phase else { return };
        match outcome {
            Ok(InventoryOutcome::DriversKnown(Ok((summary, reports)))) => {
                *drivers = Some(summary.clone());
                reports.iter().for_each(|report| self.note_driver(report, cx));
            }
            Ok(_) | Err(_) if cx.now() < self.first_until => {
                cx.start_timer(InventoryTimer::AskDrivers, cx.now() + REFOLLOW_PAUSE);
                return;
            }
            Ok(_) | Err(_) => *drivers = Some(DriverSummary::default()),
        }
        self.follow(Source::Drivers, true, cx);
        if cx.now() < self.first_until {
            self.publish_if_known(cx);
        } else {
            self.publish_what_is_known(cx);
        }
    }

    // === The drivers' feed ===

    pub(super) fn drivers_heard(&mut self, item: &DriversItem, cx: &mut StepContext<Self>) {
        match item {
            FeedItem::Snapshot { view, .. } => {
                let present: BTreeSet<PluginKey> =
                    view.reports.iter().map(|report| driver_key(&report.name)).collect();
                for plugin in self.known(Family::Driver).iter().filter(|plugin| !present.contains(plugin)) {
                    self.withdrawn(plugin, cx);
                }
                view.reports.iter().for_each(|report| self.note_driver(report, cx));
            }
            FeedItem::Change { news: DriversNews::Reported(report) | DriversNews::Left(report), .. } => {
                self.note_driver(report, cx);
            }
            // Events of tasks are not offers; after a lag comes a snapshot.
            FeedItem::Change {
                news: DriversNews::DeadLetters { .. } | DriversNews::EventsInterrupted { .. },
                ..
            }
            | FeedItem::Lagged { .. } => {}
        }
    }

    fn note_driver(&mut self, report: &DriverReport, cx: &mut StepContext<Self>) {
        let offer = Offer::of_driver(report);
        match (report.health, &self.phase) {
            (DriverHealth::Undetected | DriverHealth::Gone, _) => self.withdrawn(&offer.plugin, cx),
            // It had answered, and is being restarted.
            (DriverHealth::NoAnswerYet, Phase::Published { states, .. })
                if states.get(&offer.plugin).is_some_and(|s| s.offer().health != Health::Starting) =>
            {
                self.left(&offer.plugin, cx);
                self.reported(offer, cx);
            }
            (DriverHealth::NoAnswerYet | DriverHealth::Healthy | DriverHealth::Unhealthy, _) => {
                self.reported(offer, cx);
            }
        }
    }

    /// It is no longer offered, and no successor is awaited.
    fn withdrawn(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        match &mut self.phase {
            Phase::Gathering { reports, .. } => {
                reports.remove(plugin);
            }
            Phase::Published { .. } => self.remove_now(plugin, cx),
        }
    }
}
