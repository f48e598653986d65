//! Runs the [machine of the tasks](callboard_actors::tasks) of `callboard run`: calls their drivers, makes their environments, and keeps
//! the state that survives an incarnation of the actor.

mod handle;

mod former_row;
mod kept_row;
mod row;
mod store;

mod actor;
mod claims;
mod cores;
mod driver_setup;
mod endings;
mod environment;
mod exits;
mod forgotten;
mod host;
mod logged;
mod logs;
mod looks;
mod memory;
mod node;
mod part;
mod plugins;
mod prepare;
mod readers;
mod remains;
mod starts;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use actor::{Asking, Runners, Watching, start};
pub use callboard_actors::tasks::*;
pub use cores::CoreLedger;
pub use environment::{PreparedEnvironment, TaskEnvironment, TaskEnvironmentOptions};
pub use host::{HostRunners, RunnersSurroundings};
pub use memory::TasksMemory;
pub use node::{node_facts, task_node, topology};
pub(crate) use part::part;
pub use plugins::{Plugins, catalog_options, drivers_options};
pub use prepare::Preparer;
pub use store::{TasksStore, recorded, running};
