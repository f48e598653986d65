//! The messages of an eventor, and its news. Only the owner of the drivers talks to it.

use super::JournalId;
use crate::conversation;
use crate::driver::{EventPosition, Folded, TaskKey};
use crate::vocabulary::Generation;

/// Sets the generation of the driver whose events are read from now on.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubscribeTo {
    /// The driver's present generation.
    pub generation: Generation,
}

/// Reports that a task is watched.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct Watch {
    /// The task.
    pub task: TaskKey,
    /// The journal of its events.
    pub sink: JournalId,
    /// The last event in that journal.
    pub after: Option<EventPosition>,
    /// Whether it was watched before, by a former life of the eventor.
    pub is_renewal: bool,
}

/// Reports that a task is no longer watched: the event stream of its handler ends.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Forget {
    /// The task.
    pub task: TaskKey,
}

/// Asks for the latest events of a task, with repeats folded (EVT-04).
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecentOf {
    /// The task.
    pub task: TaskKey,
}

conversation! {
    /// The messages of an eventor.
    #[derive(Clone, Hash)]
    pub enum EventorAsk -> #[derive(Hash)] EventorAnswer {
        SubscribeTo => (),
        Watch => (),
        Forget => (),
        RecentOf => Vec<Folded>,
    }
}

/// The news of an eventor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventorNews {
    /// It begins, or begins again, and knows no task and no generation.
    Began,
    /// Its stream ended, with this error or by itself. It is opened again after a pause, or when the driver is back.
    Interrupted {
        /// The generation of the driver.
        generation: Generation,
        /// The text of the error.
        error: String,
    },
    /// Events came for a task that was not announced in time, or that name no task.
    DeadLetters {
        /// The task; `None` when the events do not name one properly.
        task: Option<TaskKey>,
        /// The number of events.
        count: u64,
        /// The fault of the events, if they name no task.
        error: Option<String>,
    },
}
