//! The resource usage of the tasks of `callboard run`, as drivers report it, read while a task runs (TH081).
//!
//! ```text
//!  tasks ── news ──► plan ── open, close ──► a reader for each running task ── TaskStats ──► its driver
//!                     ▲  │                     │
//!                     │  └─ results ─────────► status
//!                     └── reports, errors ─────┘
//! ```
//!
//! Usage is for display only: nothing of it is on disk, and a driver that reports none still runs its tasks. A broken stream
//! is reopened with backoff. When a driver or the next run of the host has recovered a task, its stream is reopened, too.

mod plan;

mod collector;

pub use collector::UsageCollector;
pub use plan::{Figures, TaskUsage, UsageView};
