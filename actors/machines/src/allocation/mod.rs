//! The supervisor of one plugin workload: creates its directories, waits for its socket, registers it, watches it, and
//! cleans up when it stops (A1 to A4).
//!
//! ```text
//!                    task started         socket seen          ready             registry confirms
//!  (A1) prepared ───────────────► awaiting-socket ──► probing ──────► registering ─────────────────► registered (A3)
//!        ▲  ▲                         │       ▲          │                                              │
//!        │  │                         │       └──────────┤ socket gone                                  │ rounds:
//!        │  │ task exited,            ▼                  ▼                                              │ health of the
//!        │  │ prepared again   awaiting-restart ◄── timeout: one event, one request (A2)                │ instance, or
//!        │  │                         │             access denied: one event, no request (SEC-03)       │ own probe
//!        │  └─────────────────────────┴─────────────────────────────────────────────────────────────────┘
//!        │
//!        └── from anywhere: stop ──► stopping: deregister ─► calls end ─► remove directory ─► ended (A4)
//! ```
//!
//! Independent of the phase it keeps the desired state in the registry (`Desired`), and reconciles it with one message at a
//! time: if the registry refuses or is not running, it retries and loses nothing.
//!
//! Every outcome carries the number of its call; a new start of the task makes new calls, so stale outcomes have no effect.
//! It stores nothing on disk: its owner, `allocations`, knows the spec and the state of the task, and passes both to a
//! successor.

mod messages;

mod paths;
mod state;

mod behaviour;
mod waiting;

mod registration_state;
mod watching;

mod stopping;

mod neighbours;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use neighbours::{RegisterOutcome, RetiredOutcome, healths};
pub use paths::{Access, ENDPOINT_VARIABLE, Layout, LayoutError, Place, Plan, SOCKET_FILE, Step};
pub use state::{
    Allocation, AllocationCall, AllocationConfig, AllocationOptions, AllocationOutcome, AllocationTimer, Task,
};
