//! Waits until a plugin is unused. The plugin takes no new claims meanwhile (V13).

use std::time::Duration;

use super::errors::AwaitUnusedError;
use super::messages::{AwaitUnused, VolumesAnswer};
use super::reasons::{InUse, PluginLeaving, TooManyCallers};
use super::state::{Entry, Plugin, Volumes, VolumesTimer};
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::{Generation, PluginName, Timestamp};
use crate::volume::VolumeKey;

/// The limit of callers that wait until plugins are unused.
const UNUSED_WAITING_MAX: usize = 1_024;
/// The time for which a plugin that was reported as unused takes no new claims if it does not leave.
const LEAVING_WITHIN: Duration = Duration::from_secs(5);

/// The generations of the node and the controller half of a plugin.
pub(super) type ServedBy = [Option<Generation>; 2];

/// A caller that waits until a plugin is unused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct UnusedWaiter {
    pub(super) plugin: PluginName,
    pub(super) since: Timestamp,
    /// The instances that served the plugin then; another one that serves it takes new claims.
    pub(super) served_by: ServedBy,
}

impl Volumes {
    pub(super) fn await_unused(
        &mut self,
        (id, since): (AskId, Timestamp),
        asked: &AwaitUnused,
        cx: &mut StepContext<Self>,
    ) {
        let AwaitUnused { plugin, within } = asked.clone();
        let until = since + within;
        if !self.uses(&plugin) {
            cx.reply(id, VolumesAnswer::AwaitUnused(Ok(())));
            if !within.is_zero() {
                self.leaves(plugin, cx);
            }
        } else if until <= cx.now() || self.stop.is_some() {
            self.refuse_unused(id, plugin, cx.now().since(since), cx);
        } else if self.unused.len() >= UNUSED_WAITING_MAX {
            let error = TooManyCallers { plugin, waiting: self.unused.len() };
            cx.reply(id, VolumesAnswer::AwaitUnused(Err(error.into())));
        } else {
            let served_by = self.plugins.get(&plugin).map(Plugin::served_by).unwrap_or_default();
            self.unused.insert(id, UnusedWaiter { plugin, since, served_by });
            cx.start_timer(VolumesTimer::Unused(id), until);
        }
    }

    pub(super) fn unused_overdue(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        if let Some(UnusedWaiter { plugin, since, .. }) = self.unused.remove(&id) {
            self.refuse_unused(id, plugin, cx.now().since(since), cx);
        }
    }

    /// Answers the callers that wait until a plugin is unused, if it is.
    pub(super) fn answer_unused(&mut self, plugin: &PluginName, cx: &mut StepContext<Self>) {
        let is_meant = |waiter: &UnusedWaiter| waiter.plugin == *plugin;
        if !self.unused.values().any(is_meant) || self.uses(plugin) {
            return;
        }
        let ids: Vec<_> =
            self.unused.iter().filter(|(_, waiter)| is_meant(waiter)).map(|(id, _)| *id).collect();
        for id in ids {
            self.unused.remove(&id);
            cx.cancel_timer(VolumesTimer::Unused(id));
            cx.reply(id, VolumesAnswer::AwaitUnused(Ok(())));
        }
        self.leaves(plugin.clone(), cx);
    }

    // === Plugins that take no new claims ===

    /// A plugin is reported as unused, and is about to leave if it is there.
    fn leaves(&mut self, plugin: PluginName, cx: &mut StepContext<Self>) {
        let Some(served_by) = self.plugins.get(&plugin).map(Plugin::served_by) else { return };
        cx.start_timer(VolumesTimer::Leaving(plugin.clone()), cx.now() + LEAVING_WITHIN);
        self.leaving.insert(plugin, served_by);
    }

    /// A plugin has left, or does not leave.
    pub(super) fn stays(&mut self, plugin: &PluginName, cx: &mut StepContext<Self>) {
        if self.leaving.remove(plugin).is_some() {
            cx.cancel_timer(VolumesTimer::Leaving(plugin.clone()));
        }
    }

    /// Refuses to begin an operation on a volume of a plugin that is about to leave, unless another instance serves it since.
    pub(super) fn check_stays(&self, volume: &VolumeKey, plugin: &PluginName) -> Result<(), PluginLeaving> {
        let served = self.plugins.get(plugin);
        let is_meant = |waiter: &UnusedWaiter| {
            let is_taken_over = served.is_some_and(|served| served.is_taken_over_from(waiter.served_by));
            waiter.plugin == *plugin && !is_taken_over
        };
        let is_awaited = self.unused.values().any(is_meant);
        if is_awaited || self.leaving.contains_key(plugin) {
            return Err(PluginLeaving { volume: volume.clone(), plugin: plugin.clone() });
        }
        Ok(())
    }

    // === Refusals ===

    /// The host stops: answers every caller that waits until a plugin is unused.
    pub(super) fn refuse_all_unused(&mut self, cx: &mut StepContext<Self>) {
        for (id, UnusedWaiter { plugin, since, .. }) in std::mem::take(&mut self.unused) {
            cx.cancel_timer(VolumesTimer::Unused(id));
            self.refuse_unused(id, plugin, cx.now().since(since), cx);
        }
    }

    fn refuse_unused(&self, id: AskId, plugin: PluginName, waited: Duration, cx: &mut StepContext<Self>) {
        let left = self.left.iter().filter(|left| left.plugin == plugin).map(|left| left.in_use.clone());
        let volumes: Vec<InUse> = self.users_of(&plugin).map(Entry::in_use).chain(left).collect();
        let error = AwaitUnusedError::InUse { plugin, volumes, waited };
        cx.reply(id, VolumesAnswer::AwaitUnused(Err(error)));
    }

    fn uses(&self, plugin: &PluginName) -> bool {
        self.users_of(plugin).next().is_some() || self.left.iter().any(|left| left.plugin == *plugin)
    }

    /// The volumes of a plugin that are in use, or may be.
    pub(super) fn users_of(&self, plugin: &PluginName) -> impl Iterator<Item = &Entry> {
        let of_plugin = self.entries.values().filter(move |entry| entry.spec.plugin == *plugin);
        of_plugin.filter(|entry| entry.is_in_use())
    }
}
