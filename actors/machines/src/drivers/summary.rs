//! The drivers, grouped by their state.

use crate::driver::{DriverHealth, DriverReport};
use crate::vocabulary::DriverName;

/// Drivers by their state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DriverSummary {
    /// Drivers that serve.
    pub healthy: Vec<DriverName>,
    /// Drivers that do not serve, each with its reason.
    pub unhealthy: Vec<(DriverName, String)>,
    /// Drivers that run and detected nothing to drive.
    pub undetected: Vec<DriverName>,
    /// Drivers that have not reported yet.
    pub no_answer: Vec<DriverName>,
}

impl DriverSummary {
    /// Groups drivers by their reports.
    #[must_use]
    pub fn of<'a>(reports: impl Iterator<Item = &'a DriverReport>) -> Self {
        let mut summary = Self::default();
        for report in reports {
            let name = report.name.clone();
            match report.health {
                DriverHealth::Healthy => summary.healthy.push(name),
                DriverHealth::Unhealthy => summary.unhealthy.push((name, report.reason.clone())),
                DriverHealth::Undetected => summary.undetected.push(name),
                DriverHealth::NoAnswerYet => summary.no_answer.push(name),
                DriverHealth::Gone => {}
            }
        }
        summary
    }
}
