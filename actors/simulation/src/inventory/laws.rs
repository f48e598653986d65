//! The laws of the inventory.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::driver::DriverReport;
use callboard_actors::drivers::{DriversNews, DriversView};
use callboard_actors::instances::{InstanceReport, InstancesNews, InstancesView};
use callboard_actors::inventory::{
    DriversItem, FirstSummary, InstancesItem, Inventory, InventoryAnswer, InventoryNews, InventoryOptions,
    InventoryOutcome, InventoryTimer, Offer,
};
use callboard_actors::shell::{Effect, FeedItem, Input};
use callboard_actors::vocabulary::{Health, Moment, PluginKey, PluginType, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::awaited::Awaited;

/// Observes every step of the inventory.
#[derive(Debug, Clone, Hash)]
pub struct InventoryLaws {
    options: InventoryOptions,
    begun: Timestamp,
    has_told_first: bool,
    offers: BTreeMap<PluginKey, Offer>,
    /// The plugins that were registered at the start, as the instances report.
    expected: BTreeSet<PluginKey>,
    /// Whether the instances know the state of all of them. The first inventory may be published then, in the middle of a step.
    is_settled: bool,
    /// The plugins that this step adds to them after that.
    expected_late: BTreeSet<PluginKey>,
    allocations: Awaited,
    /// The time since which a plugin has been away, until it serves again.
    away: BTreeMap<PluginKey, Timestamp>,
    /// The drivers that were removed, or no longer found anything to drive, by the inputs of this step: their offers end at
    /// once. True where that is the last report.
    withdrawn: BTreeMap<PluginKey, bool>,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl InventoryLaws {
    /// No step yet.
    #[must_use]
    pub fn new(options: InventoryOptions) -> Self {
        let begun = Timestamp::from_epoch(std::time::Duration::ZERO);
        Self {
            allocations: Awaited::new(&options, begun),
            options,
            begun,
            has_told_first: false,
            offers: BTreeMap::new(),
            expected: BTreeSet::new(),
            is_settled: false,
            expected_late: BTreeSet::new(),
            away: BTreeMap::new(),
            withdrawn: BTreeMap::new(),
            verdict: Verdict::NONE,
        }
    }

    // === Its notifications ===

    fn heard(&mut self, moment: Moment, items: &[InstancesItem], is_first_told: bool) {
        for item in items {
            match item {
                FeedItem::Snapshot { view, .. } => self.heard_all(moment, view, is_first_told),
                FeedItem::Change { news: InstancesNews::Expected(plugins), .. } => self.expect(plugins),
                FeedItem::Change { news: InstancesNews::Reported(report), .. } => {
                    self.allocations.heard(report);
                    self.heard_of(moment, report, is_first_told);
                }
                FeedItem::Change { news: InstancesNews::Standby(report), .. } => {
                    self.allocations.heard(report);
                }
                FeedItem::Change { news: InstancesNews::Left(report), .. } => {
                    self.allocations.heard(report);
                    self.away.entry(report.plugin.clone()).or_insert(moment.now);
                }
                FeedItem::Change { news: InstancesNews::Settled, .. } => self.is_settled = true,
                FeedItem::Lagged { .. } => {}
            }
        }
    }

    fn expect(&mut self, plugins: &[PluginKey]) {
        let expected = if self.is_settled { &mut self.expected_late } else { &mut self.expected };
        expected.extend(plugins.iter().cloned());
    }

    fn heard_all(&mut self, moment: Moment, view: &InstancesView, is_first_told: bool) {
        self.expect(&view.expected);
        let is_missing = |plugin: &&PluginKey| {
            plugin.plugin_type.is_csi() && view.reports.iter().all(|report| report.plugin != **plugin)
        };
        for plugin in self.offers.keys().filter(is_missing) {
            self.away.entry(plugin.clone()).or_insert(moment.now);
        }
        self.allocations.heard_all(view);
        view.reports.iter().for_each(|report| self.heard_of(moment, report, is_first_told));
        self.is_settled |= view.settled;
    }

    /// A plugin that is away is back when it serves; before the first fingerprints, with any report.
    fn heard_of(&mut self, moment: Moment, report: &InstanceReport, is_first_told: bool) {
        match report.health {
            Health::Gone => {
                self.away.entry(report.plugin.clone()).or_insert(moment.now);
            }
            Health::Healthy => {
                self.away.remove(&report.plugin);
            }
            Health::Starting | Health::Unhealthy { .. } if !is_first_told => {
                self.away.remove(&report.plugin);
            }
            // A successor that does not serve yet does not end the grace.
            Health::Starting | Health::Unhealthy { .. } => {}
        }
    }

    fn heard_of_drivers(&mut self, items: &[DriversItem]) {
        for item in items {
            match item {
                FeedItem::Snapshot { view: DriversView { reports }, .. } => {
                    let is_missing = |plugin: &&PluginKey| {
                        plugin.plugin_type == PluginType::Driver
                            && reports.iter().all(|report| Offer::of_driver(report).plugin != **plugin)
                    };
                    let missing = self.offers.keys().filter(is_missing);
                    self.withdrawn.extend(missing.map(|plugin| (plugin.clone(), true)));
                    reports.iter().for_each(|report| self.heard_of_driver(report));
                }
                FeedItem::Change {
                    news: DriversNews::Reported(report) | DriversNews::Left(report), ..
                } => self.heard_of_driver(report),
                FeedItem::Change { .. } | FeedItem::Lagged { .. } => {}
            }
        }
    }

    fn heard_of_driver(&mut self, report: &DriverReport) {
        let offer = Offer::of_driver(report);
        if offer.health == Health::Gone {
            self.withdrawn.insert(offer.plugin, true);
        } else if let Some(is_last) = self.withdrawn.get_mut(&offer.plugin) {
            *is_last = false;
        }
    }

    // === Its publications ===

    fn told(&mut self, moment: Moment, news: &InventoryNews) {
        match news {
            InventoryNews::First(offers, summary) => self.told_first(moment, offers, summary),
            InventoryNews::Changed(offer) => self.told_changed(offer),
            InventoryNews::Removed(offer) => self.told_removed(moment, offer),
            // The scene has no volumes.
            InventoryNews::VolumesUsed { .. } => {}
        }
    }

    fn told_changed(&mut self, offer: &Offer) {
        let known = self.offers.insert(offer.plugin.clone(), offer.clone());
        if known.as_ref() == Some(offer) {
            self.verdict.violation(Law::Scl5, || format!("the same is told of {} twice", offer.plugin));
        }
        if known.is_some_and(|known| known.equals(offer)) {
            self.verdict.violation(Law::Hlt8, || {
                format!("{} serves as it did before, and that is told", offer.plugin)
            });
        }
        self.must_come_after_first(&offer.plugin);
    }

    fn told_removed(&mut self, moment: Moment, offer: &Offer) {
        if self.offers.remove(&offer.plugin).is_none() {
            self.verdict.violation(Law::N1, || format!("{} is removed and was not offered", offer.plugin));
        }
        if self.withdrawn.contains_key(&offer.plugin) {
            return self.must_come_after_first(&offer.plugin);
        }
        match self.away.remove(&offer.plugin) {
            Some(since) if moment.now.since(since) >= self.options.restart_grace_of(offer) => {}
            Some(since) => self.verdict.violation(Law::Hlt8, || {
                format!("{} is removed after {:?} already", offer.plugin, moment.now.since(since))
            }),
            None => self.verdict.violation(Law::Hlt8, || format!("{} is removed, and serves", offer.plugin)),
        }
        self.must_come_after_first(&offer.plugin);
    }

    fn must_come_after_first(&mut self, plugin: &PluginKey) {
        if !self.has_told_first {
            self.verdict
                .violation(Law::N1, || format!("word of {plugin} comes before the first fingerprints"));
        }
    }

    fn told_first(&mut self, moment: Moment, offers: &[Offer], summary: &FirstSummary) {
        if self.has_told_first {
            self.verdict.violation(Law::N1, || "the first fingerprints are told a second time".to_owned());
        }
        let waited = moment.now.since(self.begun);
        if waited > self.options.first_wait {
            self.verdict.violation(Law::N1, || format!("the first fingerprints come after {waited:?}"));
        }
        let outstanding = self.allocations.outstanding();
        if waited < self.options.first_wait && !outstanding.is_empty() {
            self.verdict
                .violation(Law::N1, || format!("the first is told, and {outstanding:?} is waited for"));
        }
        if !outstanding.iter().all(|who| summary.missing.contains(who)) {
            self.verdict
                .violation(Law::N2, || format!("{outstanding:?} is not named as missing: {summary:?}"));
        }
        let FirstSummary { healthy, unhealthy, undetected, no_answer, missing: _ } = summary;
        let unhealthy = unhealthy.iter().map(|(plugin, _)| plugin);
        let mut named: Vec<&PluginKey> =
            healthy.iter().chain(unhealthy).chain(undetected).chain(no_answer).collect();
        let count = named.len();
        named.sort_unstable();
        named.dedup();
        let is_named = |offer: &Offer| named.binary_search(&&offer.plugin).is_ok();
        let is_said = |plugin: &PluginKey| named.binary_search(&plugin).is_ok();
        let is_whole = self.expected.iter().all(is_said);
        if named.len() != count || !is_whole || !offers.iter().all(is_named) {
            self.verdict.violation(Law::N2, || {
                format!("the first summary does not name each plugin once: {summary:?}")
            });
        }
        self.has_told_first = true;
        self.offers = offers.iter().map(|offer| (offer.plugin.clone(), offer.clone())).collect();
    }

    fn answered(&mut self, answer: &InventoryAnswer) {
        let view = match answer {
            InventoryAnswer::TakeInventory(view) | InventoryAnswer::AwaitFirst(view) => view,
        };
        // A driver that is being restarted, or serves again as before, is shown, and that is not a change.
        let is_told = |(shown, told): (&Offer, &Offer)| {
            let Offer { restarting, generation, since, .. } = *told;
            Offer { restarting, generation, since, ..shown.clone() } == *told
        };
        let is_whole = view.offers.len() == self.offers.len();
        if self.has_told_first && !(is_whole && view.offers.iter().zip(self.offers.values()).all(is_told)) {
            self.verdict.violation(Law::N1, || "what is shown on request is not what was told".to_owned());
        }
    }
}

impl LawChecker<Inventory> for InventoryLaws {
    fn rebuilt(&mut self, moment: Moment, _machine: &Inventory) {
        let verdict = std::mem::take(&mut self.verdict);
        let allocations = Awaited::new(&self.options, moment.now);
        *self = Self { verdict, begun: moment.now, allocations, ..Self::new(self.options.clone()) };
    }

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Inventory>,
        effects: &[Effect<Inventory>],
        _machine: &Inventory,
    ) {
        self.allocations.next_step();
        if let Input::Returned { outcome: Ok(InventoryOutcome::Allocations(Ok(items))), .. } = input {
            self.allocations.heard_of_allocations(&self.options, moment.now, items);
        }
        if let Input::Returned { outcome: Ok(InventoryOutcome::Instances(Ok(items))), .. } = input {
            let is_first = |effect: &_| matches!(effect, Effect::Publish(InventoryNews::First(..)));
            let is_first_told = self.has_told_first || effects.iter().any(is_first);
            self.heard(moment, items, is_first_told);
        }
        if let Input::Returned { outcome: Ok(InventoryOutcome::Drivers(Ok(items))), .. } = input {
            self.heard_of_drivers(items);
        }
        for effect in effects {
            match effect {
                Effect::Publish(news) => self.told(moment, news),
                Effect::Reply(_, answer) => self.answered(answer),
                Effect::Call { .. } | Effect::StartTimer(..) | Effect::CancelTimer(_) | Effect::Stop(_) => {}
                Effect::Persist(_, never) => match *never {},
            }
        }
        self.expected.append(&mut self.expected_late);
        for (plugin, is_last) in std::mem::take(&mut self.withdrawn) {
            if is_last && self.offers.contains_key(&plugin) {
                self.verdict.violation(Law::Hlt8, || format!("{plugin} is withdrawn, and still offered"));
            }
        }
        // The absence of a plugin that has returned meanwhile is over, whatever it reports.
        if let Input::Elapsed(InventoryTimer::Grace(plugin)) = input {
            self.away.remove(plugin);
        }
    }

    fn panicked(&mut self, input: &Input<Inventory>) {
        self.verdict.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
