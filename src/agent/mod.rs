//! Runs the [machine of the agent](callboard_actors::agent) of `callboard run`: launches the plugin processes of the configuration, holds
//! them across incarnations of the agent, and calls the allocations.

mod actor;
mod claims;
mod held;
mod host_allocations;
mod memory;
mod part;

pub use actor::{AllocationService, ProcessHome, start};
pub use callboard_actors::agent::*;
pub use claims::{NoVolumes, VolumeClaims};
pub use held::end_departed;
pub use host_allocations::HostAllocations;
pub use memory::AgentMemory;
pub use part::part;
