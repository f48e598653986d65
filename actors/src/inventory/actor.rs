//! The effect handler of the inventory: follows the instances, and logs each offer.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use tracing::field::display;

use super::{
    FirstSummary, Inventory, InventoryCall, InventoryConfig, InventoryNews, InventoryOptions,
    InventoryOutcome, Offer, Source,
};
use crate::allocations::Allocations;
use crate::drivers::{AwaitDrivers, Drivers, ListDrivers};
use crate::instances::Instances;
use crate::shell::{
    Address, EffectHandler, Follower, NoStore, Running, Settings, Started, start as start_machine,
};
use crate::volumes::Volumes;

/// The actors that an inventory follows besides the instances.
#[derive(Debug, Clone, Default)]
pub struct Besides {
    /// The owner of the drivers.
    pub drivers: Option<Address<Drivers>>,
    /// The owner of the allocations.
    pub allocations: Option<Address<Allocations>>,
    /// The owner of the volumes.
    pub volumes: Option<Address<Volumes>>,
}

/// Starts the inventory at a vacant address. It follows `instances`, whether these run already or start later; with `drivers` it offers
/// them too, and its first wait covers the drivers that their owner has or expects; with `allocations` it covers the prepared allocations;
/// with `volumes` it reports how many are in use.
pub fn start(
    address: &Address<Inventory>,
    instances: Address<Instances>,
    besides: Besides,
    options: InventoryOptions,
    settings: Settings,
) -> Running {
    let Besides { drivers, allocations, volumes } = besides;
    let others = [
        (Source::Allocations, allocations.is_some()),
        (Source::Drivers, drivers.is_some()),
        (Source::Volumes, volumes.is_some()),
    ];
    let config = InventoryConfig::new(options, others);
    let volumes = volumes.map(|volumes| Follower::new("inventory", volumes));
    let allocations = allocations.map(|allocations| Follower::new("inventory", allocations));
    let drivers = drivers.map(|drivers| (drivers.clone(), Follower::new("inventory", drivers)));
    let handler = Handler { instances: Follower::new("inventory", instances), drivers, allocations, volumes };
    start_machine(address, config, handler, NoStore, settings)
}

struct Handler {
    instances: Follower<Instances>,
    drivers: Option<(Address<Drivers>, Follower<Drivers>)>,
    allocations: Option<Follower<Allocations>>,
    volumes: Option<Follower<Volumes>>,
}

impl Handler {
    /// Waits for the next items of a feed. `None`: there is no actor of this kind.
    fn follow(&mut self, source: Source, afresh: bool) -> Option<LocalBoxFuture<'static, InventoryOutcome>> {
        Some(match source {
            Source::Instances => self.instances.follow(afresh).map(InventoryOutcome::Instances).boxed_local(),
            Source::Allocations => {
                self.allocations.as_mut()?.follow(afresh).map(InventoryOutcome::Allocations).boxed_local()
            }
            Source::Drivers => {
                self.drivers.as_mut()?.1.follow(afresh).map(InventoryOutcome::Drivers).boxed_local()
            }
            Source::Volumes => {
                self.volumes.as_mut()?.follow(afresh).map(InventoryOutcome::Volumes).boxed_local()
            }
        })
    }

    /// Waits until it is known for every driver whether it serves. `None`: there is no owner of drivers.
    fn await_drivers(&self, within: Duration) -> Option<LocalBoxFuture<'static, InventoryOutcome>> {
        let drivers = self.drivers.as_ref()?.0.clone();
        let summary = drivers.ask(AwaitDrivers { within });
        let known = summary.and_then(|summary| async move {
            let reports = drivers.ask(ListDrivers).await?;
            Ok((summary, reports))
        });
        Some(known.map(InventoryOutcome::DriversKnown).boxed_local())
    }
}

impl EffectHandler<Inventory> for Handler {
    fn call(&mut self, call: InventoryCall) -> Started<InventoryOutcome> {
        let outcome = match call {
            InventoryCall::Follow { source, afresh } => self.follow(source, afresh),
            InventoryCall::AwaitDrivers { within } => self.await_drivers(within),
        };
        // Without that actor there is nothing to receive.
        Started::Running(outcome.unwrap_or_else(|| std::future::pending().boxed_local()))
    }

    fn published(&mut self, news: &InventoryNews) {
        match news {
            InventoryNews::First(_, summary) => log_first(summary),
            InventoryNews::Changed(Offer { plugin, allocation, generation, health, .. }) => {
                let (allocation, health) = (allocation.as_ref().map(display), health.as_str());
                tracing::info!(%plugin, allocation, generation = generation.get(), health, "offer changed");
            }
            InventoryNews::Removed(Offer { plugin, allocation, generation, .. }) => {
                let allocation = allocation.as_ref().map(display);
                tracing::info!(%plugin, allocation, generation = generation.get(), "offer removed");
            }
            InventoryNews::VolumesUsed { plugin, in_use } => {
                tracing::debug!(%plugin, in_use, "volumes in use changed");
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
    // An undetected driver runs and has nothing to drive; an undetected CSI plugin is gone.
    let (gone, undetected): (Vec<_>, Vec<_>) =
        undetected.iter().partition(|plugin| plugin.plugin_type.is_csi());
    for plugin in &gone {
        tracing::warn!(%plugin, state = "gone", "first fingerprint");
    }
    for plugin in &undetected {
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
        gone = gone.len(),
        undetected = undetected.len(),
        no_answer = no_answer.len(),
        missing = missing.len(),
        "first fingerprints are published"
    );
}
