//! The dynamic registry: decides which plugins are registered and which registration is active, and notifies subscribers.
//!
//! ```text
//!   Register ──► new, update or nothing ─┐
//!   Deregister ──► gone or not there ────┤      ┌► reply, once it is on disk
//!   identity check ──► confirmed ────────┼► elect ┼► news: Registered, Updated, Deregistered, ActiveChanged
//!   grace over ──► not confirmed, gone ──┘      └► answers for waiting callers
//! ```
//!
//! Lifecycle of a registration:
//!
//! ```text
//!                Register                       Deregister
//!   (nothing) ─────────────► confirmed ───────────────────────► (nothing)
//!                             ▲   │ the best confirmed one: active (`election`); others stand by
//!          Register again, or │   │
//!          identity proven    │   ▼ host restarts
//!                           provisional ──── grace over ──────► (nothing), with news
//! ```
//!
//! Invariants:
//!
//! - The active registration of a plugin is the best confirmed one, the newest of equals, after every step (R1, R1a, R1b, R1c). The newest
//!   has the highest number; numbers come from one counter that never goes back, also across restarts (R2).
//! - Each registration has a generation from the same counter, another one with each change of its contents or its connection. A
//!   generation that was fit while it was active is not active again; a generation that was not fit was never dispensed, and keeps its
//!   connection when it becomes active again (R1d). Every change of the active one is published as `ActiveChanged` with its reason (R1,
//!   R3, REG-05, REG-06).
//! - The output about a change by health does not wait for its own write: a crash takes it back without harm.
//! - The changes of one message are one atomic write (R5).
//! - A removal is published only if the registration existed, and names it (R4, REG-04).
//! - Nothing polls: a waiting caller is answered by the step that makes its plugin active, or by its deadline (R7).

mod behaviour;
mod draft;
mod election;
mod fitness;
mod members;
mod messages;
mod reasons;
mod restored;
#[cfg(test)]
mod scripts;
mod state;
mod turn;
mod waiting;

pub use behaviour::RegistryTimer;
pub use messages::*;
pub use reasons::*;
pub use state::{
    CheckIdentity, CheckOutcome, Image, Registry, RegistryOptions, Stored, StoredChange, first_number,
};
