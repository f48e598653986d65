//! Determines which allocations are expected: those of the configuration, and those being prepared. The first wait is for them.
//! An allocation that was stopped permanently is no longer waited for.

use super::messages::{Expected, InventoryNews};
use super::state::{AllocationsItem, Inventory, InventoryTimer, OfferState, Phase};
use crate::FeedItem;
use crate::allocations::{AllocationStatus, AllocationsNews, AllocationsView};
use crate::instances::InstanceReport;
use crate::kernel::StepContext;
use crate::vocabulary::{AllocationId, Health, Moment, PluginKey};

impl Inventory {
    pub(super) fn allocations_heard(&mut self, item: &AllocationsItem, cx: &mut StepContext<Self>) {
        match item {
            FeedItem::Snapshot { view, .. } => self.allocations_replaced(view, cx),
            FeedItem::Change { news: AllocationsNews::Changed(status), .. } => {
                self.note_allocation(cx.moment(), status)
            }
            FeedItem::Change {
                news: AllocationsNews::Gone(allocation) | AllocationsNews::Refused { allocation, .. },
                ..
            } => self.allocation_gone(allocation, cx),
            // After a lag comes a snapshot.
            FeedItem::Change {
                news: AllocationsNews::Task(_) | AllocationsNews::RestartRequested { .. },
                ..
            }
            | FeedItem::Lagged { .. } => {}
        }
    }

    fn allocations_replaced(&mut self, view: &AllocationsView, cx: &mut StepContext<Self>) {
        let is_there =
            |allocation: &AllocationId| view.allocations.iter().any(|one| one.allocation == *allocation);
        let gone: Vec<_> =
            self.allocations.keys().filter(|allocation| !is_there(allocation)).cloned().collect();
        view.allocations.iter().for_each(|status| self.note_allocation(cx.moment(), status));
        gone.iter().for_each(|allocation| self.allocation_gone(allocation, cx));
    }

    fn note_allocation(&mut self, moment: Moment, status: &AllocationStatus) {
        let types = status.role.plugin_types().iter();
        let plugins: Vec<_> = types.map(|kind| PluginKey::new(*kind, status.plugin.clone())).collect();
        plugins.iter().for_each(|plugin| {
            self.stopped.remove(plugin);
        });
        if let Phase::Gathering { expected, .. } = &mut self.phase
            && moment.now < self.options.expected_until
        {
            expected.extend(plugins.iter().map(|plugin| (plugin.clone(), status.allocation.clone())));
        }
        self.allocations.insert(status.allocation.clone(), plugins);
    }

    /// It was stopped, or could not be prepared: neither it nor its plugins are expected, unless another allocation serves
    /// the plugins.
    fn allocation_gone(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        if let Phase::Gathering { expected, awaited, .. } = &mut self.phase {
            expected.retain(|(plugin, other)| {
                let has_failed = other == allocation;
                if has_failed {
                    awaited.insert(plugin.clone());
                }
                !has_failed
            });
        }
        for plugin in self.allocations.remove(allocation).unwrap_or_default() {
            if self.allocations.values().flatten().any(|other| *other == plugin) {
                continue;
            }
            let Phase::Published { states, .. } = &self.phase else {
                self.stopped.insert(plugin);
                continue;
            };
            match states.get(&plugin) {
                Some(OfferState::Restarting { successor: None, .. }) => self.remove_now(&plugin, cx),
                // It leaves soon.
                Some(OfferState::Current(_) | OfferState::Restarting { .. }) => {
                    self.stopped.insert(plugin);
                }
                None => {}
            }
        }
        self.publish_if_known(cx);
    }

    /// No successor is expected: the offer is removed without a grace period.
    pub(super) fn remove_now(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        let Phase::Published { states, .. } = &mut self.phase else { return };
        self.stopped.remove(plugin);
        if let Some(state) = states.remove(plugin) {
            if matches!(state, OfferState::Restarting { .. }) {
                cx.cancel_timer(InventoryTimer::Grace(plugin.clone()));
            }
            cx.publish(InventoryNews::Removed(state.last_offer()));
        }
    }

    /// Records whether the allocation of this report has answered.
    pub(super) fn note_answer(&mut self, report: &InstanceReport) {
        let Phase::Gathering { answered, .. } = &mut self.phase else { return };
        let answer = (report.plugin.clone(), report.allocation.clone());
        match report.health {
            Health::Healthy | Health::Unhealthy { .. } => answered.insert(answer),
            Health::Starting | Health::Gone => answered.remove(&answer),
        };
    }

    /// The expected allocations that have not answered.
    pub(super) fn missing(&self) -> Vec<Expected> {
        match &self.phase {
            Phase::Gathering { expected, answered, .. } => expected.difference(answered).cloned().collect(),
            Phase::Published { .. } => Vec::new(),
        }
    }
}
