//! A plugin's process: bound to its host, stopped in order, always reaped.
//!
//! ```text
//!  launch ──► our program as `bound` ── exec ──► the command
//!    │         requests SIGKILL for the death of its parent; exits if that has died already (PRC-04)
//!    ▼
//!  owner: one task for each process, from its first instant (PRC-02)
//!    running ── stop ──► SIGTERM to the group ── grace ──► SIGKILL to the group
//!       └────────────────────── ended ◄────────────────────────┘
//!                                 │ the rest of its group is killed, then it is reaped (PRC-10)
//!                                 ▼
//!                              Ending: exit code or signal, what ended it, its last line
//! ```
//!
//! Only an unreaped child of ours is ever signalled, so PID reuse cannot misdirect a signal. Output goes to a log file of bounded size. The
//! environment is exactly the environment in the spec.
//!
//! The kernel's binding covers the process itself. Its descendants are killed with its process group: by its owner when it
//! ends, and by the host's *keeper* when the host is killed. A program with set-user-id bits or file capabilities loses the
//! binding; a keeper that runs as root kills it, too.

mod spec;

mod copying;
mod ending;
mod launch;
mod log;
mod owner;
mod tail;

pub use callboard_actors::process::{
    Binder, BoundError, EndedBy, IgnoredSignals, Keeper, ProcessExit, be_bound, catch_ignored_signals, guard,
    keep,
};
pub use ending::ProcessEnding;
pub use launch::{LaunchError, launch};
pub use log::LogSpec;
pub use owner::Process;
pub use spec::{ProcessSpec, usual_environment};
