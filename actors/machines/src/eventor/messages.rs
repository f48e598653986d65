//! What can be said to an eventor, and what it says. Only the owner of the drivers speaks with it.

use super::JournalId;
use crate::conversation;
use crate::driver::{EventPosition, Folded, TaskKey};
use crate::vocabulary::Generation;

/// Says of which generation of the driver events are to be had from now on.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubscribeTo {
    /// The driver's present generation.
    pub generation: Generation,
}

/// Says that a task is watched.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct Watch {
    /// Which task.
    pub task: TaskKey,
    /// The journal that its events go to.
    pub sink: JournalId,
    /// The last event that went there.
    pub after: Option<EventPosition>,
    /// Whether it was watched before, by a former life of the eventor.
    pub is_renewal: bool,
}

/// Says that a task is not watched any more: the event stream of its handler ends.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Forget {
    /// Which task.
    pub task: TaskKey,
}

/// Asks for the latest events of a task, with repeats folded (EVT-04).
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecentOf {
    /// Which task.
    pub task: TaskKey,
}

conversation! {
    /// What is said to an eventor.
    #[derive(Clone, Hash)]
    pub enum EventorAsk -> #[derive(Hash)] EventorAnswer {
        SubscribeTo => (),
        Watch => (),
        Forget => (),
        RecentOf => Vec<Folded>,
    }
}

/// What an eventor says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EventorNews {
    /// It begins, or begins again, and knows of no task and no generation.
    Began,
    /// Its stream ended, with this error or by itself. It is opened again after a pause, or when the driver is back.
    Interrupted {
        /// Of which generation of the driver.
        generation: Generation,
        /// The text of the error.
        error: String,
    },
    /// Events came for a task that was not announced in time, or that name no task.
    DeadLetters {
        /// Which task; `None` when they name none properly.
        task: Option<TaskKey>,
        /// How many.
        count: u64,
        /// What is wrong with them, if they name none.
        error: Option<String>,
    },
}
