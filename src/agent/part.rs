//! The agent as a part of the host of `callboard run`: one node of the tree for each of its tasks.

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::agent::{Agent, AgentOptions, ListTasks, TaskReport};
use callboard_actors::shell::{Address, Clock, Running, StopMode};
use callboard_actors::supervisor::TreeNode;

use super::actor::{ProcessHome, start};
use super::claims::VolumeClaims;
use super::host_allocations::HostAllocations;
use super::memory::AgentMemory;
use crate::host::{EndingRest, Host, Part, PartContext, PartLifecycle};

/// The minimum stop deadline of the agent. The agent itself reports how long it takes with the grace periods of its processes.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// The agent as a part of a host; it claims volumes through `volumes`, which is made in its thread. It deregisters its plugins at the
/// allocations, so it ends before them.
pub fn part(
    address: &Address<Agent>,
    options: AgentOptions,
    home: ProcessHome,
    volumes: impl Fn(&Host) -> Rc<dyn VolumeClaims> + Send + Sync + 'static,
) -> Part<Agent> {
    Part::leaving(address, move |address, context| AgentLifecycle {
        address: address.clone(),
        context: context.clone(),
        options: options.clone(),
        home: home.clone(),
        volumes: volumes(context.host()),
        memory: AgentMemory::telling(
            context.host().task_processes().clone(),
            context.host().processes().clone(),
        ),
    })
    .after("allocations")
    .after("volumes")
    .after("processes")
    .described_by(|| ListTasks, |tasks| tasks.into_iter().map(node).collect())
    .stops_within(STOP_DEADLINE)
}

/// The processes continue from one incarnation of the agent to the next.
struct AgentLifecycle {
    address: Address<Agent>,
    context: PartContext,
    options: AgentOptions,
    home: ProcessHome,
    volumes: Rc<dyn VolumeClaims>,
    memory: AgentMemory,
}

impl PartLifecycle for AgentLifecycle {
    fn start(&mut self) -> Result<Running, String> {
        let allocations = HostAllocations::new(
            self.context.host().allocations().clone(),
            self.context.host().instances().clone(),
        );
        let (options, home, memory) = (self.options.clone(), self.home.clone(), self.memory.clone());
        let volumes = Rc::clone(&self.volumes);
        Ok(start(&self.address, options, allocations, volumes, home, memory, self.context.settings()))
    }

    /// No process outlives its host, however the host ends, except a process that is meant to survive.
    fn end_rest(&self, mode: StopMode) -> EndingRest {
        let (memory, allocations) = (self.memory.clone(), self.options.allocations.clone());
        Box::pin(async move { memory.end_processes(&allocations, mode).await })
    }
}

fn node(task: TaskReport) -> TreeNode {
    let now = Clock::system().now();
    TreeNode {
        name: task.allocation.to_string(),
        kind: "task".to_owned(),
        state: task.phase.to_string(),
        restarts: task.restarts,
        message: task.last_event,
        stops_within: task.stopping.map(|stopping| stopping.by.since(now)),
        kills_within: task.stopping.and_then(|stopping| Some(stopping.kill?.since(now))),
        ended: task.ended,
        ..TreeNode::default()
    }
}
