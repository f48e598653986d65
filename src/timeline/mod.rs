//! The timeline: who said what to whom, as one list of lines in mailbox order.
//!
//! ```text
//!  agent        feed ──► retold ─┐
//!  allocations  feed ──► retold ─┤
//!  registry     feed ──► retold ─┼─► merged ──► followed: a stream of lines ──► admin socket ──► page: columns for people
//!  instances    feed ──► retold ─┤
//!  inventory    feed ──► retold ─┤
//!  tasks        feed ──► retold ─┤
//!  drivers      feed ──► retold ─┤
//!  notices      feed ──► retold ─┤
//!  gates     journal ──► between ┘   the news of their actor, if they are asked for
//! ```
//!
//! Each actor's own news keep their order. News of different actors that are there at the same time are put in the order in
//! which things take their course, so that a cause stands before its consequence.
//!
//! Whoever reads is never waited for: one who is too slow misses lines and is told how many (R6).

mod gates;
mod line;
mod merge;
mod retell;

mod agent;
mod allocations;
mod drivers;
mod instances;
mod inventory;
mod notices;
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
