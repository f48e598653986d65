//! The eventor: the journal of the events of one task.

mod journal;

pub use journal::{JOURNAL_ITEMS_MAX, Journal, Taken};
