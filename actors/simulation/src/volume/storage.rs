//! The size of the volume at its storage, on this node, and as reported to any host; and its groups of snapshots.

use callboard_machines::volume::{Expands, Failure, Known, OrderCall, OrderResult, VolumeOutcome};

use super::event::Answered;
use super::groups::Groups;

/// The size of the volume, which outlives every host.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Storage {
    /// When the plugin expands it.
    pub(super) expands: Expands,
    /// Its size at the controller.
    pub(super) at_controller: u64,
    /// Its size on this node.
    pub(super) on_node: u64,
    /// The largest size that a host has received.
    pub(super) told: u64,
    /// Whether the node has refused permanently to let it grow.
    pub(super) is_refused_on_node: bool,
    /// The groups of snapshots of it.
    pub(super) groups: Groups,
}

impl Storage {
    /// A call takes effect.
    pub(super) fn take_effect(&mut self, call: &OrderCall) {
        match call {
            OrderCall::Expand { range, .. } => {
                self.at_controller = self.at_controller.max(range.required_bytes);
            }
            OrderCall::Grow(_) => self.on_node = self.at_controller,
            OrderCall::TakeGroup(_) => self.groups.take(),
            OrderCall::DescribeGroup { group_snapshot_id, .. } => self.groups.ask_for(group_snapshot_id),
            OrderCall::DeleteGroup { group_snapshot_id, .. } => self.groups.delete(group_snapshot_id),
            // This world has no other orders.
            OrderCall::TakeSnapshot { .. } | OrderCall::DeleteSnapshot { .. } | OrderCall::Modify { .. } => {}
        }
    }

    /// A call ends, and its host receives the result.
    pub(super) fn answer(&mut self, call: &OrderCall, how: Answered) -> VolumeOutcome {
        let known = match how {
            Answered::Ok | Answered::Lie | Answered::UnclearAfter => {
                self.take_effect(call);
                (how == Answered::UnclearAfter).then_some(Known::Unclear)
            }
            Answered::Refused => Some(Known::Refused),
            Answered::NotNow => Some(Known::NotNow),
            Answered::UnclearBefore => Some(Known::Unclear),
        };
        VolumeOutcome::Ordered(match (known, call) {
            (Some(known), call) => {
                self.is_refused_on_node |= known == Known::Refused && matches!(call, OrderCall::Grow(_));
                Err(Failure { known, reason: format!("{how}") })
            }
            (None, OrderCall::Expand { .. }) => {
                self.told = self.at_controller;
                Ok(OrderResult::Expanded { capacity_bytes: self.at_controller, is_node_next: true })
            }
            (
                None,
                OrderCall::TakeSnapshot { .. }
                | OrderCall::DeleteSnapshot { .. }
                | OrderCall::Modify { .. }
                | OrderCall::DeleteGroup { .. },
            ) => Ok(OrderResult::Nothing),
            (None, OrderCall::TakeGroup(_)) => self.groups.told(),
            (None, OrderCall::DescribeGroup { group_snapshot_id, .. }) => {
                self.groups.told_of(group_snapshot_id)
            }
            (None, OrderCall::Grow(_)) => {
                // A call whose answer was lost may have made it even larger.
                self.told = self.told.max(self.on_node);
                Ok(OrderResult::Grown { capacity_bytes: self.on_node })
            }
        })
    }
}
