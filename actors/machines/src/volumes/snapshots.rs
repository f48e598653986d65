//! Snapshots: their names.
//!
//! A plugin knows a snapshot that is being taken by its name alone. A try whose outcome is unknown may have taken it, so until that is
//! certain the name belongs to the volume that it was tried for: for another one it would be a retry with other arguments (C013, C050).

use super::order_errors::OrderError;
use super::reasons::UnknownVolume;
use super::state::{Entry, Volumes};
use crate::vocabulary::PluginName;
use crate::volume::{PlaceOrder, VolumeAsk, VolumeKey};

impl Volumes {
    /// Refuses a snapshot of a volume while its plugin may be taking one of this name of another volume.
    pub(super) fn admit_snapshot(&self, volume: &VolumeKey, name: &str) -> Result<(), OrderError> {
        let known = self.known.get(volume).ok_or_else(|| UnknownVolume { volume: volume.clone() })?;
        let plugin = &known.spec.plugin;
        let of_name =
            || self.open_snapshots(plugin).filter(|(_, open)| *open == name).map(|(keeper, _)| keeper);
        if of_name().any(|keeper| keeper == volume) {
            return Ok(());
        }
        if let Some(keeper) = of_name().next() {
            let (name, plugin, keeper) = (name.to_owned(), plugin.clone(), keeper.clone());
            return Err(OrderError::SameSnapshot { name, plugin, keeper });
        }
        match self.unread_beside(Some(volume), plugin) {
            Some(unread) => Err(OrderError::UnreadSnapshot { name: name.to_owned(), unread: unread.clone() }),
            None => Ok(()),
        }
    }

    /// The snapshots of a plugin that are being taken, or may be, by the volumes that they are of: those that these have shown last, those that
    /// were sent to them, and those that wait for their next life.
    fn open_snapshots<'v>(
        &'v self,
        plugin: &'v PluginName,
    ) -> impl Iterator<Item = (&'v VolumeKey, &'v str)> {
        let entries = self.entries.iter().filter(|(_, entry)| entry.spec.plugin == *plugin);
        let known =
            entries.flat_map(|(keeper, entry)| entry.open_snapshots().map(move |name| (keeper, name)));
        let sent = self.asks.values().filter_map(|sent| {
            let is_of_plugin = self.entries.get(&sent.volume)?.spec.plugin == *plugin;
            Some((&sent.volume, snapshot_in(&sent.request.ask).filter(|_| is_of_plugin)?))
        });
        known.chain(sent)
    }
}

impl Entry {
    fn open_snapshots(&self) -> impl Iterator<Item = &str> {
        let shown = self.status.iter().flat_map(|status| &status.orders);
        let shown = shown.filter_map(|order| order.snapshot.as_deref());
        shown.chain(self.queue.iter().filter_map(|request| snapshot_in(&request.ask)))
    }
}

/// The name of the snapshot that a message orders to be taken.
const fn snapshot_in(ask: &VolumeAsk) -> Option<&str> {
    match ask {
        VolumeAsk::PlaceOrder(PlaceOrder { order, .. }) => order.snapshot_name(),
        _ => None,
    }
}
