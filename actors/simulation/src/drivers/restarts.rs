//! What becomes of restarts of drivers that their owner has acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::driver::{DriverConfig, DriverMode, DriverReport, DriverStage};
use callboard_actors::drivers::{Drivers, DriversAsk};
use callboard_actors::shell::Input;
use callboard_actors::vocabulary::{Attempt, DriverName};

/// The restarts that are not known to be done. A driver's process outlives its actor, so each actor of it is asked.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Restarts {
    /// Under which number the present actor was asked.
    due: BTreeMap<DriverName, Attempt>,
    /// Whose actor was started in this step, and has to be asked in it.
    owed: BTreeSet<DriverName>,
}

impl Restarts {
    /// The actor of a driver is started, over what came in.
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

    /// The present actor of a driver is asked.
    pub(super) fn asked(&mut self, driver: &DriverName, number: Attempt) {
        self.owed.remove(driver);
        self.due.insert(driver.clone(), number);
    }

    /// The driver is removed, or makes room for another one.
    pub(super) fn is_over(&mut self, driver: &DriverName) {
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

    /// Whose actor was started in this step and not asked.
    pub(super) fn take_owed(&mut self) -> Option<DriverName> {
        std::mem::take(&mut self.owed).pop_first()
    }
}
