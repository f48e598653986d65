//! The tasks as a part of the host of `callboard run`: one node of the tree for each.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::leftovers::BootClock;
use callboard_actors::logmon::Logs;
use callboard_actors::process::{boot_id, since_boot};
use callboard_actors::shell::{Address, Clock, Running, Settings, StopMode};
use callboard_actors::supervisor::TreeNode;
use callboard_actors::topology::Topology;

use super::actor::start;
use super::environment::TaskEnvironment;
use super::host::{HostRunners, RunnersSurroundings};
use super::memory::TasksMemory;
use super::node::{node_facts, task_node};
use super::plugins::Plugins;
use super::prepare::Preparer;
use super::store::TasksStore;
use super::{CoreLedger, ListTasks, TaskIdentities, TaskReport, Tasks, TasksOptions};
use crate::config::Config;
use crate::host::{EndingRest, Part, PartContext, PartLifecycle};
use crate::volumes::Claimer;

/// The minimum stop deadline. The tasks themselves report how long they take with the grace periods of their runs.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Tasks are stopped through their drivers, so they end before the drivers; until then plugins may have to be resolved. They release their
/// volumes when they have ended, so they end before the volumes, and before the agent ends the plugins that have to undo them.
pub(crate) fn part(
    address: &Address<Tasks>,
    config: Config,
    (topology, environment, logs): (Arc<Topology>, TaskEnvironment, Logs),
) -> Part<Tasks> {
    Part::leaving(address, move |address, context| {
        TasksLifecycle::new(address, &config, context, (&topology, &environment, &logs))
    })
    .after("drivers")
    .after("catalog")
    .after("agent")
    .after("volumes")
    .described_by(|| ListTasks, |tasks| tasks.into_iter().map(node).collect())
    .stops_within(STOP_DEADLINE)
}

/// The tasks continue with their drivers from one incarnation of their actor to the next.
struct TasksLifecycle {
    address: Address<Tasks>,
    options: TasksOptions,
    runners: HostRunners,
    store: TasksStore,
    memory: TasksMemory,
    settings: Settings,
}

impl TasksLifecycle {
    fn new(
        address: &Address<Tasks>,
        config: &Config,
        context: &PartContext,
        (topology, environment, logs): (&Arc<Topology>, &TaskEnvironment, &Logs),
    ) -> Self {
        let (host, settings) = (context.host(), context.settings());
        let identities = TaskIdentities::of_owner(host.owner_mark());
        let facts = node_facts(&config.host, topology);
        let plugins = Plugins::new(config, host.catalog().clone(), own_program(), facts);
        let node = task_node(config, Arc::clone(topology), &identities);
        let (cores, memory) = (CoreLedger::default(), TasksMemory::default());
        let makers = (cores.clone(), environment.clone(), logs.clone());
        let claimer = Claimer::new(host.volumes().clone(), &config.volumes);
        let preparer = Preparer::new(config, identities.clone(), node, makers, claimer);
        Self {
            address: address.clone(),
            runners: HostRunners::new(
                RunnersSurroundings {
                    drivers: host.drivers().clone(),
                    processes: host.processes().clone(),
                    leases: host.leases(),
                    journals: host.task_journals().clone(),
                },
                plugins,
                preparer,
                &identities,
            ),
            store: TasksStore::new(host.own_database(), cores, memory.clone()),
            options: TasksOptions {
                tasks: config.tasks.iter().cloned().map(Arc::new).collect(),
                drivers: config.drivers.iter().map(|driver| (driver.name.clone(), driver.into())).collect(),
                restart: config.restart,
                identities,
                boot: boot_clock(&settings.clock),
            },
            memory,
            settings,
        }
    }
}

impl PartLifecycle for TasksLifecycle {
    fn start(&mut self) -> Result<Running, String> {
        let (options, settings) = (self.options.clone(), self.settings.clone());
        let (runners, store) = (self.runners.clone(), self.store.clone());
        Ok(start(&self.address, options, runners, store, &self.memory, settings))
    }

    /// Only the actor can end the tasks through their drivers, so they are left and reported.
    fn end_rest(&self, mode: StopMode) -> EndingRest {
        Box::pin(std::future::ready(self.memory.left(mode)))
    }
}

/// How such a clock is tied to the present boot.
fn boot_clock(clock: &Clock) -> Option<BootClock> {
    let (boot, since_boot) = (boot_id().ok()?, since_boot());
    Some(BootClock { boot, since_boot, now: clock.now() })
}

/// The file of this program, which also contains plugins.
fn own_program() -> PathBuf {
    // If the file has been moved, this path does not exist, and starting the plugin reports that.
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

fn node(task: TaskReport) -> TreeNode {
    let now = Clock::system().now();
    TreeNode {
        name: task.name.to_string(),
        kind: "task".to_owned(),
        state: task.phase.to_string(),
        restarts: task.restarts,
        message: format!("driver {}, {}", task.driver, task.note),
        stops_within: task.stopping.map(|stopping| stopping.by.since(now)),
        kills_within: task.stopping.and_then(|stopping| Some(stopping.kill?.since(now))),
        ended: task.ended,
        ..TreeNode::default()
    }
}
