//! The decisions of the inventory.

use std::collections::{BTreeMap, BTreeSet};

use super::messages::{FirstSummary, InventoryAnswer, InventoryAsk, InventoryNews, InventoryView, Offer};
use super::state::{
    InstancesItem, Inventory, InventoryCall, InventoryConfig, InventoryOutcome, InventoryTimer, OfferState,
    Phase, Source,
};
use crate::FeedItem;
use crate::drivers::DriverSummary;
use crate::instances::{InstancesNews, InstancesView};
use crate::kernel::{AskId, Input, Machine, Never, StepContext};
use crate::vocabulary::{Family, Health, Moment, PluginKey};

impl Machine for Inventory {
    const KIND: &'static str = "inventory";
    type Config = InventoryConfig;
    type Image = ();
    type Ask = InventoryAsk;
    type Answer = InventoryAnswer;
    type Call = InventoryCall;
    type Outcome = InventoryOutcome;
    type Timer = InventoryTimer;
    type Change = Never;
    type News = InventoryNews;
    type View = InventoryView;

    fn restore(config: &InventoryConfig, (): (), moment: Moment) -> Self {
        let InventoryConfig { options, follows } = config;
        let drivers = (!follows.contains(&Source::Drivers)).then(DriverSummary::default);
        let is_expecting = moment.now < options.expected_until;
        let expected = options.expected.iter().filter(|_| is_expecting).cloned().collect();
        Self {
            options: options.clone(),
            follows: follows.clone(),
            phase: Phase::Gathering {
                reports: BTreeMap::new(),
                awaited: BTreeSet::new(),
                expected,
                answered: BTreeSet::new(),
                is_settled: false,
                drivers,
            },
            waiting: Vec::new(),
            first_until: moment.now + options.first_wait,
            allocations: BTreeMap::new(),
            stopped: BTreeSet::new(),
            volumes: None,
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {
                cx.start_timer(InventoryTimer::FirstWait, cx.now() + self.options.first_wait);
                self.follow(Source::Instances, true, cx);
                self.follow(Source::Allocations, true, cx);
                self.ask_drivers(cx);
                self.follow(Source::Volumes, true, cx);
            }
            Input::Asked { id, ask: InventoryAsk::TakeInventory(_), .. } => {
                cx.reply(*id, InventoryAnswer::TakeInventory(self.view()));
            }
            Input::Asked { id, ask: InventoryAsk::AwaitFirst(_), .. } => self.first_asked(*id, cx),
            Input::Returned { call: InventoryCall::Follow { source, .. }, outcome, .. } => {
                self.followed(*source, outcome, cx);
            }
            Input::Returned { call: InventoryCall::AwaitDrivers { .. }, outcome, .. } => {
                self.drivers_told(outcome, cx);
            }
            Input::Elapsed(InventoryTimer::Refollow(source)) => self.follow(*source, true, cx),
            Input::Elapsed(InventoryTimer::AskDrivers) => self.ask_drivers(cx),
            Input::Elapsed(InventoryTimer::FirstWait) => self.publish_what_is_known(cx),
            Input::Elapsed(InventoryTimer::Grace(plugin)) => self.grace_ended(plugin, cx),
            Input::StopRequested(_) => {
                self.answer_first(cx);
                cx.stop();
            }
        }
    }

    fn view(&self) -> InventoryView {
        match &self.phase {
            Phase::Gathering { .. } => InventoryView::default(),
            Phase::Published { summary, states } => InventoryView {
                offers: states.values().map(|state| state.offer().clone()).collect(),
                first: Some(summary.clone()),
                volumes_in_use: self.volumes.as_ref().map(|volumes| volumes.counts.clone()),
            },
        }
    }
}

impl Inventory {
    // === The instances' feed ===

