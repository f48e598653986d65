//! The notifications of the owner of the drivers.

use crate::driver::{DriverReport, TaskKey};
use crate::vocabulary::{DriverName, Generation};

/// A notification for subscribers.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum DriversNews {
    /// A driver was added, or its report changed.
    Reported(DriverReport),
    /// A driver was removed; this is its last report, with health `Gone`.
    Left(DriverReport),
    /// Events came for a task that was not announced in time; they are dead letters (EVT-02).
    DeadLetters {
        /// The driver.
        driver: DriverName,
        /// The task; `None` when the events do not name one properly.
        task: Option<TaskKey>,
        /// The number of events since the last such notification.
        count: u64,
        /// The fault of the events, if they name no task.
        error: Option<String>,
    },
    /// The stream of task events of a driver ended; it is opened again after a pause.
    EventsInterrupted {
        /// The driver.
        driver: DriverName,
        /// Its generation.
        generation: Generation,
        /// The text of the error, or that the stream just ended.
        error: String,
    },
}

/// The state of all drivers, for subscribers.
#[derive(Debug, Clone, PartialEq, Hash, Default)]
pub struct DriversView {
    /// One report for each driver, by name.
    pub reports: Vec<DriverReport>,
}
