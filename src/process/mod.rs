//! A plugin's process: bound to its host, stopped in order, always reaped.
//!
//! ```text
//!  launch ──► our program as `bound` ── exec ──► the command
//!    │         asks the kernel to be killed when its parent dies; ends if that has happened already (PRC-04)
//!    ▼
//!  owner: one task for each process, from the instant of its birth (PRC-02)
//!    running ── stop ──► SIGTERM to the group ── grace ──► SIGKILL to the group
//!       └────────────────────── ended ◄────────────────────────┘
//!                                 │ what it left of its group is killed, then it is reaped (PRC-10)
//!                                 ▼
//!                              Ending: exit code or signal, by whose hand, its last words
//! ```
//!
//! No process is signalled but an unreaped child of ours, so that no number that has passed to somebody else is ever hit.
//! What a process writes goes to a log file of bounded size. Its environment is what its spec says and nothing else.
//!
//! What the kernel enforces ends with the process itself. What that process made is ended with its group: by its owner when it
//! ends, and by the host's *keeper* when the host is killed. A program with set-user-id bits or file capabilities loses the
//! binding; a keeper that runs as root ends it too.

mod spec;

mod ending;
mod launch;
mod log;
mod owner;
mod tail;

pub use callboard_actors::process::{
    Binder, BoundError, EndedBy, IgnoredSignals, Keeper, be_bound, catch_ignored_signals, guard, keep,
};
pub use ending::{ProcessEnding, ProcessExit};
pub use launch::{LaunchError, launch};
pub use log::LogSpec;
pub use owner::Process;
pub use spec::{ProcessSpec, usual_environment};
