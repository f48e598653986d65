//! The tasks as a part of the host of `callboard run`: one node of the tree for each.

use std::path::PathBuf;
use std::sync::Arc;

use callboard_actors::leftovers::BootClock;
use callboard_actors::logmon::Logs;
use callboard_actors::process::{boot_id, since_boot};
use callboard_actors::shell::{Address, Clock};
use callboard_actors::supervisor::TreeNode;
use callboard_actors::topology::Topology;

use super::actor::start;
use super::cores::CoreLedger;
use super::ground::Ground;
use super::host::HostRunners;
use super::identity::TaskIdentities;
use super::messages::{ListTasks, TaskReport};
use super::node::{node_facts, task_node};
use super::plugins::Plugins;
use super::prepare::Preparer;
use super::state::{Tasks, TasksOptions};
use super::store::TasksStore;
use crate::config::Config;
use crate::host::{Part, PartContext};

/// Tasks are stopped through their drivers, so they end before them; until then plugins may have to be looked for.
pub(crate) fn part(
    address: &Address<Tasks>,
    config: Config,
    (topology, ground, logs): (Arc<Topology>, Ground, Logs),
) -> Part<Tasks> {
    Part::remembering(address, move |address, context| {
        let (runners, store) = surroundings(&config, context, (&topology, &ground, &logs));
        let (address, settings) = (address.clone(), context.settings());
        let options = TasksOptions {
            tasks: config.tasks.iter().cloned().map(Arc::new).collect(),
            drivers: config.drivers.iter().map(|driver| (driver.name.clone(), driver.into())).collect(),
            restart: config.restart,
            identities: TaskIdentities::of_owner(context.host().owner_mark()),
            boot: boot_clock(&settings.clock),
        };
        move || Ok(start(&address, options.clone(), runners.clone(), store.clone(), settings.clone()))
    })
    .after("drivers")
    .after("catalog")
    .described_by(|| ListTasks, |tasks| tasks.into_iter().map(node).collect())
}

/// What outlives a single life of the tasks.
fn surroundings(
    config: &Config,
    context: &PartContext,
    (topology, ground, logs): (&Arc<Topology>, &Ground, &Logs),
) -> (HostRunners, TasksStore) {
    let host = context.host();
    let identities = TaskIdentities::of_owner(host.owner_mark());
    let plugins =
        Plugins::new(config, host.catalog().clone(), own_program(), node_facts(&config.host, topology));
    let node = task_node(config, Arc::clone(topology), &identities);
    let cores = CoreLedger::default();
    let makers = (cores.clone(), ground.clone(), logs.clone());
    let preparer = Preparer::new(config, identities.clone(), node, makers);
    let runners = HostRunners::new(host.drivers().clone(), plugins, preparer, &identities);
    (runners, TasksStore::new(host.database(), cores))
}

/// How such a clock is tied to the present boot.
fn boot_clock(clock: &Clock) -> Option<BootClock> {
    let (boot, since_boot) = (boot_id().ok()?, since_boot());
    Some(BootClock { boot, since_boot, now: clock.now() })
}

/// The file of this program, which is a plugin too.
fn own_program() -> PathBuf {
    // Should the file have been moved, this path leads nowhere, and starting the plugin says so.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

fn node(task: TaskReport) -> TreeNode {
    TreeNode {
        name: task.name.to_string(),
        kind: "task".to_owned(),
        state: task.phase.to_string(),
        restarts: task.restarts,
        message: format!("driver {}, {}", task.driver, task.note),
        ..TreeNode::default()
    }
}
