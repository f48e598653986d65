//! Protects the names of snapshots.
//!
//! While a snapshot is being taken, its plugin knows it by its name alone. A try with an unknown outcome may have taken it, so until that
//! is certain the name belongs to the volume of that try: for another volume it would be a retry with other arguments (C013, C050).

use super::open_orders::OpenOrder;
use super::order_errors::OrderError;
use super::reasons::UnknownVolume;
use super::state::Volumes;
use crate::vocabulary::PluginName;
use crate::volume::VolumeKey;

impl Volumes {
    /// Refuses a snapshot of a volume while its plugin may be taking a snapshot with this name of another volume.
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

    /// The names of the snapshots of a plugin that are being taken, or may be, with their volumes.
    fn open_snapshots<'v>(
        &'v self,
        plugin: &'v PluginName,
    ) -> impl Iterator<Item = (&'v VolumeKey, &'v str)> {
        self.open_orders(plugin).filter_map(|(keeper, open)| {
            let name = match open {
                OpenOrder::Shown(order) => order.snapshot.as_deref(),
                OpenOrder::Placed(order) => order.snapshot_name(),
            };
            Some((keeper, name?))
        })
    }
}
