//! Decides after the start of `callboard run` which volume claims of an earlier run are kept, and registers the configured volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::agent::{Agent, ListTasks, TaskReport};
use callboard_actors::allocation::{self, Layout};
use callboard_actors::process::ProcessReport;
use callboard_actors::processes::ListProcesses;
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::{AllocationId, PluginName, PluginType, Role};
use callboard_actors::volume::{ObservedEnd, VolumeKey};
use callboard_actors::volumes::Volumes;
use futures_util::future::join;

use crate::agent::VolumeClaims;
use crate::config::{Config, PROCESS_PREFIX};
use crate::host::Host;
use crate::tasks;
use crate::volumes::{self, Claimer, ConfiguredSecrets, KnownUsers};

/// How long to wait, after the end of a departed allocation, for the release of its volumes; then the release continues.
const RELEASE_WITHIN: Duration = Duration::from_secs(20);

/// In the background: reports to the owner of the volumes which allocations and tasks of an earlier run may have processes. Without this
/// report it keeps all of their claims. It always keeps the claims of other users: only an operator knows when their processes have ended.
/// `departed` was determined before anything of these allocations was removed.
pub(super) fn confirm(host: &Host, agent: &Address<Agent>, config: &Config, departed: &[AllocationId]) {
    let (host, agent, departed) = (host.clone(), agent.clone(), departed.to_vec());
    let claiming = config.allocations.iter().filter(|allocation| !allocation.volumes.is_empty());
    let claiming: BTreeSet<_> = claiming.map(|allocation| allocation.name.clone()).collect();
    actix_rt::spawn(async move {
        let users = async || {
            let mut users = users(&host, &agent, &claiming).await?;
            users.own.extend(departed.iter().cloned());
            Ok(users)
        };
        volumes::confirm(host.volumes(), users).await;
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

/// The layout of the directories of allocations. The host has accepted both directories.
pub(super) fn layout(config: &Config, runtime_dir: &Path) -> Option<Layout> {
    let data_dir = std::path::absolute(&config.data_dir).ok()?;
    Layout::new(data_dir, runtime_dir).ok()
}

/// In the background: records the secret keys of the configured volumes. Keys that cannot be recorded now are recorded before the first
/// call with secrets.
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

/// The volumes that allocations and tasks of the configuration use, each with a description of one of these users.
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

/// The claimer through which the agent claims the volumes of allocations.
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

/// The workloads that the host runs or ran itself, if known: allocations of the configuration, and tasks on disk.
async fn users(
    host: &Host,
    agent: &Address<Agent>,
    claiming: &BTreeSet<AllocationId>,
) -> Result<KnownUsers, String> {
    let mut known = KnownUsers {
        own: tasks::recorded(host.own_database()).await?,
        living: tasks::running(host.own_database()).await?,
        unsettled: BTreeSet::new(),
    };
    let allocations = agent.ask(ListTasks).await.map_err(|error| error.to_string())?;
    let processes = host.processes().ask(ListProcesses).await.map_err(|error| error.to_string())?;
    add_allocations(&mut known, &allocations, &processes, claiming);
    Ok(known)
}

/// Adds the allocations that may have processes: with volumes and running or meant to run, or with a process that was adopted. If in doubt
/// an allocation is added: its claims are then released when it has ended. A process that this run has launched for an allocation without
/// volumes uses no volume of an earlier run.
fn add_allocations(
    known: &mut KnownUsers,
    allocations: &[TaskReport],
    processes: &[ProcessReport],
    claiming: &BTreeSet<AllocationId>,
) {
    known.own.extend(allocations.iter().map(|task| task.allocation.clone()));
    let is_using =
        |task: &&TaskReport| claiming.contains(&task.allocation) && (task.pid.is_some() || task.is_wanted);
    known.living.extend(allocations.iter().filter(is_using).map(|task| task.allocation.clone()));
    for process in processes {
        let name = process.name.as_str().strip_prefix(PROCESS_PREFIX);
        let Some(Ok(allocation)) = name.map(AllocationId::new) else { continue };
        if process.is_adopted {
            known.living.insert(allocation);
        } else if process.is_unsettled {
            known.unsettled.insert(allocation);
        }
    }
}

/// In the background: releases the volumes of allocations that the configuration does not have, and whose processes have ended.
pub(super) fn release_departed(claimer: &Claimer, ended: Vec<AllocationId>) {
    for allocation in ended {
        let claimer = claimer.clone();
        actix_rt::spawn(async move {
            claimer.release_until_recorded(&allocation, ObservedEnd::Exited, RELEASE_WITHIN).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::agent::TaskPhase;
    use callboard_actors::allocation::RestartWhen;
    use callboard_actors::process::{Lifetime, ProcessName, ProcessPhase, ProcessTag, Reach};
    use callboard_actors::vocabulary::{Attempt, Probing, Timestamp};

    use super::*;

    fn allocation(name: &str) -> TaskReport {
        TaskReport {
            allocation: AllocationId::new(name).expect("it is an id"),
            plugin: PluginName::new("web").expect("it is a name"),
            role: Role::Node,
            phase: TaskPhase::Running,
            since: Timestamp::default(),
            pid: Some(1),
            restarts: 0,
            last_event: String::new(),
            is_wanted: true,
            attempt: Attempt::default(),
            restart_when: RestartWhen::Never,
            probing: Probing::default(),
            survives: true,
            exit: None,
            due: None,
            stopping: None,
            ended: vec![],
        }
    }

    fn process(name: &str, is_adopted: bool, is_unsettled: bool) -> ProcessReport {
        ProcessReport {
            name: ProcessName::new(format!("{PROCESS_PREFIX}{name}")).expect("it is a name"),
            tag: ProcessTag::new([1; 16]),
            pid: Some(1),
            phase: ProcessPhase::Ready,
            since: Timestamp::default(),
            started_at: Timestamp::default(),
            lifetime: Lifetime::Surviving,
            reach: Reach::Group,
            is_adopted,
            is_unsettled,
            lines_dropped: 0,
            bytes_dropped: 0,
        }
    }

    #[test]
    fn a_process_of_this_run_keeps_no_claim_of_an_earlier_one_without_volumes_v8_v14() {
        let ids = |names: &[&str]| -> BTreeSet<_> {
            names.iter().map(|name| AllocationId::new(name).expect("it is an id")).collect()
        };
        let all = ["claiming", "launched", "adopted", "ending"];
        let allocations = all.map(allocation);
        let processes = [
            process("claiming", false, false),
            process("launched", false, false),
            process("adopted", true, false),
            process("ending", false, true),
        ];
        let mut known = KnownUsers::default();
        add_allocations(&mut known, &allocations, &processes, &ids(&["claiming"]));
        let living = ids(&["adopted", "claiming"]);
        assert_eq!(known, KnownUsers { own: ids(&all), living, unsettled: ids(&["ending"]) });
    }
}
