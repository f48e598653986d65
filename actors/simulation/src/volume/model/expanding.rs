//! Expansions: the requests of callers and their answers; an expansion that was begun is not forgotten.

use callboard_actors::shell::Machine;
use callboard_actors::vocabulary::Timestamp;
use callboard_machines::csi::CapacityRange;
use callboard_machines::volume::{
    Done, Expanded, Expands, Order, OrderCall, OrderRecord, PlaceOrder, Step, VolumeCall, VolumeStatus,
};

use super::super::super::law::Law;
use super::super::node::{StepOf, Sure};
use super::{Asked, VolumeModel, WITHIN};

impl VolumeModel {
    /// A caller requests a larger size than before.
    pub(in super::super) fn expand(&mut self, now: Timestamp) {
        self.wished_bytes += 10;
        let range = CapacityRange { required_bytes: self.wished_bytes, limit_bytes: 0 };
        self.ask(now, Asked::Expand, PlaceOrder { order: Order::Expand { range }, within: WITHIN });
    }

    /// Only sizes that the plugin has answered are reported.
    fn check_size(&mut self, bytes: Option<u64>) {
        let told = self.node.storage.told;
        if bytes.is_some_and(|bytes| bytes > told) {
            self.violation(Law::V4, || {
                format!("{bytes:?} bytes are told, and the plugin has answered {told}")
            });
        }
    }

    pub(super) fn told_status(&mut self, status: &VolumeStatus) {
        self.check_size(status.expanded_bytes);
        self.learn_id(status);
    }

    pub(super) fn told_done(&mut self, done: &Done) {
        let Done::Expanded(Expanded { capacity_bytes, is_node_next }) = done else { return };
        self.check_size(*capacity_bytes);
        let storage = &self.node.storage;
        let has_grown = storage.on_node >= capacity_bytes.unwrap_or_default();
        if !has_grown && !is_node_next && !self.is_forced {
            self.violation(Law::V4, || "it is told to be larger on this node, and has not grown".to_owned());
        }
    }

    /// Its intent is on disk (V5), the volume is offline where required (C109), and published where it grows (C149, V14).
    pub(super) fn check_order_call(&mut self, call: &VolumeCall, order: &OrderCall) {
        let rows = self.owner.store.rows();
        let is_written = rows.orders.iter().any(|row| match order {
            OrderCall::Expand { range, .. } => {
                row.order == Order::Expand { range: *range } && matches!(row.at_controller, Step::GoingUp(_))
            }
            OrderCall::TakeGroup(group) => {
                row.order == Order::TakeGroup(group.clone()) && matches!(row.at_controller, Step::GoingUp(_))
            }
            OrderCall::TakeSnapshot { .. }
            | OrderCall::DeleteSnapshot { .. }
            | OrderCall::Modify { .. }
            | OrderCall::DescribeGroup { .. }
            | OrderCall::DeleteGroup { .. } => {
                matches!(row.at_controller, Step::GoingUp(_))
            }
            OrderCall::Grow(args) => matches!(&row.on_node, Step::GoingUp(intent) if intent.args == *args),
        });
        if !is_written && !self.is_forced {
            self.violation(Law::V5, || format!("{call:?} is made, and its intent is not on disk"));
        }
        match order {
            OrderCall::TakeSnapshot { .. }
            | OrderCall::DeleteSnapshot { .. }
            | OrderCall::Modify { .. }
            | OrderCall::TakeGroup(_)
            | OrderCall::DescribeGroup { .. }
            | OrderCall::DeleteGroup { .. } => {}
            OrderCall::Expand { .. } => {
                let is_offline = self.node.maybe_up().all(|step| *step == StepOf::Exist);
                if self.node.storage.expands == Expands::Offline && !is_offline && !self.is_forced {
                    self.violation(Law::V3, || format!("{call:?} is made, and the volume may be in use"));
                }
            }
            OrderCall::Grow(args) => {
                let is_up = self.node.sure(&StepOf::Publish(args.volume_path.clone())) == Sure::Up;
                let rows = self.owner.store.rows();
                let claim = rows.claims.iter().find(|claim| claim.target_path == args.volume_path);
                // The claim may have been released since this was decided, and given up.
                let is_its = claim.is_some_and(|claim| !self.unconfirmed.contains(&claim.allocation))
                    || self.is_given_up(&args.volume_path);
                if !is_up {
                    self.violation(Law::V3, || format!("{call:?} is made, and it is not published there"));
                } else if !is_its && !self.is_forced {
                    self.violation(Law::V14, || format!("{call:?} is made for no claim that is confirmed"));
                }
            }
        }
    }

    /// The world is at rest: a volume larger at its storage has grown where it is published, or the ledger has the pending expansion.
    pub(super) fn check_grown(&self) -> Result<(), (Law, String)> {
        let (storage, rows) = (&self.node.storage, self.owner.store.rows());
        let has_grown = storage.on_node >= storage.at_controller;
        let is_excused = self.is_forced || storage.is_refused_on_node;
        if !has_grown && !is_excused && rows.orders.is_empty() {
            let law = Law::V5;
            return Err((
                law,
                "the volume has to grow on this node, and the ledger has forgotten it".to_owned(),
            ));
        }
        let machine = self.owner.machine();
        let is_held = machine.is_some_and(|machine| machine.view().doing.contains("is held until"));
        let is_expansion = |row: &&OrderRecord| matches!(row.order, Order::Expand { .. });
        let waits = rows.orders.iter().filter(is_expansion).any(|row| row.at_controller.is_up());
        if waits && !rows.claims.is_empty() && !is_held {
            return Err((Law::V15, "an expansion waits for ever, and the volume is published".to_owned()));
        }
        Ok(())
    }
}
