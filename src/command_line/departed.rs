//! What allocations of earlier configurations left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callboard_actors::allocation;
use callboard_actors::processes::ListProcesses;
use callboard_actors::registry::{Deregister, LeaveCause, List, Registry};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, PluginKey};

use super::claims;
use crate::agent;
use crate::config::{Config, process_name};
use crate::host::Host;
use crate::volumes::Claimer;

/// Ends and removes beside everything else what allocations of earlier configurations left.
pub(super) fn sweep(config: &Config, host: &Host, claimer: Claimer, runtime_dir: PathBuf) {
    let (host, layout) = (host.clone(), claims::layout(config, &runtime_dir));
    let configured: Vec<_> = config.allocations.iter().map(|allocation| allocation.name.clone()).collect();
    actix_rt::spawn(async move {
        // Before their processes are ended: one that still lives would confirm its registration (R8).
        let departed = (LeaveCause::Stopped, "the configuration does not have its allocation");
        deregister(host.registry(), |allocation| !configured.contains(allocation), departed).await;
        let ended = agent::end_departed(host.processes(), &configured).await;
        claims::release_departed(&claimer, ended);
        let Some(layout) = layout else { return };
        for left in allocation::sweep(&layout, &configured).await {
            tracing::warn!(left, "cannot clean up after allocations that the configuration does not have");
        }
    });
}

/// Removes what a host that was killed left of allocations that this run does not start by itself: their registrations, which would be
/// waited for otherwise, and what is in the runtime directory. To be called before anything else can start them.
pub(super) async fn clear_idle(config: &Config, host: &Host, runtime_dir: &Path) {
    let idle = config.allocations.iter().filter(|allocation| !allocation.start);
    let idle: Vec<_> = idle.map(|allocation| allocation.name.clone()).collect();
    // One that survived the host is adopted, and its registration keeps its place.
    let processes = host.processes().ask(ListProcesses).await.unwrap_or_default();
    let is_dead = |allocation: &AllocationId| {
        process_name(allocation).is_ok_and(|name| processes.iter().all(|process| process.name != name))
    };
    let unstarted = (LeaveCause::NotStarted, "its allocation is not started");
    deregister(host.registry(), |allocation| idle.contains(allocation) && is_dead(allocation), unstarted)
        .await;
    let Some(layout) = claims::layout(config, runtime_dir) else { return };
    for left in allocation::clear(&layout, &idle).await {
        tracing::warn!(left, "cannot clean up after allocations that are not started");
    }
}

/// Removes what an earlier run registered of these allocations.
async fn deregister(
    registry: &Address<Registry>,
    is_left: impl Fn(&AllocationId) -> bool,
    (cause, why): (LeaveCause, &str),
) {
    let entries = registry.ask(List).await.unwrap_or_default();
    let mut left: BTreeMap<AllocationId, Vec<PluginKey>> = BTreeMap::new();
    for registration in entries.iter().map(|entry| &entry.registration) {
        if is_left(&registration.allocation) {
            left.entry(registration.allocation.clone()).or_default().push(registration.plugin.clone());
        }
    }
    for (allocation, plugins) in left {
        let order = Deregister { plugins, allocation: allocation.clone(), cause };
        match registry.ask(order).await {
            Ok(_) => {
                tracing::info!(%allocation, why, "a registration of an earlier run was removed");
            }
            Err(error) => {
                tracing::warn!(%allocation, why, %error, "a registration of an earlier run cannot be removed");
            }
        }
    }
}
