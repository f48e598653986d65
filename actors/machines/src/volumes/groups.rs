//! Handles groups of snapshots: which volume keeps the order, and which orders are refused meanwhile.
//!
//! An order of a group belongs to the first of its volumes by key: that volume's ledger has it, so that it is resumed, counted, shown and
//! given up like every order. In whatever sequence its volumes are named, the same group is the same order of the same volume.

use std::sync::Arc;

use super::group_errors::GroupError;
use super::messages::{CreateGroupSnapshot, DeleteGroupSnapshot};
use super::open_orders::OpenOrder;
use super::order_errors::OrderError;
use super::purposes::OrderKind;
use super::reasons::UnknownVolume;
use super::state::Volumes;
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::{PluginName, Timestamp};
use crate::volume::{GroupMember, GroupOrder, Order, PlaceOrder, VolumeKey};

/// The maximum number of volumes in a group: each of them waits while it is taken.
const GROUP_MAX: usize = 64;

/// A group that is being taken, or may be.
struct Open<'v> {
    /// The volume whose ledger has the order.
    keeper: &'v VolumeKey,
    order: &'v Arc<GroupOrder>,
    /// Its id with the plugin, if it is taken and not ready yet.
    taken: Option<&'v str>,
}

impl Volumes {
    pub(super) fn take_group(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &CreateGroupSnapshot,
        cx: &mut StepContext<Self>,
    ) {
        let kind = OrderKind::TakeGroup;
        match self.admit_group(asked) {
            Err(error) => cx.reply(id, kind.refusal(error)),
            Ok((keeper, order)) => {
                let placed = PlaceOrder { order: Order::TakeGroup(Arc::new(order)), within: asked.within };
                self.place_order((id, asked_at), (&keeper, kind), placed, cx);
            }
        }
    }

    pub(super) fn delete_group(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &DeleteGroupSnapshot,
        cx: &mut StepContext<Self>,
    ) {
        let kind = OrderKind::DeleteGroup;
        let DeleteGroupSnapshot { volume, group_snapshot_id, snapshot_ids, within } = asked.clone();
        if let Err(error) = self.admit_group_deletion(asked) {
            cx.reply(id, kind.refusal(error));
            return;
        }
        let placed = PlaceOrder { order: Order::DeleteGroup { group_snapshot_id, snapshot_ids }, within };
        self.place_order((id, asked_at), (&volume, kind), placed, cx);
    }

    /// The order of a group, and the volume that keeps it.
    fn admit_group(&self, asked: &CreateGroupSnapshot) -> Result<(VolumeKey, GroupOrder), OrderError> {
        let CreateGroupSnapshot { volumes, name, parameters, .. } = asked.clone();
        let (count, limit) = (volumes.len(), GROUP_MAX);
        if count > limit {
            return Err(GroupError::TooManyVolumes { name, count, limit }.into());
        }
        let mut members = volumes.iter().map(|key| self.member(key)).collect::<Result<Vec<_>, _>>()?;
        members.sort();
        if let Some(pair) = members.windows(2).find(|pair| pair[0].0.volume == pair[1].0.volume) {
            let volume = pair[0].0.volume.clone();
            return Err(GroupError::Twice { name, volume }.into());
        }
        let Some((first, plugin)) = members.first().cloned() else {
            return Err(GroupError::NoVolumes { name }.into());
        };
        if let Some((other, other_plugin)) = members.iter().find(|(_, other)| *other != plugin).cloned() {
            let (volume, other) = (first.volume, other.volume);
            return Err(GroupError::OtherPlugin { name, volume, plugin, other, other_plugin }.into());
        }
        if let Some((member, _)) = members.iter().find(|(member, _)| self.deleting.contains(&member.volume)) {
            return Err(GroupError::BeingDeleted { name, volume: member.volume.clone() }.into());
        }
        let members = members.into_iter().map(|(member, _)| member).collect();
        let order = GroupOrder { name, members, parameters };
        let is_another = |open: &Open<'_>| open.order.name == order.name && **open.order != order;
        let another = self.open_groups(&plugin).find(is_another).map(|open| open.keeper.clone());
        if let Some(keeper) = another {
            return Err(GroupError::SameName { name: order.name, plugin, keeper }.into());
        }
        if let Some(unread) = self.unread_beside(Some(&first.volume), &plugin) {
            return Err(GroupError::Unread { group: order.name, unread: unread.clone() }.into());
        }
        Ok((first.volume, order))
    }

    /// A volume of a group, and its plugin.
    fn member(&self, key: &VolumeKey) -> Result<(GroupMember, PluginName), OrderError> {
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        let member = GroupMember { volume: key.clone(), volume_id: known.spec.volume_id.clone() };
        Ok((member, known.spec.plugin.clone()))
    }

    fn admit_group_deletion(&self, asked: &DeleteGroupSnapshot) -> Result<(), OrderError> {
        let DeleteGroupSnapshot { volume, group_snapshot_id, .. } = asked;
        let (_, plugin) = self.member(volume)?;
        let is_it = |open: &Open<'_>| open.taken == Some(&**group_snapshot_id);
        match (self.open_groups(&plugin).find(is_it), self.unread_beside(None, &plugin)) {
            (None, None) => Ok(()),
            (None, Some(unread)) => {
                let (group, unread) = (group_snapshot_id.clone(), unread.clone());
                Err(GroupError::Unread { group, unread }.into())
            }
            (Some(Open { keeper, order, .. }), _) => Err(GroupError::BeingTaken {
                group_snapshot_id: group_snapshot_id.clone(),
                name: order.name.clone(),
                keeper: keeper.clone(),
            }
            .into()),
        }
    }

    /// Another volume whose ledger has an order that needs this one, and the order: a volume is not deleted while a group with it is being
    /// taken.
    pub(super) fn needed_by(&self, key: &VolumeKey, plugin: &PluginName) -> Option<(VolumeKey, String)> {
        let open = self.open_groups(plugin).find(|open| open.keeper != key && open.order.has(key))?;
        Some((open.keeper.clone(), format!("take {}", open.order)))
    }

    /// The groups of a plugin that are being taken, or may be.
    fn open_groups<'v>(&'v self, plugin: &'v PluginName) -> impl Iterator<Item = Open<'v>> {
        self.open_orders(plugin).filter_map(|(keeper, open)| match open {
            OpenOrder::Shown(order) => {
                let group = order.group.as_ref()?;
                Some(Open { keeper, order: &group.order, taken: group.taken.as_deref() })
            }
            OpenOrder::Placed(Order::TakeGroup(order)) => Some(Open { keeper, order, taken: None }),
            OpenOrder::Placed(_) => None,
        })
    }
}
