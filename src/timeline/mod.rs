//! The timeline: who said what to whom, as one list of lines in the order in which it happened.
//!
//! ```text
//!  every actor ──► journal ──► told ──► followed: a stream of lines ──► admin socket ──► page: columns for people
//!                               │                                                   └──► drawn: a picture
//!                               └─ one file for each actor, from its news to words
//! ```
//!
//! The journal has the order in which everything happened, a cause in front of its consequence; nothing is sorted here. What the
//! timeline knows of each actor at its beginning, so that it tells changes only, the actor has written into the journal itself.
//!
//! Whoever reads is never waited for: one who is too slow misses lines and is told how many (R6).

mod line;
mod retell;

mod agent;
mod allocations;
mod drivers;
mod instances;
mod inventory;
mod registry;
mod tasks;

mod follow;
mod teller;

mod drawn;
mod page;

pub(crate) use drawn::Drawer;
pub(crate) use follow::follow;
pub(crate) use line::{Line, Voice};
pub(crate) use page::Page;
pub(crate) use teller::Teller;
