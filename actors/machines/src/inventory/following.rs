//! Follows the feeds of other actors.

use super::state::{Inventory, InventoryCall, InventoryOutcome, InventoryTimer, Source};
use crate::kernel::{CallLost, StepContext, await_news, follow_on};

impl Inventory {
    /// Follows an actor, if it is configured; `afresh` begins with a snapshot.
    pub(super) fn follow(&self, source: Source, afresh: bool, cx: &mut StepContext<Self>) {
        if self.follows.contains(&source) {
            await_news(InventoryCall::Follow { source, afresh }, cx);
        }
    }

    /// Handles the items of a feed, and waits for the next ones.
    pub(super) fn followed(
        &mut self,
        source: Source,
        outcome: &Result<InventoryOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let next = InventoryCall::Follow { source, afresh: false };
        follow_on(outcome, (next, InventoryTimer::Refollow(source)), cx, |outcome, cx| {
            match outcome {
                InventoryOutcome::Instances(Ok(items)) => items.iter().for_each(|item| self.heard(item, cx)),
                InventoryOutcome::Allocations(Ok(items)) => {
                    items.iter().for_each(|item| self.allocations_heard(item, cx));
                }
                InventoryOutcome::Drivers(Ok(items)) => {
                    items.iter().for_each(|item| self.drivers_heard(item, cx));
                }
                InventoryOutcome::Volumes(Ok(items)) => {
                    items.iter().for_each(|item| self.volumes_heard(item, cx));
                }
                // That actor is not running.
                InventoryOutcome::Instances(Err(_))
                | InventoryOutcome::Allocations(Err(_))
                | InventoryOutcome::Drivers(Err(_))
                | InventoryOutcome::Volumes(Err(_))
                | InventoryOutcome::DriversKnown(_) => return false,
            }
            true
        });
    }
}
