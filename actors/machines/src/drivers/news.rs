//! The notifications of the owner of the drivers.

use crate::driver::{DriverReport, TaskKey};
use crate::vocabulary::{DriverName, Generation};

/// A notification for subscribers.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum DriversNews {
    /// A driver came, or something about it changed.
    Reported(DriverReport),
    /// A driver was removed; this is its last report, with health `Gone`.
    Left(DriverReport),
    /// Events came for a task that was not announced in time; they are dead letters (EVT-02).
    DeadLetters {
        /// Of which driver.
        driver: DriverName,
        /// Of which task; `None` when the events do not name one properly.
        task: Option<TaskKey>,
        /// How many since this was said last.
        count: u64,
        /// What is wrong with them, if they name no task.
        error: Option<String>,
    },
    /// The stream of task events of a driver ended; it is opened again after a pause.
    EventsInterrupted {
        /// Of which driver.
        driver: DriverName,
        /// Of which generation.
        generation: Generation,
        /// The text of the error, or that it just ended.
        error: String,
    },
}

/// Everything subscribers may know of the drivers.
#[derive(Debug, Clone, PartialEq, Hash, Default)]
pub struct DriversView {
    /// One report for each driver, by name.
    pub reports: Vec<DriverReport>,
}
