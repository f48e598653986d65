//! Counts the volumes of each plugin in use on this node, as the owner of the volumes reports them.

use std::collections::{BTreeMap, BTreeSet};

use super::messages::InventoryNews;
use super::state::{Inventory, Phase, VolumesItem};
use crate::FeedItem;
use crate::kernel::StepContext;
use crate::vocabulary::{PluginName, PluginType};
use crate::volume::VolumeKey;
use crate::volumes::{VolumeReport, VolumesNews, VolumesView};

/// The volumes that are in use.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct VolumesInUse {
    /// Each with its plugin.
    volumes: BTreeMap<VolumeKey, PluginName>,
    /// The number for each plugin; complete, and without zeros.
    pub(super) counts: BTreeMap<PluginName, u64>,
}

impl VolumesInUse {
    fn of(view: &VolumesView) -> Self {
        let mut all = Self::default();
        view.volumes.iter().for_each(|report| {
            all.note(report);
        });
        all
    }

    /// Records the present state of a volume. Returns its plugin if the plugin's count has changed.
    fn note(&mut self, report: &VolumeReport) -> Option<PluginName> {
        let spec = &report.volume.spec;
        if !report.is_on_node() {
            return self.forget(&spec.key);
        }
        // The plugin of a volume that is in use does not change.
        let is_new = self.volumes.insert(spec.key.clone(), spec.plugin.clone()).is_none();
        is_new.then(|| {
            *self.counts.entry(spec.plugin.clone()).or_default() += 1;
            spec.plugin.clone()
        })
    }

    fn forget(&mut self, key: &VolumeKey) -> Option<PluginName> {
        let plugin = self.volumes.remove(key)?;
        let count = self.counts.get_mut(&plugin)?;
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&plugin);
        }
        Some(plugin)
    }

    fn count(&self, plugin: &PluginName) -> u64 {
        self.counts.get(plugin).copied().unwrap_or_default()
    }
}

impl Inventory {
    pub(super) fn volumes_heard(&mut self, item: &VolumesItem, cx: &mut StepContext<Self>) {
        match (item, &mut self.volumes) {
            (FeedItem::Snapshot { view, .. }, _) => self.volumes_replaced(view, cx),
            (FeedItem::Change { news: VolumesNews::Changed(report), .. }, Some(volumes)) => {
                let changed = volumes.note(report);
                self.tell_use(changed, cx);
            }
            (FeedItem::Change { news: VolumesNews::Forgotten(key), .. }, Some(volumes)) => {
                let changed = volumes.forget(key);
                self.tell_use(changed, cx);
            }
            // None of these changes the volumes in use, and after a lag comes a snapshot, which includes any change before it.
            (
                FeedItem::Change {
                    news:
                        VolumesNews::Changed(_)
                        | VolumesNews::Forgotten(_)
                        | VolumesNews::ClaimFailed { .. }
                        | VolumesNews::OrderFailed { .. }
                        | VolumesNews::Forced(_),
                    ..
                }
                | FeedItem::Lagged { .. },
                _,
            ) => {}
        }
    }

    fn volumes_replaced(&mut self, view: &VolumesView, cx: &mut StepContext<Self>) {
        let now = VolumesInUse::of(view);
        // That no volume of a plugin is in use is published too, if it was unknown before.
        let unknown = if self.volumes.is_none() { self.offered_nodes() } else { BTreeSet::new() };
        let before = self.volumes.take().unwrap_or_default();
        let plugins = before.counts.keys().chain(now.counts.keys());
        let mut changed: BTreeSet<_> =
            plugins.filter(|plugin| before.count(plugin) != now.count(plugin)).cloned().collect();
        changed.extend(unknown);
        self.volumes = Some(now);
        self.tell_use(changed, cx);
    }

    /// The plugins of which a node half is offered.
    fn offered_nodes(&self) -> BTreeSet<PluginName> {
        let Phase::Published { states, .. } = &self.phase else { return BTreeSet::new() };
        let nodes = states.keys().filter(|plugin| plugin.plugin_type == PluginType::CsiNode);
        nodes.map(|plugin| plugin.name.clone()).collect()
    }

    /// Publishes the counts of these plugins, unless the first fingerprints are still gathered: then they are published after those.
    fn tell_use(&self, plugins: impl IntoIterator<Item = PluginName>, cx: &mut StepContext<Self>) {
        let (Phase::Published { .. }, Some(volumes)) = (&self.phase, &self.volumes) else { return };
        for plugin in plugins {
            let in_use = volumes.count(&plugin);
            cx.publish(InventoryNews::VolumesUsed { plugin, in_use });
        }
    }

    /// Publishes all counts, after the first fingerprints.
    pub(super) fn tell_all_use(&self, cx: &mut StepContext<Self>) {
        let plugins = self.volumes.iter().flat_map(|volumes| volumes.counts.keys().cloned());
        self.tell_use(plugins, cx);
    }
}
