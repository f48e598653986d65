//! Orders that the controller alone carries out: snapshots, and changed parameters.

use std::sync::Arc;

use super::moves::Move;
use super::order::{Order, OrderRecord};
use super::order_messages::{Done, OrderError};
use super::outcome::{ControllerRoute, Expands};
use super::planning::{IN_FLIGHT, NO_CONTROLLER, Need};
use super::record::{Step, Towards};
use super::state::Volume;
use crate::csi::{
    Call, ControllerModifyVolumeRequest, CreateSnapshotRequest, DeleteSnapshotRequest, Fault, Request,
    Secrets, Snapshot,
};
use crate::kernel::Effects;
use crate::vocabulary::Moment;

const NOT_OFFERED: &str = "the plugin does not offer that any more";

impl Volume {
    /// Whether such an order can be placed with the plugin, as far as is known.
    pub(super) fn admit_at_controller(&self, order: &Order, what: String) -> Result<(), OrderError> {
        let volume = self.record.spec.key.clone();
        if let Err(fault) = check(&self.record.spec.volume_id, order) {
            return Err(OrderError::Invalid { volume, what, reason: fault.to_string() });
        }
        let controller = self.controller();
        match controller.filter(|controller| !offers(controller, order)) {
            Some(_) => Err(OrderError::Unsupported { volume, what, needed: needed(order) }),
            None => Ok(()),
        }
    }

    pub(super) fn controller_need(&self, record: &OrderRecord) -> Need<()> {
        let controller = self.controller();
        match (&record.at_controller, controller) {
            (Step::GoingUp(_) | Step::GoingDown(_), _) => Need::Waits(IN_FLIGHT),
            (Step::Up(..), _) => Need::Met(()),
            (Step::Down | Step::Unknown(..), None) => Need::Waits(NO_CONTROLLER),
            (Step::Down | Step::Unknown(..), Some(controller)) if !offers(controller, &record.order) => {
                Need::Waits(NOT_OFFERED)
            }
            (Step::Down | Step::Unknown(..), Some(_)) => {
                Need::Move(Move::Order(record.number, call_for(&record.order)))
            }
        }
    }

    /// The plugin has taken a snapshot. One that is not ready is asked for again, by its name, until it is (C100).
    pub(super) fn snapshot_taken(
        &mut self,
        moment: Moment,
        number: u64,
        snapshot: Arc<Snapshot>,
        effects: &mut Effects<Self>,
    ) {
        let (volume, what) = (self.record.spec.key.clone(), self.what(number));
        if snapshot.source_volume_id != self.record.spec.volume_id {
            let reason =
                "the plugin answered with a snapshot of another volume; look at the plugin what it made"
                    .to_owned();
            return self.fail_order(number, &OrderError::Refused { volume, what, reason }, effects);
        }
        if snapshot.ready_to_use {
            return self.finish_order(number, &Ok(Done::SnapshotTaken(snapshot)), effects);
        }
        self.await_snapshot(moment, number, &snapshot.snapshot_id);
    }
}

impl Volume {
    /// The plugin has the snapshot and goes on with it: it is asked for again after a pause. That is no failure.
    fn await_snapshot(&mut self, moment: Moment, number: u64, snapshot_id: &str) {
        let backoff = self.config.options.backoff;
        let Some(ordered) = self.ordered_mut(number) else { return };
        ordered.taken = Some(snapshot_id.into());
        if let Step::GoingUp(intent) = ordered.record.at_controller.clone() {
            ordered.record.at_controller = Step::Unknown(Towards::Up, intent);
        }
        ordered.tries.pauses(&backoff, moment);
    }
}

/// The call to the controller.
const fn call_for(order: &Order) -> Call {
    match order {
        Order::Expand { .. } => Call::ControllerExpandVolume,
        Order::TakeSnapshot { .. } => Call::CreateSnapshot,
        Order::DeleteSnapshot { .. } => Call::DeleteSnapshot,
        Order::Modify { .. } => Call::ControllerModifyVolume,
    }
}

/// The capability that it needs, by its name in the specification.
const fn needed(order: &Order) -> &'static str {
    match order {
        Order::Expand { .. } => "EXPAND_VOLUME",
        Order::TakeSnapshot { .. } | Order::DeleteSnapshot { .. } => "CREATE_DELETE_SNAPSHOT",
        Order::Modify { .. } => "MODIFY_VOLUME",
    }
}

fn offers(controller: &ControllerRoute, order: &Order) -> bool {
    match order {
        Order::Expand { .. } => controller.expands != Expands::Not,
        Order::TakeSnapshot { .. } | Order::DeleteSnapshot { .. } => controller.takes_snapshots,
        Order::Modify { .. } => controller.modifies,
    }
}

/// Checks the request by itself.
fn check(volume_id: &str, order: &Order) -> Result<(), Fault> {
    let secrets = Secrets::none;
    match order.clone() {
        Order::Expand { range } => range.check(),
        Order::TakeSnapshot { name, parameters } => {
            let source_volume_id = volume_id.to_owned();
            CreateSnapshotRequest { source_volume_id, name, secrets: secrets(), parameters }.check()
        }
        Order::DeleteSnapshot { snapshot_id } => {
            DeleteSnapshotRequest { snapshot_id, secrets: secrets() }.check()
        }
        Order::Modify { parameters: mutable_parameters } => {
            let volume_id = volume_id.to_owned();
            ControllerModifyVolumeRequest { volume_id, secrets: secrets(), mutable_parameters }.check()
        }
    }
}
