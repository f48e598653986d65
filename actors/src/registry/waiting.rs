//! Those who wait for a plugin (R7).

use std::collections::{BTreeMap, HashMap};

use crate::shell::AskId;
use crate::vocabulary::{PluginKey, Timestamp};

/// Who waits for what. Bounded by the machine that holds it.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    by_plugin: HashMap<PluginKey, Vec<AskId>>,
    by_id: BTreeMap<AskId, (PluginKey, Timestamp)>,
}

impl Waiting {
    pub(super) fn add(&mut self, id: AskId, since: Timestamp, plugin: PluginKey) {
        self.by_plugin.entry(plugin.clone()).or_default().push(id);
        self.by_id.insert(id, (plugin, since));
    }

    /// The plugin has come: takes all who waited for it, first come first.
    pub(super) fn come(&mut self, plugin: &PluginKey) -> Vec<AskId> {
        if self.by_id.is_empty() {
            return Vec::new();
        }
        let ids = self.by_plugin.remove(plugin).unwrap_or_default();
        ids.iter().for_each(|id| {
            self.by_id.remove(id);
        });
        ids
    }

    /// Somebody has waited long enough: for what, and since when.
    pub(super) fn give_up(&mut self, id: AskId) -> Option<(PluginKey, Timestamp)> {
        let (plugin, since) = self.by_id.remove(&id)?;
        if let Some(ids) = self.by_plugin.get_mut(&plugin) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_plugin.remove(&plugin);
            }
        }
        Some((plugin, since))
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}
