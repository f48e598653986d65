//! Decides whether the state of all plugins that were registered at the start is known.

use std::collections::{BTreeMap, BTreeSet};

use super::messages::InstancesNews;
use super::state::{Instances, Settling};
use crate::kernel::StepContext;
use crate::registry::Entry;
use crate::supervisor::ChildState;
use crate::vocabulary::{AllocationId, Health, PluginKey};

impl Instances {
    /// Applies the registry's snapshot. The first one defines the expected plugins; a later one shows which plugins have left
    /// meanwhile. Returns the plugins that may be settled now.
    pub(super) fn take_entries(
        &mut self,
        entries: &[Entry],
        cx: &mut StepContext<Self>,
    ) -> BTreeSet<PluginKey> {
        let mut present: BTreeMap<PluginKey, BTreeSet<AllocationId>> = BTreeMap::new();
        for entry in entries {
            let registration = &entry.registration;
            if registration.plugin.plugin_type.is_csi() {
                let allocations = present.entry(registration.plugin.clone()).or_default();
                allocations.insert(registration.allocation.clone());
            }
        }
        match &mut self.settling {
            Settling::Unknown if present.is_empty() => {
                self.settling = Settling::Settled;
                cx.publish(InstancesNews::Settled);
            }
            Settling::Unknown => {
                cx.publish(InstancesNews::Expected(present.keys().cloned().collect()));
                self.settling = Settling::Awaiting(present);
            }
            Settling::Awaiting(awaited) => {
                for (plugin, allocations) in &mut *awaited {
                    *allocations = present.remove(plugin).unwrap_or_default();
                }
                return awaited.keys().cloned().collect();
            }
            Settling::Settled => {}
        }
        BTreeSet::new()
    }

    pub(super) fn entry_came(&mut self, entry: &Entry) {
        if let Settling::Awaiting(awaited) = &mut self.settling
            && let Some(allocations) = awaited.get_mut(&entry.registration.plugin)
        {
            allocations.insert(entry.registration.allocation.clone());
        }
    }

    pub(super) fn entry_left(&mut self, entry: &Entry) -> Option<PluginKey> {
        let Settling::Awaiting(awaited) = &mut self.settling else { return None };
        awaited.get_mut(&entry.registration.plugin)?.remove(&entry.registration.allocation);
        Some(entry.registration.plugin.clone())
    }

    /// Removes a plugin from the expected ones if its state is known now.
    pub(super) fn settle(&mut self, plugin: &PluginKey, cx: &mut StepContext<Self>) {
        let is_known = self.is_known(plugin);
        let Settling::Awaiting(awaited) = &mut self.settling else { return };
        let has_left =
            awaited.get(plugin).is_some_and(BTreeSet::is_empty) && !self.shown.contains_key(plugin);
        if (is_known || has_left) && awaited.remove(plugin).is_some() && awaited.is_empty() {
            self.settling = Settling::Settled;
            cx.publish(InstancesNews::Settled);
        }
    }

    fn is_known(&self, plugin: &PluginKey) -> bool {
        self.active_entry(plugin).is_some_and(|entry| match (entry.child.state(), &entry.report.health) {
            (
                ChildState::Running(_) | ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp,
                Health::Healthy | Health::Unhealthy { .. },
            ) => true,
            (
                ChildState::Running(_) | ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp,
                Health::Starting | Health::Gone,
            )
            | (ChildState::Stopping(_), _) => false,
        })
    }
}
