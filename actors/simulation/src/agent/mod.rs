//! The agent of `callboard run` in the simulation: a world small enough to try every order of a replacement (F16), and every order of
//! the claims to volumes and of the ends of the processes that use them (V7, V8).
//!
//! Two allocations of one plugin: `old` runs with the host and may use volumes, `new` starts on request. The machine is that of
//! production; its processes, the allocations, the volumes and the health of the plugins are a simple model.

mod event;
mod laws;
mod parts;
mod scene;
mod volumes;

pub use event::{AgentBounds, AgentEvent, Who};
pub use laws::AgentLaws;
pub use scene::{AgentDisk, AgentScene};

/// The world of the agent.
pub type AgentWorld = crate::SceneWorld<AgentScene>;
