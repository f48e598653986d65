//! The agent as a part of the host of `callboard run`: one node of the tree for each of its tasks.

use callboard_actors::shell::Address;
use callboard_actors::supervisor::TreeNode;

use super::actor::{ProcessHome, start};
use super::books::HostBooks;
use super::memory::AgentMemory;
use super::messages::{ListTasks, TaskReport};
use super::state::{Agent, AgentOptions};
use crate::host::Part;

/// It needs the allocations to say goodbye to, so it ends before them.
pub(crate) fn part(address: &Address<Agent>, options: AgentOptions, home: ProcessHome) -> Part<Agent> {
    Part::remembering(address, move |address, context| {
        let (address, context) = (address.clone(), context.clone());
        let (options, home, memory) = (options.clone(), home.clone(), AgentMemory::default());
        move || {
            let books = HostBooks::new(context.host().allocations().clone());
            Ok(start(&address, options.clone(), books, home.clone(), memory.clone(), context.settings()))
        }
    })
    .after("allocations")
    .described_by(|| ListTasks, |tasks| tasks.into_iter().map(node).collect())
}

fn node(task: TaskReport) -> TreeNode {
    TreeNode {
        name: task.allocation.to_string(),
        kind: "task".to_owned(),
        state: task.phase.to_string(),
        restarts: task.restarts,
        message: task.last_event,
        ..TreeNode::default()
    }
}
