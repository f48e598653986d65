//! The rules of an actor, apart from any actor: one [`Machine`] with its gates, calls, timers, crashes and rebuilds around it.
//!
//! The kernel takes an [`Event`] and decides; what is to be done goes out through a [`Port`]. It names no runtime, clock, store
//! or socket. The shell is a port with a real mailbox, clock and store; the simulation is a port with none of these. So what
//! searches and simulations prove is what runs in production.
//!
//! ```text
//!   Event ──► Kernel::handle ──► Port
//!   Asked         │                ├─ write, load, pause            the store
//!   StopRequested │                ├─ send: answer, news, snapshot, call
//!   Subscribed    ▼                ├─ refuse                        the caller
//!   Settled    Machine::step       ├─ abandon_calls
//!   Loaded        │                ├─ note                          the journal
//!   Returned      ▼                └─ end
//!   TimersDue  outboxes, gates
//!   Disk          │
//!   Woken
//! ```
//!
//! What holds:
//!
//! 1. Effects leave in order, in two outboxes. What a crash must not take back are *promises*: the answers that
//!    [`Machine::is_promise`] names, and the calls of [`Machine::awaits_disk`]. They wait behind the *gate* of every write that was
//!    persisted before them. Everything else that leaves (news, snapshots, other answers and calls) waits only for writes whose
//!    [`Gate`] says so, and for its order among itself; so it may pass promises. Events are handled meanwhile.
//!    While the disk is sick ([`Event::Disk`]), no promise waits: new ones are refused as [`Refusal::NotDurable`] before the machine
//!    hears of them ([`Machine::is_new_promise`]), and others when they would wait; the end of the actor does not wait either. The
//!    machine goes on, and what it wrote is written when the disk is sound. Calls wait until then.
//! 2. What was handed over and is lost ([`Event::Settled`] with an error) is handed over again after a pause, in its order and before
//!    any later change; the machine goes on, and a caller that waits for a promise is refused as [`Refusal::NotDurable`]. Changes
//!    that are handed over again become one where the machine merges ([`Machine::merge`]), since the disk may have taken what it called
//!    lost. So do those that are kept while the disk is sick, which bounds them. When a write is refused at once
//!    ([`Written::Failed`]), nothing that follows from it leaves, a caller that waits for it is refused as [`Refusal::NotWritten`], and
//!    the machine is rebuilt from its store. What no step had answered yet is asked again, in the order in which it came, also if no
//!    caller waits for the answer: so a machine answers everything that is said to it, sooner or later. A request to stop keeps its
//!    place among the questions.
//! 3. Calls come back with their key, and calls of a former life of the machine have no effect.
//! 4. A panic in a step is caught: its asker is refused as [`Refusal::Crashed`], what was written before settles, the machine is
//!    rebuilt, the budget is charged. When the budget is spent the actor ends with [`Ending::BudgetSpent`]; one that is not built
//!    again ([`Machine::is_rebuilt`]) ends with the first panic. A panic over the view is a crash as well, and one in the store is a
//!    failed write or load.
//! 5. Events are handled in the order in which they come, also those that came while there was no machine.
//!
//! A machine's life:
//!
//! ```text
//!  begin ──► loading ─── image ──► running ─── stop ──► ended
//!             ▲  ▲ │               │     │
//!             │  │ │ cannot read   │     │
//!             │  │ ▼         panic │     │ write refused
//!             │  pause             ▼     ▼
//!             │    ▲               settling: what was written before is waited for
//!             │    └─ write refused ─┤
//!             └────── panic ─────────┘
//! ```
//!
//! A panic and a failed load charge the budget; the one that is too many ends the actor.

mod calls;
mod context;
mod events;
mod following;
mod kept;
mod last_news;
mod machine;
mod one_call;
mod outbox;
mod phase;
mod port;
mod rebuild;
mod release;
mod state;
mod step;
mod timers;
mod vitals;

#[cfg(test)]
mod lost_writes;
#[cfg(test)]
mod tests;

pub use context::{Effect, Gate, StepContext};
pub use following::{REFOLLOW_PAUSE, await_endings_again, await_news, follow_on};
pub use last_news::LastNews;
pub use machine::{
    AskId, CallKey, CallLost, Ending, Input, Machine, Never, StopMode, StopStep, Ticket, Written,
    panic_message,
};
pub use one_call::{CALL_GRACE, OneCall};
pub use port::{Event, JournalEntry, Limits, Outgoing, Port, Refusal, Terms};
pub use state::Kernel;
pub use vitals::Vitals;
