//! Tracks the allocations that the first wait is for, for the laws.

use std::collections::BTreeSet;

use callboard_actors::allocations::{AllocationStatus, AllocationsNews};
use callboard_actors::instances::{InstanceReport, InstancesView};
use callboard_actors::inventory::{AllocationsItem, Expected, InventoryOptions};
use callboard_actors::shell::FeedItem;
use callboard_actors::vocabulary::{Health, PluginKey, Timestamp};

#[derive(Debug, Clone, Hash)]
pub(super) struct Awaited {
    expected: BTreeSet<Expected>,
    answered: BTreeSet<Expected>,
    /// The allocations that answered or failed in this step, in the middle of which the first inventory may be published.
    met: BTreeSet<Expected>,
}

impl Awaited {
    pub(super) fn new(options: &InventoryOptions, now: Timestamp) -> Self {
        let is_expecting = now < options.expected_until;
        let expected = options.expected.iter().filter(|_| is_expecting).cloned().collect();
        Self { expected, answered: BTreeSet::new(), met: BTreeSet::new() }
    }

    pub(super) fn next_step(&mut self) {
        self.met.clear();
    }

    pub(super) fn heard(&mut self, report: &InstanceReport) {
        let who = (report.plugin.clone(), report.allocation.clone());
        match report.health {
            Health::Healthy | Health::Unhealthy { .. } => {
                self.met.insert(who.clone());
                self.answered.insert(who);
            }
            Health::Starting | Health::Gone => {
                self.answered.remove(&who);
            }
        }
    }

    pub(super) fn heard_all(&mut self, view: &InstancesView) {
        self.answered.clear();
        view.reports.iter().chain(&view.standby).for_each(|report| self.heard(report));
    }

    pub(super) fn heard_of_allocations(
        &mut self,
        options: &InventoryOptions,
        now: Timestamp,
        items: &[AllocationsItem],
    ) {
        for item in items {
            match item {
                FeedItem::Snapshot { view, .. } if now < options.expected_until => {
                    view.allocations.iter().for_each(|status| self.expect(status));
                }
                FeedItem::Change { news: AllocationsNews::Changed(status), .. }
                    if now < options.expected_until =>
                {
                    self.expect(status);
                }
                FeedItem::Change {
                    news: AllocationsNews::Gone(failed) | AllocationsNews::Refused { allocation: failed, .. },
                    ..
                } => {
                    let (of_it, others) = std::mem::take(&mut self.expected)
                        .into_iter()
                        .partition::<BTreeSet<_>, _>(|(_, allocation)| allocation == failed);
                    self.expected = others;
                    self.met.extend(of_it);
                }
                _ => {}
            }
        }
    }

    fn expect(&mut self, status: &AllocationStatus) {
        let types = status.role.plugin_types().iter();
        let plugins = types.map(|kind| PluginKey::new(*kind, status.plugin.clone()));
        self.expected.extend(plugins.map(|plugin| (plugin, status.allocation.clone())));
    }

    /// The allocations that have neither answered nor failed.
    pub(super) fn outstanding(&self) -> Vec<Expected> {
        let is_met = |who: &&Expected| self.answered.contains(*who) || self.met.contains(*who);
        self.expected.iter().filter(|who| !is_met(who)).cloned().collect()
    }
}
