//! The agent of `callboard run` in the simulation: a world so small that every order of a replacement is tried (F16).
//!
//! Two allocations of one plugin: `old` runs with the host, `new` starts on request. The machine is that of
//! production; its processes, the allocations and the health of the plugins are a simple model.

mod event;
mod laws;
mod scene;

pub use event::{AgentBounds, AgentEvent, Who};
pub use laws::AgentLaws;
pub use scene::{AgentDisk, AgentScene};

/// The world of the agent.
pub type AgentWorld = callboard_simulation::SceneWorld<AgentScene>;
