//! Applies the rules of an actor, apart from any actor: one [`Machine`] with its gates, calls, timers, crashes and rebuilds around it.
//!
//! The kernel takes an [`Event`] and decides; its output goes out through a [`Port`]. It names no runtime, clock, store
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
//! Invariants:
//!
//! 1. Effects leave in order, in two outboxes. Output that a crash must not take back is a *promise*: the answers that
//!    [`Machine::is_promise`] names, and the calls of [`Machine::awaits_disk`]. They wait behind the *gate* of every write that was
//!    persisted before them. Everything else that leaves (news, snapshots, other answers and calls) waits only for writes whose
//!    [`Gate`] requires it, and keeps its own order; so it may pass promises. Events are handled meanwhile.
//!    While the disk is sick ([`Event::Disk`]), no promise waits: new ones are refused as [`Refusal::NotDurable`] before the machine
//!    receives them ([`Machine::is_new_promise`]), and others when they would wait; the end of the actor does not wait either. The
//!    machine continues, and its changes are written when the disk is sound. Calls wait until then.
//! 2. A write that was handed over and is lost ([`Event::Settled`] with an error) is handed over again after a pause, in its order and
//!    before any later change; the machine continues, and a caller that waits for a promise is refused as [`Refusal::NotDurable`]. Changes
//!    that are handed over again become one where the machine merges ([`Machine::merge`]), since the disk may have taken what it reported
//!    as lost. So do those that are kept while the disk is sick, which bounds them. When a write is refused at once
//!    ([`Written::Failed`]), nothing that follows from it leaves, a caller that waits for it is refused as [`Refusal::NotWritten`], and
//!    the machine is rebuilt from its store. Questions that no step had answered yet are asked again, in the order in which they came, also
//!    if no caller waits for the answer: so a machine answers every question, sooner or later. A request to stop keeps its
//!    place among the questions.
//! 3. Calls return with their key, and calls of a former life of the machine have no effect.
//! 4. A panic in a step is caught: its asker is refused as [`Refusal::Crashed`], what was written before settles, the machine is
//!    rebuilt, the budget is charged. When the budget is spent the actor ends with [`Ending::BudgetSpent`]; a machine that is not rebuilt
//!    ([`Machine::is_rebuilt`]) ends with the first panic. A panic in the view is a crash as well, and a panic in the store is a
//!    failed write or load.
//! 5. Events are handled in the order in which they arrive, also events that arrived while there was no machine.
//!
//! The lifecycle of a machine:
//!
//! ```text
//!  begin ──► loading ─── image ──► running ─── stop ──► ended
//!             ▲  ▲ │               │     │
//!             │  │ │ cannot read   │     │
//!             │  │ ▼         panic │     │ write refused
//!             │  pause             ▼     ▼
//!             │    ▲               settling: waits for the earlier writes
//!             │    └─ write refused ─┤
//!             └────── panic ─────────┘
//! ```
//!
//! A panic and a failed load charge the budget; a charge over the budget ends the actor.

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
