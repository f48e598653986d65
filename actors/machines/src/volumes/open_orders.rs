//! The orders that are not done, as known to the owner: the names in them are not free meanwhile.

use super::state::{Entry, Volumes};
use crate::supervisor::ChildState;
use crate::vocabulary::PluginName;
use crate::volume::{Order, OrderStatus, PlaceOrder, VolumeAsk, VolumeKey};

/// An order that is not done, or may not be.
pub(super) enum OpenOrder<'v> {
    /// The last status of its volume has it.
    Shown(&'v OrderStatus),
    /// It was sent to its volume, or waits for the next incarnation of the actor.
    Placed(&'v Order),
}

impl Volumes {
    /// The open orders of the volumes of a plugin, each with the volume whose ledger has it.
    pub(super) fn open_orders<'v>(
        &'v self,
        plugin: &'v PluginName,
    ) -> impl Iterator<Item = (&'v VolumeKey, OpenOrder<'v>)> {
        let entries = self.entries.iter().filter(|(_, entry)| entry.spec.plugin == *plugin);
        let known = entries.flat_map(|(keeper, entry)| {
            let shown = entry.status.iter().flat_map(|status| &status.orders).map(OpenOrder::Shown);
            let queued = entry.queue.iter().filter_map(|request| order_in(&request.ask));
            shown.chain(queued.map(OpenOrder::Placed)).map(move |open| (keeper, open))
        });
        let sent = self.asks.values().filter_map(|sent| {
            let is_of_plugin = self.entries.get(&sent.volume)?.spec.plugin == *plugin;
            let order = order_in(&sent.request.ask).filter(|_| is_of_plugin)?;
            Some((&sent.volume, OpenOrder::Placed(order)))
        });
        known.chain(sent)
    }

    /// A volume of a plugin whose ledger may have an order that it has not shown. A volume whose actor crashed too often is not waited for.
    pub(super) fn unread_beside(&self, own: Option<&VolumeKey>, plugin: &PluginName) -> Option<&VolumeKey> {
        let is_awaited = |entry: &Entry| {
            entry.is_unread && entry.spec.plugin == *plugin && entry.child.state() != ChildState::GivenUp
        };
        self.entries.iter().find(|(key, entry)| own != Some(*key) && is_awaited(entry)).map(|(key, _)| key)
    }
}

/// The order in a message.
const fn order_in(ask: &VolumeAsk) -> Option<&Order> {
    match ask {
        VolumeAsk::PlaceOrder(PlaceOrder { order, .. }) => Some(order),
        _ => None,
    }
}
