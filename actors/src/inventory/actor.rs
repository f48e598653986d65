//! What the inventory does: it listens to the instances, and logs what it finds.

use futures_util::future::LocalBoxFuture;

use super::messages::{FirstSummary, InventoryNews, Offer};
use super::state::{Inventory, InventoryCall, InventoryConfig, InventoryOptions, InventoryOutcome};
use crate::driver::DriverReport;
use crate::drivers::Drivers;
use crate::instances::Instances;
use crate::shell::{Address, Doing, Follower, NoStore, Running, Settings, start as start_machine};

/// Starts the inventory and gives it a seat at a vacant address. It follows `instances`, whether these run already or come
/// later; and so the drivers, if the host has any.
pub fn start(
    address: &Address<Inventory>,
    instances: Address<Instances>,
    drivers: Option<Address<Drivers>>,
    options: InventoryOptions,
    settings: Settings,
) -> Running {
    let config = InventoryConfig { options, follows_drivers: drivers.is_some() };
    let hands = Hands { instances: Follower::new(instances), drivers: drivers.map(Follower::new) };
    start_machine(address, config, hands, NoStore, settings)
}

struct Hands {
    instances: Follower<Instances>,
    drivers: Option<Follower<Drivers>>,
}

impl Doing<Inventory> for Hands {
    fn call(&mut self, call: InventoryCall) -> LocalBoxFuture<'static, InventoryOutcome> {
        match (call, &mut self.drivers) {
            (InventoryCall::Follow { afresh }, _) => {
                let followed = self.instances.follow(afresh);
                Box::pin(async move { InventoryOutcome::Instances(followed.await) })
            }
            (InventoryCall::FollowDrivers { afresh }, Some(drivers)) => {
                let followed = drivers.follow(afresh);
                Box::pin(async move { InventoryOutcome::Drivers(followed.await) })
            }
            // They are not asked for where there are none.
            (InventoryCall::FollowDrivers { .. }, None) => Box::pin(std::future::pending()),
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
            InventoryNews::DriverChanged(DriverReport { name: driver, health, reason, .. }) => {
                tracing::info!(%driver, %health, reason, "driver changed");
            }
            InventoryNews::DriverRemoved(driver) => tracing::info!(%driver, "driver removed"),
        }
    }
}

/// Names every plugin with its state at the end of the first wait (N2).
fn log_first(summary: &FirstSummary) {
    let FirstSummary { healthy, unhealthy, undetected, no_answer } = summary;
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
    tracing::info!(
        healthy = healthy.len(),
        unhealthy = unhealthy.len(),
        undetected = undetected.len(),
        no_answer = no_answer.len(),
        "first fingerprints are published"
    );
}
