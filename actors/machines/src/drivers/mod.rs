//! The owner of the drivers: keeps exactly one driver of each name, dispenses clients, and assigns tasks to the handlers of
//! their events.
//!
//! ```text
//!              AddDriver                   its actor ended unexpectedly
//!  (nothing) ─────────────► Running ───────────────────────────────────► Pausing ── too often ──► GivenUp
//!      ▲                     │    ▲ ────────────────────────────────────────┘                        │
//!      │  RemoveDriver, or   │    └─────── restarted or added again ────────────────────────────────┘
//!      │  another spec       ▼
//!      └───── no other ── Stopping ── another spec ──► Running
//! ```
//!
//! Invariants:
//!
//! - There is one driver of each name, however many callers ask at once; another spec ends the present driver first.
//! - A driver that the host does not allow does not run: if it is blocked, removed, or unknown in this run, and still runs from an
//!   earlier run, its process is proven, then ended.
//! - The three answers to `DispenseDriver` are a client, not yet, and no, each with its reason (RES-01). The shown state is the
//!   state that is dispensed.
//! - Tasks are watched by declaration: a task is declared once, before or after its driver is added, and stays watched across every
//!   restart of driver, eventor and this actor, until it is forgotten (EVT-03).
//! - No caller waits for a driver that is known to fail (HLT-04).
//! - A late report of an earlier life of a child is ignored (REG-08). When this actor's own machine is rebuilt, its
//!   children are killed and started again; they find their processes again.

mod messages;
mod news;
mod summary;

mod state;

mod behaviour;
mod dispensing;
mod endings;
mod entries;
mod tasks;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use news::{DriversNews, DriversView};
pub use state::{
    ChildEnded, ChildKind, Drivers, DriversCall, DriversChange, DriversImage, DriversOptions, DriversOutcome,
    DriversTimer,
};
pub use summary::DriverSummary;
