//! An order of a volume, and its progress.

use super::group::Taken;
use super::order::{Order, OrderCall, OrderRecord};
use super::record::Step;
use super::state::Tries;
use crate::csi::Call;
use crate::kernel::AskId;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ordered {
    pub(super) record: OrderRecord,
    pub(super) tries: Tries,
    /// The callers that wait for it.
    pub(super) waiters: Vec<AskId>,
    /// The snapshot or group that it has taken and that is not ready yet.
    pub(super) taken: Option<Taken>,
}

impl Ordered {
    pub(super) fn new(record: OrderRecord) -> Self {
        Self { record, tries: Tries::default(), waiters: Vec::new(), taken: None }
    }

    /// The progress, as a word.
    pub(super) fn state(&self) -> &'static str {
        match (&self.taken, &self.record.at_controller) {
            (Some(_), Step::Unknown(..)) => "taken and not ready yet",
            _ => self.record.as_str(),
        }
    }

    /// Whether another order has to wait until this one is done. A snapshot that is requested again would be retaken after its deletion.
    pub(super) fn stands_before(&self, other: &Order) -> bool {
        let is_deleted = |taken: &Taken| match other {
            Order::DeleteSnapshot { snapshot_id } => snapshot_id == taken.id(),
            Order::DeleteGroup { group_snapshot_id, .. } => group_snapshot_id == taken.id(),
            Order::Expand { .. }
            | Order::TakeSnapshot { .. }
            | Order::Modify { .. }
            | Order::TakeGroup(_) => false,
        };
        self.record.order.excludes(other) || self.taken.as_ref().is_some_and(is_deleted)
    }

    /// The next call to the controller: a group that is taken is queried by its id (C107).
    pub(super) const fn next_call(&self) -> Call {
        match self.taken {
            Some(Taken::Group(_)) => Call::GetVolumeGroupSnapshot,
            Some(Taken::Snapshot(_)) | None => self.record.order.call(),
        }
    }

    /// The arguments of this call.
    pub(super) fn args_of(&self, call: Call) -> OrderCall {
        match &self.taken {
            Some(taken @ Taken::Group(_)) if call == Call::GetVolumeGroupSnapshot => {
                OrderCall::DescribeGroup {
                    group_snapshot_id: taken.id().to_owned(),
                    snapshot_ids: taken.snapshot_ids(),
                }
            }
            Some(Taken::Snapshot(id)) => self.record.at_controller_call().of_taken(id),
            Some(Taken::Group(_)) | None => self.record.at_controller_call(),
        }
    }
}
