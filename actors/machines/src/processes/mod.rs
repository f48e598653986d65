//! The owner of all processes: keeps them by name, and adopts or ends the leftovers of an earlier run of the host (PRC-04).
//!
//! ```text
//!  start ──► every record: its actor looks for the process ──► adopted: ready again
//!    │                                                     ├─► ours, but not to be adopted: ended
//!    │                                                     └─► not proven: no process is touched, the record is retired
//!    └─────► no record, but our owner: ended                      │
//!                                                                 ▼
//!  LaunchProcess ──► intent on disk ──► actor ──► spawned ──► ready ──► answered
//!                                                   │           │
//!                                each on disk before its news ──┘
//!  ended, reaped, its group empty ──► record removed ──► waiting callers answered
//! ```
//!
//! Invariants:
//!
//! - At most one process under each name, however many callers launch it; a launch that arrives while an earlier process of
//!   that name is being searched for waits for the result (PRC-03).
//! - After a crash of the host at any moment, every process that carries our owner variable is adopted or ended (PRC-09).
//! - A record that does not match its process touches no process, is retired with news, and never prevents a fresh launch
//!   (PRC-01, RES-07).
//! - Stopping the host ends all processes; detaching leaves the surviving ones running, with their records and the positions
//!   of their outputs. The positions are written once a second while they advance: after a kill of the host the lines of at
//!   most that second are logged twice, and none is lost (PRC-07).
//! - When this actor or a process actor crashes, processes continue: their records find them again.

mod messages;

mod state;

mod behaviour;
mod hearing;
mod launching;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use state::{
    ChildEnded, Processes, ProcessesCall, ProcessesChange, ProcessesOptions, ProcessesOutcome, ProcessesTimer,
};
