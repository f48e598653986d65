//! Ends and removes what allocations of earlier configurations left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callboard_actors::allocation;
use callboard_actors::registry::{Deregister, LeaveCause, List, Registry};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, PluginKey};

use super::claims;
use crate::agent::{self, AllocationConfig};
use crate::config::Config;
use crate::host::Host;
use crate::tasks::{self, TaskEnvironment};
use crate::volumes::Claimer;

/// The plugins that each allocation of the configuration serves.
type Served = BTreeMap<AllocationId, Vec<PluginKey>>;

/// In the background: ends and removes what earlier configurations left: their allocations, and registrations of the present allocations
/// for another plugin or role.
pub(super) fn sweep(config: &Config, host: &Host, claimer: Claimer, runtime_dir: PathBuf) {
    let (host, layout) = (host.clone(), claims::layout(config, &runtime_dir));
    let served = served(config);
    let configured: Vec<_> = served.keys().cloned().collect();
    actix_rt::spawn(async move {
        deregister(host.registry(), &served).await;
        let ended = agent::end_departed(host.processes(), &configured).await;
        claims::release_departed(&claimer, ended);
        let Some(layout) = layout else { return };
        for left in allocation::sweep(&layout, &configured).await {
            tracing::warn!(left, "cannot clean up after allocations that are not in the configuration");
        }
    });
}

/// Removes what a killed host left of allocations that this run does not start by itself. Must be called before anything else can start
/// them.
pub(super) async fn clear_idle(config: &Config, runtime_dir: &Path) {
    let Some(layout) = claims::layout(config, runtime_dir) else { return };
    let idle = config.allocations.iter().filter(|allocation| !allocation.start);
    let idle: Vec<_> = idle.map(|allocation| allocation.name.clone()).collect();
    for left in allocation::clear(&layout, &idle).await {
        tracing::warn!(left, "cannot clean up after allocations that are not started");
    }
}

fn served(config: &Config) -> Served {
    let allocations = config.allocations.iter();
    allocations.map(|allocation| (allocation.name.clone(), plugins(allocation).collect())).collect()
}

/// The plugins that an allocation serves.
pub(super) fn plugins(allocation: &AllocationConfig) -> impl Iterator<Item = PluginKey> + '_ {
    let types = allocation.role.plugin_types().iter();
    types.map(|kind| PluginKey::new(*kind, allocation.plugin.clone()))
}

/// Removes the registrations of an earlier run that the configuration does not have. Runs before processes are ended, because a living
/// process would confirm its registration (R8).
async fn deregister(registry: &Address<Registry>, served: &Served) {
    let entries = registry.ask(List).await.unwrap_or_default();
    let mut departed = Served::new();
    for registration in entries.iter().map(|entry| &entry.registration) {
        let (allocation, plugin) = (&registration.allocation, &registration.plugin);
        if !served.get(allocation).is_some_and(|plugins| plugins.contains(plugin)) {
            departed.entry(allocation.clone()).or_default().push(plugin.clone());
        }
    }
    for (allocation, plugins) in departed {
        let order = Deregister { plugins, allocation: allocation.clone(), cause: LeaveCause::Stopped };
        match registry.ask(order).await {
            Ok(_) => {
                tracing::info!(%allocation, "removed a registration that is no longer in the configuration")
            }
            Err(error) => {
                tracing::warn!(%allocation, %error, "cannot remove a registration that is no longer in the configuration")
            }
        }
    }
}

/// In the background: removes what is left of tasks that are no longer known.
pub(super) fn sweep_tasks(config: &Config, host: &Host, environment: TaskEnvironment) {
    let configured: Vec<_> = config.tasks.iter().map(|task| task.name.clone()).collect();
    let database = host.own_database().clone();
    actix_rt::spawn(async move {
        match tasks::recorded(&database).await {
            Ok(mut known) => {
                known.extend(configured);
                environment.sweep(known).await;
            }
            Err(error) => tracing::warn!(%error, "cannot search for leftovers of ended tasks"),
        }
    });
}
