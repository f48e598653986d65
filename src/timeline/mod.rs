//! The timeline: the messages between actors, as one list of lines in the order in which they happened.
//!
//! ```text
//!  every actor ──► journal ──► teller ──► follow: a stream of lines ──► admin socket ──► page: columns for people
//!                               │                                                   └──► drawn: a picture
//!                               └─ one file for each actor, from its news to lines
//! ```
//!
//! The journal has the order in which everything happened, a cause before its consequence; nothing is sorted here. The timeline shows only
//! changes: each actor has written its initial state into the journal.
//!
//! Message scripts and the pictures of simulated runs use the same words: a message script shows each piece of news as a complete sentence,
//! since it has no earlier lines with the rest; a picture shows the lines.
//!
//! No reader is waited for: a reader that is too slow misses lines and receives their number (R6).

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
