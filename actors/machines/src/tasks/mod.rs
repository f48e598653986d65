//! The tasks of `callboard run`: runs each task of the configuration through its driver, and loses no task and no event.
//!
//! The lifecycle of a task:
//!
//! ```text
//!              intent on disk,              start sent          handle on disk
//!   stopped ──────────────────► readying ───────────► starting ────────────────► running ◄───────────────┐
//!     ▲          start        (its driver is set up,    │                       │  │  ▲ end, exit known  │
//!     │                        its events are read)      │ no answer             │  │  │                  │
//!     │                           ▲                      ▼                       │  │  │ driver gone      │ found
//!     │         host killed ──────┴───────────────► settling: was it started?    │  │  └───────────► recovering
//!     │                                                  │ nothing, ended, runs  │  │ stop
//!     │                                                  ▼                       ▼  ▼
//!     └── ended, failed, waiting ◄──────────────────── clearing ◄─────────── stopping
//!           (for a restart)       forgotten by its driver         stop sent, grace
//! ```
//!
//! Invariants:
//!
//! - A driver receives a start only after the run's id is on disk, and subscribers are notified of it only after its handle is.
//! - A start has no timeout while its driver lives. If the call breaks, the driver is queried for a while, and then its
//!   process is replaced: "no such run" is proof only from a process that never received the start.
//! - A start with an unknown result is settled first. If the run is found, it is ended, since it could not be recovered later.
//!   Only then another run begins, so a task never runs twice.
//! - If a driver is gone, its tasks wait for it and are recovered when it is back. A task that cannot be recovered has an
//!   unknown exit, which is not a success (EVT-05).
//! - Events are stored with their position in one write: none is lost, none counts twice (EVT-03, EVT-04).
//! - A driver that is no longer configured is set up again only to stop its tasks, and then ended. If that fails,
//!   its tasks are reported as out of reach, with advice; its processes are ended if they are proven to be the driver's.
//! - Its volumes are claimed before a driver receives a start, and released when nothing is left of the run: not because it is going to
//!   stop, but because its processes have ended (V8).
//! - A stop takes a bounded time. A task whose driver is unavailable is left and reported as out of reach. While the host serves it is
//!   checked again, with pauses of 30 s to 10 min; else the next run of the host recovers it.
//! - Once all tasks have stopped or are left, no later input starts one again: nothing would end it.

mod config;

mod messages;

mod calls;
mod handle;
mod kept;
mod log;
mod state;

mod behaviour;
mod departed;
mod driver_setup;
mod durable;
mod ending;
mod leaving;
mod locating;
mod reach;
mod recovering;
mod running;
mod starting;
mod stopping;
mod sweeping;

mod answers;
mod cores;
mod identity;

#[cfg(test)]
mod scripts;

#[doc(hidden)]
pub use answers::{
    Asked, failed_start, found_without, is_proof, is_unknown, may_still_begin, not_dispensed, not_sent,
    passing, refused_for_good,
};
pub use calls::{
    Found, Heard, RunKey, Started, Swept, TasksCall, TasksChange, TasksImage, TasksOutcome, TasksTimer,
    Trouble, Waited,
};
pub use config::{
    DriverProgram, NAME_BYTES_MAX, TaskConfig, TaskLogs, TaskResources, TaskRestart, TaskVolume,
};
pub use cores::{Cores, NoCores};
#[doc(hidden)]
pub use departed::ADVICE;
pub use handle::KeptHandle;
pub use identity::{TaskIdentities, TaskIdentity};
pub use kept::KeptDriver;
pub use log::EventLog;
pub use messages::*;
pub use state::{DurableState, Run, RunEvidence, RunState, Tasks, TasksOptions, Wanted};
