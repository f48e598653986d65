//! The shell runs a pure machine inside an actix actor.
//!
//! A [`Machine`] decides: `step(moment, input) -> effects`. The shell does: it turns messages into events, and what the machine
//! wants done into replies, news, calls, timers and writes. What comes back comes back as an input.
//!
//! ```text
//!              limit           mailbox           step             outbox
//!  ask ──► count, or Busy ──► in order ──► machine decides ──► │ reply        │ ──► asker
//!                                 ▲             │              │ publish      │ ──► every feed
//!  calls, timers ─────────────────┘             └─ timers      │ call         │ ──► beside the mailbox
//!                                                              │ ── gate ──   │ ◄── persister: on disk
//!                                                              │ reply ...    │
//! ```
//!
//! Between mailbox and outbox works the [kernel](crate::kernel), which holds the rules of an actor: gates, failed writes,
//! crashes, rebuilds. It is the same that searches and simulations run. What the shell adds:
//!
//! 1. Calls never hold the mailbox: they are futures beside it, each under its deadline.
//! 2. What the kernel refuses comes back as [`AskError::NotDurable`] or [`AskError::Crashed`], and a [`Notice`] says so; the input
//!    over which a machine crashed goes to the dead letters. Mailbox and address stay valid. Only [`EffectHandler::published`] may not
//!    panic, since news would be lost.
//! 3. Mailbox order holds under overload: one message too many is refused with [`AskError::Busy`], and nothing
//!    that was taken is overtaken.
//! 4. Everything has a limit: messages in flight ([`Address::vacant`]), calls ([`Settings`]), unread news
//!    ([`Address::subscribe`]).
//! 5. Whatever was taken runs to its end once, whether or not anyone waits.
//!
//! A host program can run machines of its own in the same way; `examples/own_actor.rs` shows one. What such a machine stores
//! goes into the host's [`Database`], through a [`Ledger`].

mod actor;
mod address;
mod children;
mod clock;
mod conversation;
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
mod spawn;
mod store;

pub(crate) use children::{Child, Children};

pub use crate::kernel::{
    AskId, CallKey, CallLost, Effect, Effects, Ending, Input, JournalEntry, Machine, Never, StopMode, Ticket,
    Written,
};

pub use address::{Address, AskError, Asking, Drill, Vitals};
pub use clock::Clock;
pub use conversation::Message;
pub use drills::Drills;
pub use effect_handler::{EffectHandler, NoEffectHandler};
pub use feed::{FeedItem, SubscriberReport, Subscription};
pub use follow::{Followed, Follower};
pub use journal::{Journal, JournalLine};
pub use ledger::{Database, Ledger};
pub use notice::{DeadLetterCause, Notice, Notices};
pub use spawn::{IN_FLIGHT_MAX, Running, Settings, start};
pub use store::{NoStore, Store};

pub(crate) use log_limit::{DEEDS, LogLimit};
