//! Orders that the controller alone carries out: snapshots, groups of them, and changed parameters.

use std::sync::Arc;

use super::group::Taken;
use super::news::GroupStatus;
use super::operation::Operation;
use super::order::Order;
use super::order_messages::{Done, OrderError};
use super::ordered::Ordered;
use super::outcome::{ControllerRoute, Expands, Failure, Known};
use super::planning::Need;
use super::record::{Step, Towards};
use super::state::Volume;
use super::waits::Wait;
use crate::csi::{Snapshot, VolumeGroupSnapshot};
use crate::kernel::StepContext;
use crate::vocabulary::Moment;
use crate::vocabulary::text::escaped;

impl Volume {
    /// Whether such an order can be placed with the plugin, by present knowledge.
    pub(super) fn admit_at_controller(&self, order: &Order, what: String) -> Result<(), OrderError> {
        let is_offered = match (self.controller(), self.node()) {
            (Some(controller), _) => offers(controller, order),
            (None, Some(node)) => node.requires_controller,
            (None, None) => true,
        };
        if is_offered {
            return Ok(());
        }
        let volume = self.record.spec.key.clone();
        Err(OrderError::Unsupported { volume, what, needed: order.needed() })
    }

    pub(super) fn controller_need(&self, ordered: &Ordered) -> Need<()> {
        let (record, controller) = (&ordered.record, self.controller());
        match (&record.at_controller, controller) {
            (Step::GoingUp(_) | Step::GoingDown(_), _) => Need::Waits(Wait::InFlight),
            (Step::Up(..), _) => Need::Met(()),
            (Step::Down | Step::Unknown(..), None) => Need::Waits(Wait::Controller),
            (Step::Down | Step::Unknown(..), Some(controller)) if !offers(controller, &record.order) => {
                Need::Waits(Wait::OfferingPlugin)
            }
            (Step::Down | Step::Unknown(..), Some(_)) => {
                Need::Operation(Operation::Order(record.number, ordered.next_call()))
            }
        }
    }

    /// The plugin has taken a snapshot. A snapshot that is not ready is requested again, by its name, until it is (C100).
    pub(super) fn snapshot_taken(
        &mut self,
        number: u64,
        snapshot: Arc<Snapshot>,
        cx: &mut StepContext<Self>,
    ) {
        let (volume, what) = (self.record.spec.key.clone(), self.what(number));
        if snapshot.source_volume_id != self.record.spec.volume_id {
            let reason =
                "the plugin answered with a snapshot of another volume; check at the plugin what it made"
                    .to_owned();
            return self.fail_order(number, &OrderError::Refused { volume, what, reason }, cx);
        }
        if snapshot.ready_to_use {
            return self.finish_order(number, &Ok(Done::SnapshotTaken(snapshot)), cx);
        }
        self.await_ready(cx.moment(), number, Taken::Snapshot(snapshot.snapshot_id.as_str().into()));
    }

    /// The plugin has taken a group, or reports its progress. A group that is not ready is queried by its id until it is (C107).
    pub(super) fn group_taken(
        &mut self,
        number: u64,
        group: Arc<VolumeGroupSnapshot>,
        cx: &mut StepContext<Self>,
    ) {
        let (volume, what) = (self.record.spec.key.clone(), self.what(number));
        let order = self.ordered(number).map(|ordered| &ordered.record.order);
        if !matches!(order, Some(Order::TakeGroup(order)) if order.is(&group)) {
            let reason = format!(
                "the plugin answered with the group {}, whose snapshots are not one of each of these volumes; check at the \
                plugin what it made",
                escaped(&group.group_snapshot_id)
            );
            return self.fail_order(number, &OrderError::Refused { volume, what, reason }, cx);
        }
        match group.ready_to_use {
            true => self.finish_order(number, &Ok(Done::GroupTaken(group)), cx),
            false => self.await_ready(cx.moment(), number, Taken::Group(group)),
        }
    }

    /// Notes that the plugin does not know a group by these ids: the group that it has taken is requested by its name again, whose answer
    /// has the present ids, and not by these ids once more (C108).
    pub(super) fn group_not_told(&mut self, number: u64, failure: &Failure) {
        let is_told = matches!(failure.known, Known::NotMade | Known::Unclear);
        if let Some(ordered) = self.ordered_mut(number).filter(|_| !is_told) {
            ordered.taken = None;
        }
    }

    /// The plugin continues its work on the snapshot or group that it has taken: it is asked again after a pause. That is not a failure.
    fn await_ready(&mut self, moment: Moment, number: u64, taken: Taken) {
        let backoff = self.config.options.backoff;
        let Some(ordered) = self.ordered_mut(number) else { return };
        ordered.taken = Some(taken);
        if let Step::GoingUp(intent) = ordered.record.at_controller.clone() {
            ordered.record.at_controller = Step::Unknown(Towards::Up, intent);
        }
        ordered.tries.pauses(&backoff, moment);
    }
}

fn offers(controller: &ControllerRoute, order: &Order) -> bool {
    match order {
        Order::Expand { .. } => controller.expands != Expands::Not,
        Order::TakeSnapshot { .. } | Order::DeleteSnapshot { .. } => controller.takes_snapshots,
        Order::Modify { .. } => controller.modifies,
        Order::TakeGroup(_) | Order::DeleteGroup { .. } => controller.takes_groups,
    }
}

/// The group of snapshots that an order takes, as its status shows it.
pub(super) fn group_status(ordered: &Ordered) -> Option<GroupStatus> {
    let Order::TakeGroup(order) = &ordered.record.order else { return None };
    let taken = ordered.taken.as_ref().map(|taken| taken.id().to_owned());
    Some(GroupStatus { order: order.clone(), taken })
}
