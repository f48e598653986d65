//! The shell runs a pure machine inside an actix actor.
//!
//! A [`Machine`] decides: `step(input, context)`, where the context has the time and takes the effects. The shell executes: it
//! turns messages into events, and effects into replies, news, calls, timers and writes. Each outcome becomes an input again.
//!
//! ```text
//!              limit           mailbox           step             outbox
//!  ask ──► count, or Busy ──► in order ──► machine decides ──► │ reply        │ ──► asker
//!                                 ▲             │              │ publish      │ ──► every subscriber
//!  calls, timers ─────────────────┘             └─ timers      │ call         │ ──► concurrent future
//!                                                              │ ── gate ──   │ ◄── persister: on disk
//!                                                              │ reply ...    │
//! ```
//!
//! The [kernel](crate::kernel) sits between mailbox and outbox and holds the rules of an actor: gates, failed writes,
//! crashes, rebuilds. Searches and simulations run the same kernel. The shell adds:
//!
//! 1. Calls never block the mailbox: they are concurrent futures, each with a deadline.
//! 2. A refusal of the kernel reaches the asker as [`AskError::NotDurable`], [`AskError::NotWritten`] or [`AskError::Crashed`], and is
//!    posted as a [`Notice`]; an input that made the machine panic becomes a dead letter. Mailbox and address stay valid. Only
//!    [`EffectHandler::published`] must not panic, since news would be lost.
//! 3. Mailbox order holds under overload: a message over the limit is refused with [`AskError::Busy`] (backpressure), and no
//!    accepted message is overtaken.
//! 4. Everything has a limit: messages in flight ([`Address::vacant`]), calls ([`Settings`]), unread news
//!    ([`Address::subscribe`]).
//! 5. An accepted message is handled exactly once, whether or not its sender waits.
//!
//! A host program can run its own machines in the same way; `examples/own_actor.rs` shows one. Such a machine stores its
//! state in the host's [`Database`], through a [`Ledger`].

mod actor;
mod address;
mod children;
mod clock;
mod drills;
mod effect_handler;
mod feed;
mod follow;
mod journal;
mod ledger;
mod log_limit;
mod mailbox;
mod notice;
mod port;
mod reservation;
mod spawn;
mod store;

pub(crate) use children::{Child, Children};

pub use callboard_machines::{AskError, FeedItem, Message};

pub use crate::kernel::{
    AskId, CallKey, CallLost, Effect, Ending, Gate, Input, Machine, Never, StepContext, StopMode, StopStep,
    Ticket, Vitals, Written,
};

pub use address::{Address, Asking, Drill};
pub use clock::Clock;
pub use drills::Drills;
pub use effect_handler::{EffectHandler, NoEffectHandler, Started};
pub use feed::{SubscriberReport, Subscription};
pub use follow::{Followed, Follower};
pub use journal::{Detail, Heard, Journal, JournalLine, Recorded, Typed};
pub use ledger::{Database, Ledger};
pub use notice::{DeadLetterCause, Notice, Notices};
pub use reservation::Reservation;
pub use spawn::{IN_FLIGHT_MAX, Running, Settings, start};
pub use store::{NoStore, Store};

pub(crate) use log_limit::{BEHAVIOUR_RATE, LogLimit};