    pub(super) fn heard(&mut self, item: &InstancesItem, cx: &mut StepContext<Self>) {
        match item {
            FeedItem::Snapshot { view, .. } => self.replaced(view, cx),
            FeedItem::Change { news: InstancesNews::Expected(plugins), .. } => self.expect_also(plugins),
            FeedItem::Change { news: InstancesNews::Reported(report), .. } => {
                self.note_answer(report);
                self.reported(Offer::of(report), cx);
            }
            FeedItem::Change { news: InstancesNews::Left(report), .. } => {
                self.note_answer(report);
                self.left(&report.plugin, cx);
            }
            FeedItem::Change { news: InstancesNews::Settled, .. } => self.settled(),
            // Only the active registration is offered.
            FeedItem::Change { news: InstancesNews::Standby(report), .. } => self.note_answer(report),
            // After a lag comes a snapshot.
            FeedItem::Lagged { .. } => {}
        }
        self.publish_if_known(cx);
    }

    /// Replaces all that was received before by a snapshot: plugins that are missing in it have left.
    fn replaced(&mut self, view: &InstancesView, cx: &mut StepContext<Self>) {
        let present: BTreeSet<&PluginKey> = view.reports.iter().map(|report| &report.plugin).collect();
        for plugin in self.known(Family::Csi).iter().filter(|plugin| !present.contains(plugin)) {
            self.left(plugin, cx);
        }
        if let Phase::Gathering { answered, .. } = &mut self.phase {
            answered.clear();
        }
        view.reports.iter().chain(&view.standby).for_each(|report| self.note_answer(report));
        for report in &view.reports {
            self.reported(Offer::of(report), cx);
        }
        self.expect_also(&view.expected);
        if view.settled {
            self.settled();
        }
    }

    // === The first fingerprints ===

    fn expect_also(&mut self, plugins: &[PluginKey]) {
        match &mut self.phase {
            Phase::Gathering { awaited, .. } => awaited.extend(plugins.iter().cloned()),
            // The first wait is over.
            Phase::Published { .. } => {}
        }
    }

    /// Every plugin is known: a plugin that was awaited and has no report is not there.
    fn settled(&mut self) {
        if let Phase::Gathering { is_settled, .. } = &mut self.phase {
            *is_settled = true;
        }
    }

    pub(super) fn publish_if_known(&mut self, cx: &mut StepContext<Self>) {
        if let Phase::Gathering { is_settled: true, drivers: Some(_), .. } = &self.phase
            && self.missing().is_empty()
        {
            self.publish_what_is_known(cx);
        }
    }

    /// An awaited plugin without a report is not there, or has not answered yet if the wait timed out. The state of drivers
    /// arrives at the end of the same wait.
    pub(super) fn publish_what_is_known(&mut self, cx: &mut StepContext<Self>) {
        let missing = self.missing();
        if let Phase::Gathering { reports, awaited, expected, is_settled, drivers: Some(drivers), .. } =
            &self.phase
        {
            let mut summary = FirstSummary::of(reports.values());
            let has_no_report = |plugin: &&PluginKey| !reports.contains_key(plugin);
            let due: BTreeSet<_> = expected.iter().map(|(plugin, _)| plugin).chain(awaited).collect();
            for plugin in due.into_iter().filter(has_no_report) {
                let is_expected = missing.iter().any(|(expected, _)| expected == plugin);
                let may_come = is_expected || !is_settled && !self.stopped.contains(plugin);
                let group = if may_come { &mut summary.no_answer } else { &mut summary.undetected };
                group.push(plugin.clone());
            }
            summary.missing = missing;
            let summary = summary.with_drivers(drivers, |plugin| reports.contains_key(plugin));
            self.publish_first(summary, cx);
        }
    }

    fn publish_first(&mut self, summary: FirstSummary, cx: &mut StepContext<Self>) {
        let mut states = BTreeMap::new();
        if let Phase::Gathering { reports, .. } = &self.phase {
            let offers = reports.iter().map(|(key, offer)| (key.clone(), OfferState::Current(offer.clone())));
            states.extend(offers);
        }
        self.stopped.retain(|plugin| states.contains_key(plugin));
        let offers = states.values().map(|state| state.offer().clone()).collect();
        cx.cancel_timer(InventoryTimer::FirstWait);
        cx.cancel_timer(InventoryTimer::AskDrivers);
        cx.publish(InventoryNews::First(offers, summary.clone()));
        self.phase = Phase::Published { summary, states };
        self.tell_all_use(cx);
        self.answer_first(cx);
    }

