//! The owner of the drivers: keeps exactly one of each name, gives clients out, and assigns tasks to the handlers of
//! their events.
//!
//! ```text
//!              AddDriver                   its actor ended unexpectedly
//!  (nothing) ─────────────► Running ───────────────────────────────────► Pausing ── too often ──► GivenUp
//!      ▲                     │    ▲ ────────────────────────────────────────┘                        │
//!      │  RemoveDriver, or   │    └──────── restarted or added anew ────────────────────────────────┘
//!      │  another spec       ▼
//!      └───── no other ── Stopping ── another spec ──► Running
//! ```
//!
//! What holds:
//!
//! - One driver of each name, however many ask at once; another spec ends the one that there is first.
//! - What the host does not allow does not run: a driver that is blocked, removed, or unknown in this run, and still runs from an
//!   earlier one, is proven to be what it is, then ended.
//! - The three answers to `DispenseDriver` are a client, not yet, and no, each with its reason (RES-01). What is shown is what
//!   is given out.
//! - Tasks are watched by declaration: it is said once, before or after its driver comes, and holds across every restart of
//!   driver, eventor and this actor, until it is forgotten (EVT-03).
//! - No caller waits for a driver that is known to fail (HLT-04).
//! - A late report of an earlier life of a child is ignored (REG-08). When this actor's own machine is rebuilt, its
//!   children are ended by force and started anew; they find their processes again.

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
