//! Waiting until a plugin is unused (V13).

use std::time::Duration;

use super::errors::{AwaitUnusedError, InUse, TooManyCallers};
use super::messages::{AwaitUnused, VolumesAnswer};
use super::state::{Entry, UnusedWaiter, Volumes, VolumesTimer};
use crate::kernel::{AskId, Effects};
use crate::vocabulary::{Moment, PluginName, Timestamp};

/// The limit of callers that wait until plugins are unused.
const UNUSED_WAITING_MAX: usize = 1_024;

impl Volumes {
    pub(super) fn await_unused(
        &mut self,
        moment: Moment,
        (id, since): (AskId, Timestamp),
        asked: &AwaitUnused,
        effects: &mut Effects<Self>,
    ) {
        let AwaitUnused { plugin, within } = asked.clone();
        let until = since + within;
        if !self.uses(&plugin) {
            effects.reply(id, VolumesAnswer::AwaitUnused(Ok(())));
        } else if until <= moment.now || self.stop.is_some() {
            self.refuse_unused(id, plugin, moment.now.since(since), effects);
        } else if self.unused.len() >= UNUSED_WAITING_MAX {
            let error = TooManyCallers { plugin, waiting: self.unused.len() };
            effects.reply(id, VolumesAnswer::AwaitUnused(Err(error.into())));
        } else {
            self.unused.insert(id, UnusedWaiter { plugin, since });
            effects.start_timer(VolumesTimer::Unused(id), until);
        }
    }

    pub(super) fn unused_overdue(&mut self, moment: Moment, id: AskId, effects: &mut Effects<Self>) {
        if let Some(UnusedWaiter { plugin, since }) = self.unused.remove(&id) {
            self.refuse_unused(id, plugin, moment.now.since(since), effects);
        }
    }

    /// Answers the callers that wait until a plugin is unused, if it is.
    pub(super) fn answer_unused(&mut self, plugin: &PluginName, effects: &mut Effects<Self>) {
        let is_meant = |waiter: &UnusedWaiter| waiter.plugin == *plugin;
        if !self.unused.values().any(is_meant) || self.uses(plugin) {
            return;
        }
        let ids: Vec<_> =
            self.unused.iter().filter(|(_, waiter)| is_meant(waiter)).map(|(id, _)| *id).collect();
        for id in ids {
            self.unused.remove(&id);
            effects.cancel_timer(VolumesTimer::Unused(id));
            effects.reply(id, VolumesAnswer::AwaitUnused(Ok(())));
        }
    }

    /// The host stops: answers every caller that waits until a plugin is unused.
    pub(super) fn refuse_all_unused(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        for (id, UnusedWaiter { plugin, since }) in std::mem::take(&mut self.unused) {
            effects.cancel_timer(VolumesTimer::Unused(id));
            self.refuse_unused(id, plugin, moment.now.since(since), effects);
        }
    }

    fn refuse_unused(&self, id: AskId, plugin: PluginName, waited: Duration, effects: &mut Effects<Self>) {
        let left = self.left.iter().filter(|(of, _)| *of == plugin).map(|(_, in_use)| in_use.clone());
        let volumes: Vec<InUse> = self.users_of(&plugin).map(Entry::in_use).chain(left).collect();
        let error = AwaitUnusedError::InUse { plugin, volumes, waited };
        effects.reply(id, VolumesAnswer::AwaitUnused(Err(error)));
    }

    fn uses(&self, plugin: &PluginName) -> bool {
        self.users_of(plugin).next().is_some() || self.left.iter().any(|(of, _)| of == plugin)
    }

    /// The volumes of a plugin that are in use, or may be.
    pub(super) fn users_of(&self, plugin: &PluginName) -> impl Iterator<Item = &Entry> {
        let of_plugin = self.entries.values().filter(move |entry| entry.spec.plugin == *plugin);
        of_plugin.filter(|entry| entry.is_in_use())
    }
}
