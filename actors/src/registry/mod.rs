//! The dynamic registry: who is registered, who is active, who is told.
//!
//! ```text
//!   Register ──► new, update or nothing ─┐
//!   Deregister ──► gone or not there ────┤      ┌► reply, once it is on disk
//!   identity check ──► confirmed ────────┼► elect ┼► news: Registered, Updated, Deregistered, ActiveChanged
//!   grace over ──► not confirmed, gone ──┘      └► whoever waited for the plugin
//! ```
//!
//! A registration's life:
//!
//! ```text
//!                Register                       Deregister
//!   (nothing) ─────────────► confirmed ───────────────────────► (nothing)
//!                             ▲   │ newest confirmed one: active; others stand by
//!          Register again, or │   │
//!          identity proven    │   ▼ host restarts
//!                           provisional ──── grace over ──────► (nothing), with news
//! ```
//!
//! What holds:
//!
//! - The active registration of a plugin is the newest confirmed one, after every single step (R1). Newest is by number, and
//!   numbers come from one counter that never goes back, also across restarts (R2).
//! - Every change of the active registration, or of its contents, has a new generation from the same counter, and is told as
//!   `ActiveChanged` (R1, R3, REG-05, REG-06).
//! - What a message changes is one change on disk: all of it or nothing (R5).
//! - A removal is told only of what was there, and names it (R4, REG-04).
//! - Nothing polls: those who wait are answered by the step that brings what they wait for, or by their deadline (R7).
//!
//! Start it with [`start`]; it needs a store ([`DurableStore`] or [`MemoryStore`]) and something that can prove the identity
//! of a restored plugin ([`IdentityCheck`]).

mod actor;
mod behaviour;
mod draft;
mod members;
mod messages;
mod restored;
mod row;
#[cfg(test)]
mod scripts;
mod state;
mod store;
mod turn;
mod waiting;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use actor::{IdentityCheck, SocketCheck, start};
pub use behaviour::{RegistryAnswer, RegistryAsk, RegistryTimer};
pub use messages::*;
pub use row::{COUNTER_TABLE, REGISTRATION_TABLE};
/// How rows lie in the database, for the simulation.
pub(crate) use row::{CounterRow, RegistrationRow};
pub use state::{
    Activation, CheckIdentity, CheckOutcome, Image, Registry, RegistryOptions, Stored, StoredChange,
};
pub use store::{DurableStore, MemoryStore, OWNER};
pub(crate) use store::{image_of, operations_of};
