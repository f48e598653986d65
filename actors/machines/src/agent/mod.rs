//! The machine of the agent of `callboard run`, a host's own actor: runs the plugin processes of its configuration as tasks.
//!
//! It follows the rules of a host: prepare, launch, report the start, report the end; to stop, deregister before ending the process
//! (A1 to A4, SHD-04).
//!
//! A task's life:
//!
//! ```text
//!             StartTask                 prepared              claimed              started
//!   stopped ────────────► preparing ────────────► claiming ────────────► launching ───────► running ◄── picked up after a crash of the agent
//!     ▲                      ▲  │ refused            │ refused for now      │ not started   │  │  │
//!     │                      │  ▼                    ▼                      ▼  its process  │  │  │ StopTask
//!     │            after a   │ ┌──────────────────────────────────────────────┐  ended      │  │  ▼
//!     │            pause     └─┤ waiting  ◄── reporting ◄──────────────────────┼─────────────┘  │ withdrawing: deregistered, directories removed
//!     │                        └──────┬────────── ▲ ───────────────────────────┘                │  │
//!     │              budget spent, or │           └── ending ◄──────────────────────────────────┘  ▼ restart requested (A2)
//!     │    volumes refused finally    ▼                                                    ending: SIGTERM, grace, SIGKILL
//!     │                        withdrawing                                                         │
//!     │                               ▼                                                            ▼
//!     │                  failed ◄── releasing                                                  releasing: its volumes (V8)
//!     └────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Only an allocation with volumes is ever claiming or releasing.
//!
//! Invariants:
//!
//! - A task has at most one process, and a new one is started only after the old one was reaped (PRC-03). While a process does not end,
//!   not even by SIGKILL, the task waits for its end and reports this.
//! - A process that survives the host continues when the host detaches or is killed. The next run surveys it, once it is proven
//!   (PRC-01), and its allocation is adopted (A2).
//! - A stop takes precedence: an operation in flight completes, then the task is stopped.
//! - A restart is charged to the budget whatever its cause; when the budget is spent the task has failed, and reports why.
//! - A replacement stops the old allocation only after the new one was healthy for the whole requested time, and stops the
//!   new one only while the old one runs and is healthy (F16). After a crash of the machine it begins again, unless one of the two is
//!   being stopped for it already: then its caller gets the answer that was decided. A replacement that begins again finds the new
//!   allocation running, so that allocation is kept if it is not healthy.
//! - A process of an allocation with volumes is started only after all of them were claimed in the same start, which proves each mount
//!   again (V7). The claims stay while the process is restarted.
//! - A claim that is refused for now, for example while another allocation holds the volume, waits with a backoff of its own and is not
//!   charged to a budget; a claim that is refused permanently fails the task. A stop cancels the claim in progress.
//! - Claims are released only after the observed end of every process of the allocation (V8). If the end of a process was not observed,
//!   since it does not end or its launch had no answer, they stay until it is. They also stay when the host detaches.
//! - When the host stops, the tasks that use volumes release them before a process that runs without volumes is deregistered: it may
//!   serve them (V13). No process is started meanwhile.
//! - After a crash of its machine the agent surveys its processes and continues with them; decisions are remembered.

mod config;

mod messages;

mod calls;
mod state;

mod behaviour;
mod orders;
mod preparing;
mod refused;
mod replace;
mod stopping;
mod task;
mod volumes;

#[cfg(test)]
mod scripts;

pub use behaviour::RETRY_PAUSE;
pub use calls::{
    AgentCall, AgentOutcome, AgentTimer, Answered, ClaimTrouble, Ended, LaunchOrder, LaunchTrouble, Living,
    Unreleased,
};
pub use config::{AllocationConfig, AllocationVolume, RestartPolicy};
pub use messages::*;
pub use state::{Agent, AgentOptions, Memory};
pub use stopping::{AFTER_KILL, left_running, not_ended};
