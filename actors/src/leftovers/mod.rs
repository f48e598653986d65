//! Leftover processes of a task if its driver cannot be queried, or its answer proves nothing (TH040, TH041). A module, not an
//! actor.
//!
//! A driver that could not recover a task, or that refused to start one, may have left its processes behind, and a second
//! start beside them would run the task twice. So they are searched for, by evidence that does not come from the driver:
//!
//! ```text
//!  memory         it was located as the task's before, in the same boot, with the same start time; or it is in a session or process
//!                 group that was, in which such a process still is; or in a container's group that was
//!  environment    NOMAD_ALLOC_ID and NOMAD_TASK_NAME are those of the task
//!  cgroup         it is in a cgroup that the host named, or in one named after both (T103)
//!  session        it belongs to a session that a proven process has begun
//!  parent         its parent is proven
//!  executor       the driver's helper: it has the owner id of this host's driver, holds a socket in its assigned
//!                 socket directory, and the handle of the task names that socket, or all its children are proven; or a driver of
//!                 this host has begun it, and its command line names the task's directory
//! ```
//!
//! Proven processes are killed, behind an open file descriptor and with their start time compared, so that PID reuse harms
//! no other process (T192); then the search is repeated until nothing is left. An empty environment is not evidence: such a
//! process may be in the middle of an `exec`, and is checked again. An environment that this host may not read is not
//! evidence either; the module `hidden` there decides whether the process may be the task's. While it may be, the result is
//! unsettled.
//!
//! A program may drop its environment, or overwrite it. So a task is located while it is healthy ([`Search::locate`],
//! TH052), when its parents exist and its driver reports its process; the result is passed to a later search.
//!
//! The proofs are [decided](callboard_machines::leftovers) from a snapshot; `table` reads it from `/proc`, `ending` kills.
//!
//! An embedder uses it after a recovery that failed permanently: [`Search::end`] with the ids of its task.

mod ending;
mod table;

pub use callboard_machines::leftovers::{
    ALLOCATION_VARIABLE, Begun, BootClock, Named, TASK_VARIABLE, TRACED_GROUPS_MAX, TRACED_PROCESSES_MAX,
    TaskMark, Trace, Traces,
};
pub use ending::{Ended, Search, Unsettled};
pub use table::ProcessTable;
