//! What may still run of a task whose driver cannot be asked, or whose answer proves nothing (TH040, TH041). A module, no actor.
//!
//! A driver that could not recover a task, or that refused to start one, may have left its processes behind, and a second start
//! beside them would run the task twice. So they are looked for, by evidence that does not come from the driver:
//!
//! ```text
//!  environment    NOMAD_ALLOC_ID and NOMAD_TASK_NAME are those of the task
//!  control group  it is in a group that the host named, or in one whose name is made of both (T103)
//!  session        it belongs to a session that was begun by a process which is proven
//!  parent         its parent is proven
//!  executor       the driver's helper: it carries the mark of this host's driver, holds a socket below the directory that it
//!                 was given for sockets, and the handle of the task names that socket, or all its children are proven
//! ```
//!
//! What is proven is killed, behind a descriptor and with its start time compared, so that a reused process id harms nobody
//! (T192); then everything is looked at again, until nothing is left. An environment that is empty or cannot be read says
//! nothing: such a process may be about to execute its program, and is looked at again.
//!
//! Deciding is pure, in `judging`; `table` reads `/proc`, `ending` kills.
//!
//! An embedder uses it after a recovery that failed for good: [`Search::end`] with the ids that its task had.

mod judging;
mod mark;
mod seen;
mod text;

mod ending;
mod table;

pub use ending::{Ended, Search, Unsettled, Whereabouts};
pub use mark::{ALLOCATION_VARIABLE, TASK_VARIABLE, TaskMark};
pub use table::ProcessTable;
