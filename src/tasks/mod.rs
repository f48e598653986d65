//! The tasks of `callboard run`: a host's own actor, which runs each task of the configuration through its driver.
//!
//! It is a machine on the shell like all others, and an example of a host that loses no task and no event: it keeps what must
//! not be forgotten in the host's database.
//!
//! A task's life:
//!
//! ```text
//!              intent on disk,              told to             handle on disk
//!   stopped ──────────────────► readying ───────────► starting ────────────────► running ◄───────────────┐
//!     ▲          start        (its driver is brought,    │                       │  │  ▲ end, exit known  │
//!     │                        its events are read)      │ no answer             │  │  │                  │
//!     │                           ▲                      ▼                       │  │  │ driver gone      │ found
//!     │         host killed ──────┴───────────────► settling: what became of it? │  │  └───────────► recovering
//!     │                                                  │ nothing, ended, runs  │  │ stop
//!     │                                                  ▼                       ▼  ▼
//!     └── ended, failed, waiting ◄──────────────────── clearing ◄─────────── stopping
//!           (to start again)     forgotten by its driver         told to stop, grace
//! ```
//!
//! What holds:
//!
//! - A driver is told to start a run only when the run's id is on disk, and nobody hears that it runs before its handle is.
//! - A start is waited for as long as its driver is there. Where the call for it broke off, a driver that may still be busy with
//!   it is asked for a while, and then its process is replaced: that a driver knows nothing of the run is proof only if its
//!   process was never asked to start it.
//! - A run whose start nobody heard of is looked for first, and ended if it is found, since it could not be recovered later;
//!   only then another begins. So a task never runs twice.
//! - A driver that is gone is waited for, and has its tasks recovered when it is back; what cannot be recovered ended in a way
//!   that nobody knows, which is no success (EVT-05).
//! - What a driver tells is stored with its position in one write: no event is lost, none counts twice (EVT-03, EVT-04).
//! - A driver that the configuration has no more is brought back only to stop what is left of its tasks, and then ended. Where
//!   it cannot be, its tasks are out of reach, which is told with what to do, and what runs of the driver is proven, then ended.
//! - Stopping takes a bounded time. A task whose driver cannot be reached is left, said to be so, and found again later.

mod messages;

mod behaviour;
mod bringing;
mod departed;
mod ending;
mod recovering;
mod running;
mod starting;
mod stopping;
mod sweeping;

mod calls;
mod cores;
mod forgotten;
mod ground;
mod identity;
mod kept;
mod locating;
mod log;
mod logs;
mod state;

mod former_row;
mod row;
mod store;

mod actor;
mod answers;
mod host;
mod looks;
mod node;
mod plugins;
mod prepare;
mod remains;
mod starts;

pub mod simulation;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

#[cfg(test)]
mod scripts;

pub use actor::{Asking, Runners, start};
pub use behaviour::{TasksAnswer, TasksAsk};
pub use calls::{
    Found, Heard, RunKey, Started, Swept, TasksCall, TasksChange, TasksImage, TasksOutcome, TasksTimer,
    Trouble,
};
pub use cores::{CoreLedger, NoCores};
pub use ground::{Ground, GroundOptions, Standing};
pub use host::HostRunners;
pub use identity::{TaskIdentities, TaskIdentity};
pub use kept::KeptDriver;
pub use log::EventLog;
pub use messages::*;
pub use node::{node_facts, task_node, topology};
pub use plugins::{Plugins, catalog_options, drivers_options};
pub use prepare::Preparer;
pub use state::{Course, Run, RunEvidence, RunState, Tasks, TasksOptions, Wanted};
pub use store::{TasksStore, recorded};
