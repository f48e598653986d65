//! The reference driver: runs commands as tasks, and shows how to write a driver with [`plugin`](crate::plugin).
//!
//! ```text
//!  host ──gRPC── callboard plugin exec ──spawns──► callboard plugin exec-task ──spawns──► the command
//!                  the driver                        one supervisor for each task           the task, a process group
//!                      │                               leads a session of its own               │
//!                      │  control (a FIFO): signals    adopts orphans of the task               │
//!                      │ ─────────────────────────►    reaps it: the true exit status ◄─────────┘
//!                      │  state (a file): processes, exit
//!                      └◄─────────────────────────
//! ```
//!
//! The supervisor is the task's parent, and the driver is not. So the driver may die, be killed or be replaced, and the next
//! driver reads from the state file which processes run, or the true exit code. Invariants:
//!
//! - The driver never signals a process by its process id. It writes the request to the control FIFO, and the supervisor
//!   signals its own child. PID reuse is impossible, since only the supervisor reaps it (PRC-01).
//! - If a supervisor was killed, its task is signalled only through a file descriptor of a process whose process id, start
//!   time, boot and tag have been compared.
//! - Starts are idempotent: the same id with the same configuration is the same task (PRC-09).
//! - After an error from a start, the task does not run, and does not start later: a supervisor that does not answer is
//!   stopped, and killed with everything that it has begun, before the answer.
//! - An unknown exit status is reported as unknown, never as success (EVT-05).
//! - An out-of-memory kill is reported if the task's control group counted one: the task was killed, not by the driver, and
//!   the counter grew. In a shared group the counter may mean another process. Without a counter `oom_killed` is false.
//! - A task runs in the control groups that its host created for it, and so do commands beside it. The supervisor does not.
//! - The mounts that a host requests for a task are visible to the task and to commands beside it, and to no other process. A driver that
//!   may not make mount namespaces reports that it mounts nothing.
//! - When a task ends, all its remaining processes are killed, even those that left its session (PRC-03).
//! - Output goes directly from the task to the host's files or FIFOs, without a process in between (PRC-07).
//! - A driver knows the tasks that an earlier driver started and could not report before it died: from notes in `--state-dir`,
//!   or in the runtime directory of the system (PRC-09).
//! - With `--state-dir`, announced events outlive the driver, and none is announced twice (EVT-02).
//!
//! ```text
//!   arguments   the command line
//!   serve       its lifecycle, with faults
//!   driver      the driver: each call of a host
//!     state     the driver's state: its tasks, and the events about them
//!     settings  the operator's configuration of the driver
//!     task      one task, as the driver knows it
//!     birth     starts a task, or makes sure that it is not started
//!     memory      notes about started tasks, for the next driver
//!     place     the directory of a task's state
//!     record    the content of the state
//!     directory the task's directory, for any user
//!     beside    commands that run beside a task
//!     surroundings their directory, user and environment
//!     spoken    commands with streamed input and output
//!     terminal  their terminal
//!     enter     the steps of a process before it execs the command
//!     mounting  its mount namespace
//!     placement the control groups of a task, with their limits
//!     usage     the resource usage of a task's processes
//!     figures   the counters of its control groups
//!     speed     the speed of a core
//!     out_of_memory whether the task was killed for lack of memory
//!   supervisor  the process beside each task
//!   faults      misbehaviour on request, for tests and demonstrations
//!   flooding    a flood of the connection on request
//! ```

mod arguments;
mod serve;

mod driver;

mod birth;
mod state;
mod task;

mod memory;
mod place;
mod record;

mod beside;
mod config;
mod directory;
mod enter;
mod figures;
mod hidden;
mod mounting;
mod out_of_memory;
mod placement;
mod processes;
mod settings;
mod signals;
mod speed;
mod spoken;
mod surroundings;
mod terminal;
mod usage;

mod supervisor;

mod faults;
mod flooding;
mod odd_texts;

mod error;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use arguments::ExecArgs;
pub use enter::{EnterArgs, EnterError, enter};
pub use error::ExecError;
pub use faults::{FaultArgs, StreamEnd, SupervisorHang};
pub use flooding::{ConnectionFlood, FloodFrame};
pub use odd_texts::OddTexts;
pub use serve::serve;
pub(crate) use signals::named as signal_named;
pub(crate) use state::KILL_TIMEOUT;
pub use supervisor::{SupervisorError, supervise};
