//! One process: launched, owned, adopted, stopped, always reaped.
//!
//! ```text
//!  intent on disk                                     record on disk
//!       │                                                  │
//!    Intended ── spawn ──► Spawned ── handshake ──► Ready  │   Recalled ── look ──► proven ──► Ready
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
//! What holds:
//!
//! - The intent, with a random tag, is on disk before the spawn, and the tag is in the environment of the process: after a
//!   crash at any moment whatever was started is found again (PRC-09). Who owns this actor sees to the disk.
//! - It is owned from the instant of its spawn; however its launch is left, it is ended and reaped (PRC-02, PRC-10).
//! - No process is signalled that is not proven to be ours: an unreaped child of this host, or one that is found behind a
//!   descriptor to have the recorded process id, start time, boot, program and tag (PRC-01).
//! - Its end is learned from the kernel through a descriptor, for children and adopted ones alike (SCL-06). How an adopted one
//!   ended is not known, and unknown is never success (EVT-05).
//! - It leads a process group of its own. With [`Reach::Everything`] all that it made ends with it, by a control group where
//!   the host may make one; with [`Reach::Group`] what left its group on purpose goes on (PRC-03).
//! - A bound process dies with the host, by the kernel; a surviving one is adopted by the next (PRC-04).
//! - Its output goes to files that outlive the host; it never waits for whoever reads them (PRC-07, LOG-03).
//! - A plugin's sockets lie in a directory of its own that nobody else may enter, and go with it (D8).
//! - The program is opened once, checked, and executed through that descriptor (SEC-05, SEC-07). Its standard input is that
//!   descriptor at its end: there is nothing to read.
//!
//! A process is pure in `behaviour`, `recalling` and `stopping`; the hands are in `actor`.

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

mod actor;

mod birth;
mod bound;
mod control_group;
mod executable;
mod keeper;
mod look;
mod owned;
mod readiness;
mod sockets;
mod sweep;
mod system;

mod herald;
mod output;
mod tail;
mod watcher;
mod words;

#[cfg(test)]
mod scripts;

pub use actor::{Surroundings, start};
pub use bound::{Binder, BoundError, be_bound};
pub use control_group::{ControlGroups, unified_group_of};
pub use ending::{EndedBy, Exit, ProcessEnding, signal_name};
pub use herald::Herald;
pub use identity::{FileId, Findings, Identity, OWNER_VARIABLE, Seen, TAG_VARIABLE, Verdict, judge, ours};
pub use keeper::{Keeper, keep};
pub use launch_error::{ExecutableError, LaunchError};
pub use messages::*;
pub use name::{MalformedProcessName, PROCESS_NAME_BYTES_MAX, ProcessName, ProcessTag};
pub use record::{Positions, ProcessRecord};
pub use spec::{Executable, Lifetime, OUTPUT_KEPT_BYTES, ProcessSpec, Reach, START_TIMEOUT, STOP_GRACE};
pub use state::{
    EndProcess, LastWords, Over, Process, ProcessAnswer, ProcessAsk, ProcessCall, ProcessConfig, ProcessNews,
    ProcessOutcome, ProcessTimer, Why,
};
pub use sweep::{owner_of, sweep};
pub use system::{ProcessStatus, boot_id, random_bytes};
pub use watcher::Watcher;
