//! The supervisor of one plugin workload: makes its directories, waits for its socket, registers it, watches it, and puts
//! everything away when it stops (A1 to A4).
//!
//! ```text
//!                    task started         socket seen          ready             registry says yes
//!  (A1) prepared ───────────────► awaiting-socket ──► probing ──────► registering ─────────────────► registered (A3)
//!        ▲  ▲                         │       ▲          │                                              │
//!        │  │                         │       └──────────┤ socket gone                                  │ rounds:
//!        │  │ task exited,            ▼                  ▼                                              │ health of the
//!        │  │ prepared again   awaiting-restart ◄── time is up: one event, one request (A2)             │ instance, or
//!        │  │                         │             access denied: one event, no request (SEC-03)       │ own probe
//!        │  └─────────────────────────┴─────────────────────────────────────────────────────────────────┘
//!        │
//!        └── from anywhere: stop ──► stopping: deregister ─► calls end ─► remove directory ─► ended (A4)
//! ```
//!
//! Beside the phase it keeps a wish of what the registry is to know, and pursues it with one message at a time: a registry
//! that refuses or is away delays the wish and loses nothing.
//!
//! Whatever comes back carries the number of the call it belongs to; a new start of the task makes new calls, so answers to
//! the old ones change nothing. It remembers nothing on disk: its owner, `allocations`, knows the spec and what the task was
//! doing, and gives both to its successor.

mod messages;

mod paths;
mod state;

mod behaviour;
mod waiting;

mod sign_in;
mod watching;

mod stopping;

mod neighbours;

mod actor;
mod directory;

#[cfg(test)]
mod scripts;

pub use actor::start;
pub use messages::*;
pub(crate) use neighbours::healths;
pub use neighbours::{Addresses, Neighbours, RegisterOutcome, RetiredOutcome};
pub use paths::{Access, ENDPOINT_VARIABLE, Layout, LayoutError, Place, Plan, Step};
pub use state::{
    Allocation, AllocationCall, AllocationConfig, AllocationOptions, AllocationOutcome, AllocationTimer, Task,
};
