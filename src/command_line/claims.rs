//! After the start of `callboard run`: which claims of an earlier run to volumes are kept, and what is known of the configured volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::agent::{Agent, ListTasks, TaskReport};
use callboard_actors::allocation::{self, Layout};
use callboard_actors::processes::ListProcesses;
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, PluginName, PluginType, Role};
use callboard_actors::volume::{ObservedEnd, VolumeKey};
use callboard_actors::volumes::Volumes;
use futures_util::future::join;
use tokio::time::sleep;

use crate::agent::VolumeClaims;
use crate::config::{Config, PROCESS_PREFIX};
use crate::host::Host;
use crate::tasks;
use crate::volumes::{self, Claimer, ConfiguredSecrets, KnownUsers};

/// The pause before the processes are queried again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of a departed allocation waits until its volumes are released; the release goes on.
const RELEASE_WITHIN: Duration = Duration::from_secs(20);

/// In the background: reports to the owner of the volumes which allocations and tasks of an earlier run may have processes. Without
/// that it keeps all of their claims. It always keeps those of other users: only an operator knows when their processes have ended.
/// `departed` was determined before anything of these allocations was removed.
pub(super) fn confirm(host: &Host, agent: &Address<Agent>, config: &Config, departed: &[AllocationId]) {
    let (host, agent, departed) = (host.clone(), agent.clone(), departed.to_vec());
    let claiming = config.allocations.iter().filter(|allocation| !allocation.volumes.is_empty());
    let claiming: BTreeSet<_> = claiming.map(|allocation| allocation.name.clone()).collect();
    actix_rt::spawn(async move {
        let users = loop {
            match users(&host, &agent, &claiming).await {
                Ok(mut users) => {
                    users.own.extend(departed);
                    break users;
                }
                Err(error) => {
                    tracing::warn!(
                        error,
                        "cannot tell which claims of the earlier run are in use; keeping all of them, retrying"
                    );
                }
            }
            sleep(PAUSE).await;
        };
        volumes::confirm(host.volumes(), &users).await;
    });
}

/// The allocations that an earlier run has left, without a process, and that the configuration does not have.
pub(super) async fn departed(config: &Config, runtime_dir: &Path) -> Vec<AllocationId> {
    let configured: Vec<_> = config.allocations.iter().map(|allocation| allocation.name.clone()).collect();
    match layout(config, runtime_dir) {
        Some(layout) => allocation::departed(&layout, &configured).await,
        None => Vec::new(),
    }
}

/// Where allocations have their directories. The host has accepted both directories.
pub(super) fn layout(config: &Config, runtime_dir: &Path) -> Option<Layout> {
    let data_dir = std::path::absolute(&config.data_dir).ok()?;
    Layout::new(data_dir, runtime_dir).ok()
}

/// In the background: records the secret keys of the configured volumes. What cannot be recorded now is recorded before the first call
/// with secrets.
pub(super) fn keep_keys(secrets: Arc<ConfiguredSecrets>) -> Arc<ConfiguredSecrets> {
    let keeping = Arc::clone(&secrets);
    actix_rt::spawn(async move {
        if let Err(error) = keeping.keep().await {
            tracing::warn!(
                %error,
                "cannot record the secret keys of the configured volumes; they are recorded before the first call with secrets"
            );
        }
    });
    secrets
}

/// The volumes that allocations and tasks of the configuration use, each with the words for one of those.
pub(super) fn volume_users(config: &Config) -> BTreeMap<VolumeKey, String> {
    let of_tasks = config.tasks.iter().flat_map(|task| {
        task.volumes.iter().map(|used| (used.volume.clone(), format!("task {}", task.name)))
    });
    let of_allocations = config.allocations.iter().flat_map(|allocation| {
        allocation.volumes.iter().map(|used| (used.volume.clone(), format!("allocation {}", allocation.name)))
    });
    of_tasks.chain(of_allocations).collect()
}

/// The plugins that an allocation of the configuration serves as controller.
pub(super) fn controllers(config: &Config) -> BTreeSet<PluginName> {
    let serves = |role: Role| role.plugin_types().contains(&PluginType::CsiController);
    let serving = config.allocations.iter().filter(|allocation| serves(allocation.role));
    serving.map(|allocation| allocation.plugin.clone()).collect()
}

/// Through whom the agent claims the volumes of allocations.
pub(super) fn of_allocations(config: &Config) -> impl Fn(&Host) -> Rc<dyn VolumeClaims> + use<> {
    let volumes = config.volumes.clone();
    move |host| Rc::new(Claimer::new(host.volumes().clone(), &volumes))
}

/// In the background: registers the volumes of the configuration, and watches all volumes.
pub(super) fn attend(claimer: &Claimer, volumes: &Address<Volumes>, config: &Config) {
    let (claimer, volumes) = (claimer.clone(), volumes.clone());
    let served = config.allocations.iter().map(|allocation| allocation.plugin.clone()).collect();
    actix_rt::spawn(async move {
        join(claimer.register(), volumes::watch(&volumes, &served)).await;
    });
}

/// What the host runs or ran itself, as far as it is known: allocations of the configuration, and tasks on disk. Of these the ones that
/// may have processes: tasks with a run on disk, allocations with volumes that run or are meant to, and what survived an earlier run of the
/// host. Rather one too many: its claims are then released when it has ended. What an allocation without volumes was started with in this
/// run does not use those of an earlier one.
async fn users(
    host: &Host,
    agent: &Address<Agent>,
    claiming: &BTreeSet<AllocationId>,
) -> Result<KnownUsers, String> {
    let mut own = tasks::recorded(host.own_database()).await?;
    let mut living = tasks::running(host.own_database()).await?;
    let allocations = agent.ask(ListTasks).await.map_err(|error| error.to_string())?;
    own.extend(allocations.iter().map(|task| task.allocation.clone()));
    let is_using =
        |task: &TaskReport| claiming.contains(&task.allocation) && (task.pid.is_some() || task.is_wanted);
    living.extend(allocations.into_iter().filter(is_using).map(|task| task.allocation));
    let processes = host.processes().ask(ListProcesses).await.map_err(|error| error.to_string())?;
    let names = processes.iter().filter_map(|process| process.name.as_str().strip_prefix(PROCESS_PREFIX));
    living.extend(names.filter_map(|name| AllocationId::new(name).ok()));
    Ok(KnownUsers { own, living })
}

/// Releases, beside everything else, the volumes of allocations that the configuration does not have, and whose processes have ended.
pub(super) fn release_departed(claimer: &Claimer, ended: Vec<AllocationId>) {
    for allocation in ended {
        let claimer = claimer.clone();
        actix_rt::spawn(async move {
            claimer.release_until_recorded(&allocation, ObservedEnd::Exited, RELEASE_WITHIN).await;
        });
    }
}
