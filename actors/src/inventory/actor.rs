//! What the inventory does: it listens to the instances, and logs what it finds.

use futures_util::future::LocalBoxFuture;

use super::messages::{FirstSummary, InventoryNews, Offer};
use super::state::{InstancesItem, Inventory, InventoryCall, InventoryOptions};
use crate::instances::Instances;
use crate::shell::{Address, AskError, Doing, Follower, NoStore, Running, Settings, start as start_machine};

/// Starts the inventory and gives it a seat at a vacant address. It follows `instances`, whether these run already or come
/// later.
pub fn start(
    address: &Address<Inventory>,
    instances: Address<Instances>,
    options: InventoryOptions,
    settings: Settings,
) -> Running {
    start_machine(address, options, Hands { instances: Follower::new(instances) }, NoStore, settings)
}

struct Hands {
    instances: Follower<Instances>,
}

impl Doing<Inventory> for Hands {
    fn call(&mut self, call: InventoryCall) -> LocalBoxFuture<'static, Result<Vec<InstancesItem>, AskError>> {
        let InventoryCall::Follow { afresh } = call;
        self.instances.follow(afresh)
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
