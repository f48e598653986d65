//! Tracks callers that wait for a plugin (R7).

use std::collections::BTreeMap;

use crate::kernel::AskId;
use crate::vocabulary::{PluginKey, Timestamp};

/// The waiting callers by plugin. The machine that owns it enforces the limit.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Waiting {
    by_plugin: BTreeMap<PluginKey, Vec<AskId>>,
    by_id: BTreeMap<AskId, (PluginKey, Timestamp)>,
}

impl Waiting {
    pub(super) fn add(&mut self, id: AskId, since: Timestamp, plugin: PluginKey) {
        self.by_plugin.entry(plugin.clone()).or_default().push(id);
        self.by_id.insert(id, (plugin, since));
    }

    /// The plugin is active: removes all its waiting callers, in the order in which they asked.
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

    /// The timeout of a caller: removes it, and returns its plugin and the start of its wait.
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
