//! The shell runs a pure machine inside an actix actor.
//!
//! A [`Machine`] decides: `step(moment, input) -> effects`. The shell does: it turns messages into inputs, and effects into
//! replies, news, calls, timers and writes. What comes back comes back as an input.
//!
//! ```text
//!              door            mailbox           step             outbox
//!  ask ──► count, or Busy ──► in order ──► machine decides ──► │ reply        │ ──► asker
//!                                 ▲             │              │ publish      │ ──► every feed
//!  calls, timers ─────────────────┘             └─ timers      │ call         │ ──► beside the mailbox
//!                                                              │ ── gate ──   │ ◄── persister: on disk
//!                                                              │ reply ...    │
//! ```
//!
//! What holds (the rules are those of the design, section 4):
//!
//! 1. Effects leave in order. Behind a *gate* nothing leaves before its write is on disk; the mailbox goes on meanwhile, and
//!    later effects queue behind.
//! 2. When a write fails, everything behind its gate is answered with [`AskError::NotDurable`], the machine is rebuilt from
//!    its store, and a [`Notice`] says so. What no step had answered yet is asked again, in the order in which it came, also
//!    if it was told and nobody waits for an answer: so a machine answers everything that is said to it, sooner or later. A
//!    request to end keeps its place among the questions.
//! 3. Calls never hold the mailbox. They come back with their key, and calls of a former life of the machine do not come
//!    back at all.
//! 4. A panic in a step is caught: its asker gets [`AskError::Crashed`], the input goes to the dead letters, what was
//!    written before settles, the machine is rebuilt, the budget is charged. Mailbox and address stay valid. When the budget
//!    is spent the actor ends with [`Ending::BudgetSpent`] and its parent decides. A panic over the view is a crash as well,
//!    and one in the store is a failed write or load; only [`Doing::published`] may not panic, since news would be lost.
//! 5. Mailbox order holds under overload: one message too many is refused at the door with [`AskError::Busy`], and nothing
//!    that was taken is overtaken.
//! 6. Everything has a limit: messages in flight ([`Address::vacant`]), calls ([`Settings`]), unread news
//!    ([`Address::subscribe`]).
//! 7. Whatever was taken runs to its end once, whether or not anyone waits.
//!
//! A machine's life, as the shell sees it:
//!
//! ```text
//!  start ──► loading ─── image ──► running ─── stop ──► ended
//!             ▲  ▲ │               │     │
//!             │  │ │ cannot read   │     │
//!             │  │ ▼         panic │     │ write failed
//!             │  pause             ▼     ▼
//!             │    ▲               settling: what was written before is waited for
//!             │    └─ write failed ──┤
//!             └────── panic ─────────┘
//! ```
//!
//! A panic and a failed load charge the budget; the one that is too many ends the actor.
//!
//! A host program can run machines of its own in the same way; `examples/own_actor.rs` shows one. What such a machine stores
//! goes into the host's [`Database`], through a [`Ledger`].

mod actor;
mod address;
mod calls;
mod children;
mod clock;
mod conversation;
mod doing;
mod drills;
mod feed;
mod follow;
mod journal;
mod ledger;
mod log_limit;
mod machine;
mod mailbox;
mod notice;
mod outbox;
mod phase;
mod rebuild;
mod release;
mod spawn;
mod store;
mod timers;

pub(crate) use calls::panic_message;
pub(crate) use children::{Child, Children};

pub use address::{Address, AskError, Asking, Drill, Vitals};
pub use clock::Clock;
pub use conversation::Message;
pub use doing::{Doing, NoDoing};
pub use drills::Drills;
pub use feed::{FeedItem, Subscription};
pub use follow::{Followed, Follower};
pub use journal::{Journal, JournalEntry, JournalLine};
pub use ledger::{Database, Ledger};
pub use machine::{AskId, CallKey, CallLost, Effect, Effects, Input, Machine, Never, StopMode};
pub use notice::{DeadLetterCause, Notice, Notices};
pub use spawn::{Ending, IN_FLIGHT_MAX, Running, Settings, start};
pub use store::{NoStore, Store, Ticket, Written};

pub(crate) use log_limit::{DEEDS, LogLimit};
pub(crate) use outbox::Outbox;
pub(crate) use timers::Timers;
