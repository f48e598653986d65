//! Stores values by registration, grouped by plugin: a step mostly concerns one plugin.

use std::collections::BTreeMap;

use callboard_actors::vocabulary::{AllocationId, PluginKey};

use super::model::Place;

#[derive(Debug, Clone, Hash)]
pub(super) struct ByPlace<T>(BTreeMap<PluginKey, BTreeMap<AllocationId, T>>);

impl<T> ByPlace<T> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn get(&self, (plugin, allocation): &Place) -> Option<&T> {
        self.0.get(plugin)?.get(allocation)
    }

    pub(super) fn insert(&mut self, (plugin, allocation): Place, value: T) {
        self.0.entry(plugin).or_default().insert(allocation, value);
    }

    pub(super) fn remove(&mut self, (plugin, allocation): &Place) -> Option<T> {
        let of_plugin = self.0.get_mut(plugin)?;
        let removed = of_plugin.remove(allocation);
        if of_plugin.is_empty() {
            self.0.remove(plugin);
        }
        removed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.0.values_mut().for_each(|of_plugin| of_plugin.retain(|_, value| keeps(value)));
        self.0.retain(|_, of_plugin| !of_plugin.is_empty());
    }

    /// The first value for which this holds.
    pub(super) fn find_mut(&mut self, holds: impl Fn(&T) -> bool) -> Option<(Place, &mut T)> {
        for (plugin, of_plugin) in &mut self.0 {
            for (allocation, value) in of_plugin {
                if holds(value) {
                    return Some(((plugin.clone(), allocation.clone()), value));
                }
            }
        }
        None
    }

    /// All values, by plugin.
    pub(super) const fn by_plugin(&self) -> &BTreeMap<PluginKey, BTreeMap<AllocationId, T>> {
        &self.0
    }
}
