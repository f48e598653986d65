//! The owner of the allocations: one supervisor for each plugin workload (A5, REG-07).
//!
//! ```text
//!  host ── prepare, started, exited, stop ──►  allocations  ── in the order of arrival ──►  allocation a1
//!                                              │   │    ▲                                   allocation a2
//!  subscribers ◄── changed, gone, events ──────┘   │    └── news, endings ────────────────  allocation ...
//!                                                  │
//!        an allocation:       known ──► its supervisor runs ──► stopping ──► gone
//!                                         │          ▲
//!                                   crash ▼          │ pause, budget
//!                                         └──────────┘──► given up, until its next message
//! ```
//!
//! However often a workload is prepared or restarted, its supervisor is the same actor. After a crash another one replaces
//! it, with the state of the task and all unanswered orders. Allocations do not wait for each other.
//!
//! Before the stop of an allocation that is registered, the owner waits until the volumes of its plugin are released (V13). If
//! they are not released in time, the stop is refused and nothing has changed, unless another allocation serves the plugin instead.
//!
//! The records of the allocations are kept in memory and survive a crash of the owner. After a restart of the host, the host reports
//! what runs: [`PrepareAllocation`] for tasks that it starts, [`AdoptAllocation`] for those that survived it.

mod messages;

mod state;

mod behaviour;
mod keeping;
mod orders;
mod unused;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use state::{
    Allocations, AllocationsCall, AllocationsChange, AllocationsImage, AllocationsOptions,
    AllocationsOutcome, AllocationsTimer, Order, OrderAnswer, Record, SupervisorEnded,
};
