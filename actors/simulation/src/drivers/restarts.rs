//! Tracks the restarts of drivers that their owner has acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::driver::{DriverConfig, DriverMode, DriverReport, DriverStage};
use callboard_actors::drivers::{ChildEnded, Drivers, DriversAsk, DriversChange};
use callboard_actors::shell::{Ending, Input};
use callboard_actors::vocabulary::{Attempt, DriverName};

/// The restarts that are not known to be done. A driver's process outlives its actor, so each actor of it receives the request.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Restarts {
    /// The number under which the present actor received the request.
    due: BTreeMap<DriverName, Attempt>,
    /// The drivers whose actor was started in this step and must receive the request in the same step.
    owed: BTreeSet<DriverName>,
}

impl Restarts {
    /// The actor of a driver is started because of this input.
    pub(super) fn begins(&mut self, config: &DriverConfig, input: &Input<Drivers>) {
        let driver = &config.spec.name;
        let is_asked_now = matches!(
            input,
            Input::Asked { ask: DriversAsk::RestartDriver(asked), .. } if asked.name == *driver
        );
        match config.mode {
            DriverMode::Retire => self.is_over(driver),
            DriverMode::Serve if is_asked_now || self.due.contains_key(driver) => {
                self.owed.insert(driver.clone());
            }
            DriverMode::Serve => {}
        }
    }

    /// The present actor of a driver receives the request.
    pub(super) fn asked(&mut self, driver: &DriverName, number: Attempt) {
        self.owed.remove(driver);
        self.due.insert(driver.clone(), number);
    }

    /// The stored drivers have changed: a driver that replaces another, or leaves, is not restarted.
    pub(super) fn wrote(&mut self, change: &DriversChange) {
        match change {
            DriversChange::Keep(spec) => self.is_over(&spec.name),
            DriversChange::Drop(driver) => self.is_over(driver),
            DriversChange::Restart(_)
            | DriversChange::Restarted(_)
            | DriversChange::Watch(..)
            | DriversChange::Forget(..) => {}
        }
    }

    /// The present actor of a driver has ended. It has ended the process if it was requested to end, or ended in order.
    pub(super) fn ended(&mut self, ended: &ChildEnded, was_ending: bool) {
        if was_ending || ended.ending == Ending::Normal {
            self.is_over(&ended.driver);
        }
    }

    fn is_over(&mut self, driver: &DriverName) {
        self.due.remove(driver);
    }

    /// The present actor of a driver has reported something.
    pub(super) fn reported(&mut self, report: &DriverReport) {
        let is_done = match report.stage {
            DriverStage::Launching
            | DriverStage::Connecting
            | DriverStage::Watching
            | DriverStage::Refused
            | DriverStage::Gone => true,
            DriverStage::Recalling | DriverStage::Stopping | DriverStage::Pausing => false,
        };
        if is_done && self.due.get(&report.name).is_some_and(|number| *number <= report.restart) {
            self.is_over(&report.name);
        }
    }

    /// A driver whose actor was started in this step and received no request.
    pub(super) fn take_owed(&mut self) -> Option<DriverName> {
        std::mem::take(&mut self.owed).pop_first()
    }
}
