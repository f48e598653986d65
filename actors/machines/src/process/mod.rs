//! Launches, owns, adopts and stops one process, and always reaps it.
//!
//! ```text
//!  intent on disk                                     record on disk
//!       │                                                  │
//!    Intended ── spawn ──► Spawned ── handshake ──► Ready  │   Recalled ── find ──► proven ──► Ready
//!       │                     │ none, or a bad one    │    └──────┘  │
//!       │ nothing started     ▼                       │              │ bound, unfinished, or ended
//!       │                 Stopping ◄── asked to ──────┤              ▼
//!       │                     │ SIGTERM, grace,       │ by     EndingLeft: what is proven to be ours
//!       │                     ▼ SIGKILL               │ itself     │
//!       │                 Clearing ◄──────────────────┘            │ a foreign process is not touched
//!       ▼                     │ its group is proven empty          ▼
//!      Over ◄─────────────────┴────────────────────────────────────┘
//! ```
//!
//! Invariants:
//!
//! - The intent, with a random tag, is on disk before the spawn (write-ahead), and the tag is in the environment of the
//!   process: after a crash at any moment every started process is found again (PRC-09). The owner of this actor writes to
//!   disk.
//! - A process is owned from the instant of its spawn; however a launch fails, it is ended and reaped (PRC-02, PRC-10).
//! - Only processes that are proven to be ours are signalled: an unreaped child of this host, or a process that matches, behind an
//!   open file descriptor, the recorded PID, start time, boot, program and tag (PRC-01).
//! - Its end is reported by the kernel through a file descriptor, for children and adopted processes alike (SCL-06). The
//!   exit code of an adopted process is unknown, and unknown is never success (EVT-05).
//! - It leads its own process group. With [`Reach::Everything`] all its descendants end with it, by a cgroup if the host may
//!   create one; with [`Reach::Group`] descendants that left the group on purpose continue (PRC-03).
//! - A bound process dies with the host, by the kernel; a surviving process is adopted by the next host (PRC-04).
//! - Its output goes to files that outlive the host; it never blocks on a reader (PRC-07, LOG-03).
//! - The sockets of a plugin, and of its descendants, are in a private directory that belongs to its name. The directory
//!   outlives the process and the host; only sockets that no process has open are removed (D8, TH030).
//! - The program is opened, verified, and executed by its own path, or by that of a private copy if its digest is pinned
//!   (SEC-05, SEC-07); it can find itself at that path (TH033). Its standard input is empty, and it inherits no file
//!   descriptor of the host.
//! - Before anything is sent to a plugin's endpoint, its listener is proven to be the launched process or a descendant.

mod name;

mod spec;

mod ending;

mod launch_error;

mod messages;

mod identity;

mod record;

mod state;

mod behaviour;
mod recalling;
mod stopping;

#[cfg(test)]
mod scripts;

pub use ending::{EndedBy, Exit, ProcessEnding, ProcessExit, is_from_outside, last_words, signal_name};
pub use identity::{
    FileId, Findings, Identity, OWNER_VARIABLE, PROCESS_ID_VARIABLE, PROGRAM_VARIABLE, Seen, TAG_VARIABLE,
    Verdict, judge, ours,
};
pub use launch_error::{ExecutableError, LaunchError};
pub use messages::*;
pub use name::{MalformedProcessName, PROCESS_NAME_BYTES_MAX, ProcessName, ProcessTag};
pub use record::{Positions, ProcessRecord};
pub use spec::{Executable, Lifetime, OUTPUT_KEPT_BYTES, ProcessSpec, Reach, START_TIMEOUT, STOP_GRACE};
pub use state::{
    LastWords, Over, Process, ProcessCall, ProcessConfig, ProcessNews, ProcessOutcome, ProcessTimer, Why,
};
