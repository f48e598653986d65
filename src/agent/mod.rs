//! Runs the [machine of the agent](callboard_actors::agent) of `callboard run`: launches the plugin processes of the configuration,
//! holds them from one life of the agent to the next, and talks to the allocations.

mod actor;
mod books;
mod claims;
mod held;
mod memory;
mod part;

pub use actor::{Books, ProcessHome, start};
pub use books::HostBooks;
pub use callboard_actors::agent::*;
pub use claims::{NoVolumes, VolumeClaims};
pub use held::end_departed;
pub use memory::AgentMemory;
pub use part::part;
