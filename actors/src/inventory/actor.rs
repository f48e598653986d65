//! What the inventory does: it listens to the instances, and logs what it finds.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{
    FirstSummary, Inventory, InventoryCall, InventoryNews, InventoryOptions, InventoryOutcome, Offer,
};
use crate::allocations::Allocations;
use crate::drivers::{AwaitDrivers, DriverSummary, Drivers};
use crate::instances::Instances;
use crate::shell::{Address, EffectHandler, Follower, NoStore, Running, Settings, start as start_machine};

/// Starts the inventory and gives it a seat at a vacant address. It follows `instances`, whether these run already or come
/// later; with `drivers` its first wait covers those that their owner has or expects, and with `allocations` those that are prepared.
pub fn start(
    address: &Address<Inventory>,
    instances: Address<Instances>,
    (drivers, allocations): (Option<Address<Drivers>>, Option<Address<Allocations>>),
    options: InventoryOptions,
    settings: Settings,
) -> Running {
    let (awaits_drivers, follows_allocations) = (drivers.is_some(), allocations.is_some());
    let options = InventoryOptions { awaits_drivers, follows_allocations, ..options };
    let allocations = allocations.map(|allocations| Follower::new("inventory", allocations));
    let handler = Handler { instances: Follower::new("inventory", instances), drivers, allocations };
    start_machine(address, options, handler, NoStore, settings)
}

struct Handler {
    instances: Follower<Instances>,
    drivers: Option<Address<Drivers>>,
    allocations: Option<Follower<Allocations>>,
}

impl EffectHandler<Inventory> for Handler {
    fn call(&mut self, call: InventoryCall) -> LocalBoxFuture<'static, InventoryOutcome> {
        match (call, &self.drivers) {
            (InventoryCall::Follow { afresh }, _) => {
                self.instances.follow(afresh).map(InventoryOutcome::Heard).boxed_local()
            }
            (InventoryCall::FollowAllocations { afresh }, _) => match &mut self.allocations {
                Some(allocations) => {
                    allocations.follow(afresh).map(InventoryOutcome::Allocations).boxed_local()
                }
                None => std::future::pending().boxed_local(),
            },
            (InventoryCall::AwaitDrivers { within }, Some(drivers)) => {
                drivers.ask(AwaitDrivers { within }).map(InventoryOutcome::Drivers).boxed_local()
            }
            (InventoryCall::AwaitDrivers { .. }, None) => {
                let nobody = Ok(DriverSummary::default());
                std::future::ready(InventoryOutcome::Drivers(nobody)).boxed_local()
            }
        }
    }

    fn published(&mut self, news: &InventoryNews) {
        match news {
            InventoryNews::First(_, summary) => log_first(summary),
            InventoryNews::Changed(Offer { plugin, allocation, generation, health, .. }) => {
                let health = health.as_str();
                tracing::info!(%plugin, %allocation, %generation, health, "offer changed");
            }
            InventoryNews::Removed(Offer { plugin, allocation, generation, .. }) => {
                tracing::info!(%plugin, %allocation, %generation, "offer removed");
            }
        }
    }
}

/// Names every plugin with its state at the end of the first wait (N2).
fn log_first(summary: &FirstSummary) {
    let FirstSummary { healthy, unhealthy, undetected, no_answer, missing } = summary;
    for plugin in healthy {
        tracing::info!(%plugin, state = "healthy", "first fingerprint");
    }
    for (plugin, reason) in unhealthy {
        tracing::warn!(%plugin, state = "unhealthy", error = %reason, "first fingerprint");
    }
    for plugin in undetected {
        tracing::info!(%plugin, state = "undetected", "first fingerprint");
    }
    for plugin in no_answer {
        tracing::warn!(%plugin, state = "no answer yet", "first fingerprint");
    }
    for (plugin, allocation) in missing {
        tracing::warn!(%plugin, %allocation, state = "no answer yet", "first fingerprint of an allocation");
    }
    tracing::info!(
        healthy = healthy.len(),
        unhealthy = unhealthy.len(),
        undetected = undetected.len(),
        no_answer = no_answer.len(),
        missing = missing.len(),
        "first fingerprints are published"
    );
}
