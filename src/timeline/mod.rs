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
//! Message scripts and the pictures of simulated runs read the same words: a message script shows each piece of news as a sentence of
//! its own, since it has no lines before it that could have said the rest; a picture shows the lines.
//!
//! No reader is waited for: one that is too slow misses lines and gets their number (R6).

mod line;
mod news_lines;

mod agent;
mod allocations;
mod drivers;
mod instances;
mod inventory;
mod processes;
mod registry;
mod supervisor;
mod tasks;
mod volumes;

pub(crate) mod answers;
mod follow;
mod teller;

mod drawn;
mod page;
mod played;

pub(crate) use drawn::Drawer;
pub(crate) use follow::follow;
pub(crate) use page::Page;
pub(crate) use played::{Played, message};
pub(crate) use registry::lacks;
pub(crate) use teller::{news_sentence, sentence};
pub(crate) use volumes::{answer as volume_answer, event as volume_event};
