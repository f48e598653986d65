//! The state of a driver.

use std::time::Duration;

use super::service::{DriverService, DriverStep, DriverTold};
use super::spec::{DriverLimits, DriverSpec};
use super::{Attributes, DriverHealth, DriverReport};
use crate::kernel::LastNews;
use crate::process::ProcessName;
use crate::session::{Reached as SessionReached, Session, SessionCall, SessionConfig, SessionMode, Step};

/// The configuration of a driver's machine.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct DriverConfig {
    /// The specification of the driver.
    pub spec: DriverSpec,
    /// The name of its process.
    pub process: ProcessName,
    /// The mode of its session.
    pub mode: SessionMode,
    /// Its limits.
    pub limits: DriverLimits,
}

impl DriverConfig {
    /// The configuration of the session with its plugin.
    pub(super) fn session(&self) -> SessionConfig {
        let spec = &self.spec;
        SessionConfig {
            process: spec.launched_process(),
            not_launched: spec.not_launched.clone(),
            adopts_any: spec.adopts_any,
            stop_grace: spec.stop_grace,
            polite_deadline: spec.polite_deadline,
            mode: self.mode,
            limits: self.limits.session(),
        }
    }
}

/// A step until a driver serves.
#[doc(hidden)]
pub type StartStep = Step<DriverStep>;

/// The calls of a driver.
#[doc(hidden)]
pub type DriverCall = SessionCall<DriverStep>;

/// The outcome of a [`DriverCall`] that succeeded.
#[doc(hidden)]
pub type Reached = SessionReached<DriverTold>;

/// A fingerprint of a driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    /// Undetected, unhealthy or healthy.
    pub health: DriverHealth,
    /// In the driver's own words.
    pub description: String,
    /// Its attributes.
    pub attributes: Attributes,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Driver {
    pub(super) session: Session<DriverService>,
    pub(super) told: LastNews<DriverReport>,
}

/// The longest time of all steps of an end together, for callers that wait for it.
#[must_use]
pub fn ending_deadline(config: &DriverConfig) -> Duration {
    config.session().ending_deadline()
}
