//! Determines which processes are a task's if its driver cannot be asked: from a snapshot of all processes, by evidence that does not
//! come from the driver (TH040, TH041).
//!
//! - A process is proven by its environment, its control group, where it was located before, its session or its parent; a helper
//!   of a driver by its socket, its children or its command line ([`Case`]).
//! - A process that this host may not inspect is no evidence, and may be the task's unless something excludes it ([`Suspicion`]).
//! - The findings are remembered for a later search, when environments and parents are gone ([`Traces`]).

mod begun;
mod hidden;
mod judging;
mod mark;
mod seen;
#[doc(hidden)]
pub mod text;
mod traces;

#[cfg(test)]
mod stage;

pub use begun::{Begun, BootClock, BootTime};
pub use hidden::Suspicion;
pub use judging::{Case, Helpers, Named, Proven};
pub use mark::{ALLOCATION_VARIABLE, TASK_VARIABLE, TaskMark};
pub use seen::{Environment, Holder, Process, Processes};
pub use traces::{TRACED_GROUPS_MAX, TRACED_PROCESSES_MAX, Trace, Traces};
