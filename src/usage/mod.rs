//! What the tasks of `callboard run` use: the figures that their drivers tell, read all the time while a task runs (TH081).
//!
//! ```text
//!  tasks ── news ──► plan ── open, close ──► a reader for each task that runs ── TaskStats ──► its driver
//!                     ▲  │                     │
//!                     │  └─ what is known ──► status
//!                     └── figures, breaks ─────┘
//! ```
//!
//! Figures are no reason to do anything: nothing of this is on disk, and a driver that tells none runs its tasks all the same. A
//! stream that breaks is opened again after a pause that grows; when a task was recovered, by the driver that came back or by the
//! next run of the host, its stream is opened anew.

mod plan;

mod collector;

pub use collector::UsageCollector;
pub use plan::{Figures, TaskUsage, UsageView};
