//! Groups of snapshots of the volume: the requests of callers and their answers; a group that may be taken is not forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::shell::Machine;
use callboard_actors::vocabulary::Timestamp;
use callboard_machines::volume::{Done, GroupMember, GroupOrder, Order, PlaceOrder};

use super::super::super::law::Law;
use super::super::groups::{id_of, snapshot_of};
use super::{Asked, VolumeModel, WITHIN, key};

impl VolumeModel {
    /// A caller takes the group, whose only member is this volume.
    pub(in super::super) fn take_group(&mut self, now: Timestamp) {
        let member = GroupMember { volume: key(), volume_id: "v".to_owned() };
        let (name, parameters) = ("weekly".to_owned(), BTreeMap::new());
        let order = Order::TakeGroup(Arc::new(GroupOrder { name, members: vec![member], parameters }));
        self.ask(now, Asked::TakeGroup, PlaceOrder { order, within: WITHIN });
    }

    /// A caller deletes the group that was taken last.
    pub(in super::super) fn delete_group(&mut self, now: Timestamp) {
        let number = self.node.storage.groups.last();
        let order = Order::DeleteGroup {
            group_snapshot_id: id_of(number),
            snapshot_ids: BTreeSet::from([snapshot_of(number)]),
        };
        self.ask(now, Asked::DeleteGroup(number), PlaceOrder { order, within: WITHIN });
    }

    /// Only groups that the plugin has answered are reported.
    pub(super) fn told_of_group(&mut self, asked: Asked, done: &Done) {
        let groups = &self.node.storage.groups;
        let wrong = match (asked, done) {
            (Asked::TakeGroup, Done::GroupTaken(group)) => {
                let is_heard = groups.heard.map(id_of).as_ref() == Some(&group.group_snapshot_id);
                !is_heard || !group.ready_to_use
            }
            (Asked::DeleteGroup(number), Done::GroupDeleted) => groups.there == Some(number),
            _ => true,
        };
        if wrong && !self.is_forced {
            self.violation(Law::V4, || format!("{done:?} is told to {asked:?}, and is not so"));
        }
    }

    /// The world is at rest: a group that was taken was reported, or is in the ledger; and no order of a group waits forever.
    pub(super) fn check_groups(&self) -> Result<(), (Law, String)> {
        let (groups, rows) = (&self.node.storage.groups, self.owner.store.rows());
        let mut orders = rows.orders.iter().map(|row| &row.order);
        let is_unheard = groups.there.is_some() && groups.heard != groups.there;
        if is_unheard && !self.is_forced && !orders.any(|order| matches!(order, Order::TakeGroup(_))) {
            return Err((Law::V5, "a group was taken, and the ledger has forgotten it".to_owned()));
        }
        let machine = self.owner.machine();
        let is_held = machine.is_some_and(|machine| machine.view().doing.contains("is held until"));
        let is_of_a_group = |order: &Order| matches!(order, Order::TakeGroup(_) | Order::DeleteGroup { .. });
        let waits = rows.orders.iter().find(|row| is_of_a_group(&row.order)).filter(|_| !is_held);
        match waits {
            Some(waits) => Err((Law::V15, format!("\"{}\" waits for ever", waits.order))),
            None => Ok(()),
        }
    }
}
