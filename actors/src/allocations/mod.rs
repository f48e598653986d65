//! The owner of the allocations: one supervisor for each plugin workload, by ownership (A5, REG-07).
//!
//! ```text
//!  host ── prepare, started, exited, stop ──►  allocations  ── in the order of arrival ──►  allocation a1
//!                                              │   │    ▲                                   allocation a2
//!  subscribers ◄── changed, gone, events ──────┘   │    └── news, endings ────────────────  allocation ...
//!                                                  │
//!        an allocation here:  known ──► its supervisor runs ──► stopping ──► gone
//!                                         │          ▲
//!                                   crash ▼          │ pause, budget
//!                                         └──────────┘──► given up, until it is spoken to again
//! ```
//!
//! However often a workload is prepared or restarted, its supervisor is the same actor; after a crash another one takes its
//! place, told what the task was doing and what had not been answered yet. What one allocation waits for holds up no other.
//!
//! The records that this needs are kept in memory, beyond the reach of a crash of the owner. After a restart of the host it is
//! the host that says what runs: [`PrepareAllocation`] for what it starts, [`AdoptAllocation`] for what outlived it.

mod messages;

mod state;

mod behaviour;
mod keeping;
mod orders;

mod actor;

#[cfg(test)]
mod scripts;

pub use actor::{AllocationsMemory, default_runtime_dir, start};
pub use messages::*;
pub use state::{
    Allocations, AllocationsCall, AllocationsChange, AllocationsImage, AllocationsOptions,
    AllocationsOutcome, AllocationsTimer, Order, OrderAnswer, Record, SupervisorEnded,
};
