//! What a driver is made of, and what it remembers.

use std::time::Duration;

use super::service::{DriverService, DriverStep, DriverTold};
use super::spec::{DriverLimits, DriverSpec};
use super::{Attributes, DriverHealth, DriverReport};
use crate::kernel::LastNews;
use crate::process::ProcessName;
use crate::session::{Reached as SessionReached, Session, SessionCall, SessionConfig, SessionMode, Step};

/// What a driver is born with.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct DriverConfig {
    /// What it is to be.
    pub spec: DriverSpec,
    /// The name of its process.
    pub process: ProcessName,
    /// What it is there for.
    pub mode: SessionMode,
    /// Its limits.
    pub limits: DriverLimits,
}

impl DriverConfig {
    /// What the session with its plugin is born with.
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

/// One step on the way to a driver that serves.
#[doc(hidden)]
pub type StartStep = Step<DriverStep>;

/// What a driver has done for it.
#[doc(hidden)]
pub type DriverCall = SessionCall<DriverStep>;

/// What came of a [`DriverCall`] that went well.
#[doc(hidden)]
pub type Reached = SessionReached<DriverTold>;

/// What a driver said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    /// Undetected, unhealthy or healthy.
    pub health: DriverHealth,
    /// In its own words.
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

/// The longest that the steps of an end may take together, for callers that wait for one.
#[must_use]
pub fn ending_deadline(config: &DriverConfig) -> Duration {
    config.session().ending_deadline()
}
