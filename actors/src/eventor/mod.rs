//! The eventor: reads a driver's stream of task events, and gives each to the handler of its task.

mod journal;

mod handler;

pub use handler::{TaskEventSink, TaskEvents, task_event_callback, task_events};
pub use journal::{JOURNAL_ITEMS_MAX, Journal, Taken};
