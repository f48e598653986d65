//! Orders that the controller alone carries out: snapshots, and changed parameters.

use std::sync::Arc;

use super::moves::Move;
use super::order::{Order, OrderRecord};
use super::order_messages::{Done, OrderError};
use super::outcome::{ControllerRoute, Expands};
use super::planning::{IN_FLIGHT, NO_CONTROLLER, Need};
use super::record::{Step, Towards};
use super::state::Volume;
use crate::csi::Snapshot;
use crate::kernel::Effects;
use crate::vocabulary::Moment;

const NOT_OFFERED: &str = "the plugin does not offer that any more";

impl Volume {
    /// Whether such an order can be placed with the plugin, as far as is known.
    pub(super) fn admit_at_controller(&self, order: &Order, what: String) -> Result<(), OrderError> {
        match self.controller().filter(|controller| !offers(controller, order)) {
            Some(_) => {
                let volume = self.record.spec.key.clone();
                Err(OrderError::Unsupported { volume, what, needed: order.needed() })
            }
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
                Need::Move(Move::Order(record.number, record.order.call()))
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

fn offers(controller: &ControllerRoute, order: &Order) -> bool {
    match order {
        Order::Expand { .. } => controller.expands != Expands::Not,
        Order::TakeSnapshot { .. } | Order::DeleteSnapshot { .. } => controller.takes_snapshots,
        Order::Modify { .. } => controller.modifies,
    }
}