    fn first_asked(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        match &self.phase {
            Phase::Gathering { .. } if self.waiting.len() < self.options.waiting_max => self.waiting.push(id),
            Phase::Gathering { .. } | Phase::Published { .. } => {
                cx.reply(id, InventoryAnswer::AwaitFirst(self.view()));
            }
        }
    }

    fn answer_first(&mut self, cx: &mut StepContext<Self>) {
        let view = self.view();
        for id in self.waiting.drain(..) {
            cx.reply(id, InventoryAnswer::AwaitFirst(view.clone()));
        }
    }

    // === One plugin ===

    /// The known plugins of this family.
    pub(super) fn known(&self, family: Family) -> Vec<PluginKey> {
        let is_of_it = |plugin: &&PluginKey| plugin.plugin_type.family() == family;
        match &self.phase {
            Phase::Gathering { reports, .. } => reports.keys().filter(is_of_it).cloned().collect(),
            Phase::Published { states, .. } => states.keys().filter(is_of_it).cloned().collect(),
        }
    }

    pub(super) fn reported(&mut self, offer: Offer, cx: &mut StepContext<Self>) {
        if offer.health == Health::Gone {
            return self.left(&offer.plugin, cx);
        }
        match &mut self.phase {
            Phase::Gathering { reports, .. } => {
                reports.insert(offer.plugin.clone(), offer);
            }
            Phase::Published { states, .. } => match states.get_mut(&offer.plugin) {
                Some(state) => state.renew(offer, cx),
                None => {
                    cx.publish(InventoryNews::Changed(offer.clone()));
                    states.insert(offer.plugin.clone(), OfferState::Current(offer));
                }
            },
        }
    }

    /// Records that a plugin's instance has left, or is retiring. If its offer was published, its grace period begins.
    pub(super) fn left(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        match &mut self.phase {
            Phase::Gathering { reports, .. } => {
                reports.remove(plugin);
            }
            Phase::Published { states, .. } => match states.get_mut(plugin) {
                Some(OfferState::Current(_)) if self.stopped.contains(plugin) => self.remove_now(plugin, cx),
                Some(state @ OfferState::Current(_)) => {
                    let told = Offer { restarting: true, since: cx.now(), ..state.offer().clone() };
                    let end = cx.now() + self.options.restart_grace_of(&told);
                    *state = OfferState::Restarting { told, successor: None };
                    cx.start_timer(InventoryTimer::Grace(plugin.clone()), end);
                }
                Some(OfferState::Restarting { .. }) if self.stopped.contains(plugin) => {
                    self.remove_now(plugin, cx);
                }
                // The grace period continues unchanged.
                Some(OfferState::Restarting { successor, .. }) => *successor = None,
                None => {}
            },
        }
    }

    fn grace_ended(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        let Phase::Published { states, .. } = &mut self.phase else { return };
        match states.remove(plugin) {
            Some(OfferState::Restarting { told, successor: Some(offer) }) => {
                if !offer.equals(&told) {
                    cx.publish(InventoryNews::Changed(offer.clone()));
                }
                states.insert(plugin.clone(), OfferState::Current(offer));
            }
            Some(state @ OfferState::Restarting { successor: None, .. }) => {
                cx.publish(InventoryNews::Removed(state.last_offer()));
            }
            // A successor came in time.
            Some(current @ OfferState::Current(_)) => {
                states.insert(plugin.clone(), current);
            }
            None => {}
        }
    }
}

impl OfferState {
    /// Records the offer of a plugin that has not left, and publishes what counts.
    fn renew(&mut self, offer: Offer, cx: &mut StepContext<Inventory>) {
        match (&mut *self, &offer.health) {
            // Within the grace period only a healthy successor is published.
            (
                Self::Restarting { successor, .. },
                Health::Starting | Health::Unhealthy { .. } | Health::Gone,
            ) => *successor = Some(offer),
            (Self::Restarting { .. }, Health::Healthy) | (Self::Current(_), _) => {
                if matches!(self, Self::Restarting { .. }) {
                    cx.cancel_timer(InventoryTimer::Grace(offer.plugin.clone()));
                }
                if !offer.equals(self.offer()) {
                    cx.publish(InventoryNews::Changed(offer.clone()));
                }
                *self = Self::Current(offer);
            }
        }
    }
}
