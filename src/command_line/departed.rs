//! What allocations of earlier configurations left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callboard_actors::allocation;
use callboard_actors::registry::{Deregister, LeaveCause, List, Registry};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, PluginKey};

use super::claims;
use crate::agent;
use crate::config::Config;
use crate::host::Host;
use crate::volumes::Claimer;

/// Ends and removes beside everything else what allocations of earlier configurations left.
pub(super) fn sweep(config: &Config, host: &Host, claimer: Claimer, runtime_dir: PathBuf) {
    let (host, layout) = (host.clone(), claims::layout(config, &runtime_dir));
    let configured: Vec<_> = config.allocations.iter().map(|allocation| allocation.name.clone()).collect();
    actix_rt::spawn(async move {
        deregister(host.registry(), &configured).await;
        let ended = agent::end_departed(host.processes(), &configured).await;
        claims::release_departed(&claimer, ended);
        let Some(layout) = layout else { return };
        for left in allocation::sweep(&layout, &configured).await {
            tracing::warn!(left, "cannot clean up after allocations that the configuration does not have");
        }
    });
}

/// Removes what a host that was killed left of allocations that this run does not start by itself. To be called before anything else can
/// start them.
pub(super) async fn clear_idle(config: &Config, runtime_dir: &Path) {
    let Some(layout) = claims::layout(config, runtime_dir) else { return };
    let idle = config.allocations.iter().filter(|allocation| !allocation.start);
    let idle: Vec<_> = idle.map(|allocation| allocation.name.clone()).collect();
    for left in allocation::clear(&layout, &idle).await {
        tracing::warn!(left, "cannot clean up after allocations that are not started");
    }
}

/// Removes what an earlier run registered of them, before their processes are ended: one that still lives would confirm that (R8).
async fn deregister(registry: &Address<Registry>, configured: &[AllocationId]) {
    let entries = registry.ask(List).await.unwrap_or_default();
    let mut departed: BTreeMap<AllocationId, Vec<PluginKey>> = BTreeMap::new();
    for registration in entries.iter().map(|entry| &entry.registration) {
        if !configured.contains(&registration.allocation) {
            departed.entry(registration.allocation.clone()).or_default().push(registration.plugin.clone());
        }
    }
    for (allocation, plugins) in departed {
        let order = Deregister { plugins, allocation: allocation.clone(), cause: LeaveCause::Stopped };
        match registry.ask(order).await {
            Ok(_) => {
                tracing::info!(%allocation, "the registration of an allocation was removed that the configuration does not have")
            }
            Err(error) => {
                tracing::warn!(%allocation, %error, "the registration of an allocation that the configuration does not have cannot be removed")
            }
        }
    }
}
