//! The reference driver: runs commands as tasks, and an example of how to write a driver on [`plugin`](crate::plugin).
//!
//! ```text
//!  host ──gRPC── callboard plugin exec ──spawns──► callboard plugin exec-task ──spawns──► the command
//!                  the driver                        one supervisor for each task           the task, a group of its own
//!                      │                               leads a session of its own               │
//!                      │  control (a FIFO): signals    adopts what the task leaves behind       │
//!                      │ ─────────────────────────►    knows the true exit status ◄─────────────┘
//!                      │  state (a file): who runs, how it ended
//!                      └◄─────────────────────────
//! ```
//!
//! The supervisor is the task's parent, and the driver is not: so the driver may die, be killed or be replaced, and the next
//! one finds in the state file who runs and how it ended, with the true exit code. What holds:
//!
//! - The driver signals no process by its number. It writes the wish to the control FIFO, and the supervisor signals its own
//!   child, whose number cannot have passed to anybody else, since only the supervisor reaps it (PRC-01).
//! - Where a supervisor was killed, its task is signalled only through a descriptor of a process whose number, start time, boot
//!   and tag have been compared.
//! - A task that was started is not started again: the same id with the same configuration is the same task (PRC-09).
//! - A task that was answered not to have started does not run, and does not start later: a supervisor that does not answer is
//!   stopped, and killed with all that it has begun, before the answer.
//! - An exit status that nobody has seen is told as unknown, never as success (EVT-05).
//! - That the kernel ended a task for want of memory is told where the task's control group counts it: the task was killed, not
//!   by the driver, and the group has counted one more. In a group that it shares with others this may have been another; where
//!   no group counts, `oom_killed` is false, and nobody knows.
//! - A task runs in the control groups that its host made for it, and so do commands beside it. The supervisor does not.
//! - When a task ends, whatever it left of its processes is ended with it, also what left its session (PRC-03).
//! - Output goes straight from the task to the files or FIFOs that the host named, and needs no process of ours (PRC-07).
//! - With `--state-dir`, a driver knows of the tasks that one before it has started and did not live to tell of (PRC-09).
//! - With `--state-dir`, the events that were announced outlive the driver, and none is announced twice (EVT-02).
//!
//! ```text
//!   arguments   what can be told to it
//!   serve       its life, with its faults in between
//!   driver      the driver: each call of a host
//!     board     what the driver knows of its tasks, and what it has said of them
//!     settings  what an operator writes of the driver
//!     task      one task, as the driver knows it
//!     birth     how a task is started, or not started for certain
//!     memory      which tasks it was told to start, for the driver after it
//!     place     where the state of a task is kept
//!     record    what is kept there
//!     directory where a task runs, whoever it runs as
//!     beside    commands that run beside a task
//!     surroundings where, as whom and with which environment they run
//!     spoken    those whose input and output are streams
//!     terminal  the terminal that they may have
//!     enter     what a process of a task does before it becomes the command
//!     placement the control groups that it is put into, with their limits
//!     usage     what the processes of a task use
//!     figures   what its control groups count
//!     speed     how fast a core is
//!     out_of_memory whether the kernel ended it for want of memory
//!   supervisor  the process beside each task
//!   faults      how it misbehaves when told to: what tests and demonstrations are for
//! ```

mod arguments;
mod serve;

mod driver;

mod birth;
mod board;
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
mod odd_texts;

mod error;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use arguments::ExecArgs;
pub(crate) use board::KILL_PATIENCE;
pub use enter::{EnterArgs, EnterError, enter};
pub use error::ExecError;
pub use faults::{FaultArgs, StreamEnd, SupervisorHang};
pub use odd_texts::OddTexts;
pub use serve::serve;
pub(crate) use signals::named as signal_named;
pub use supervisor::{SupervisorError, supervise};
