//! What is known of the instance of one registration.

use super::messages::InstanceReport;
use super::state::Entry;
use crate::csi::check_same_provider;
use crate::vocabulary::{CsiFingerprint, Fitness, Health, Moment};

impl Entry {
    /// Stores a report. False means that it contains nothing new (SCL-05).
    pub(super) fn accept(&mut self, report: &InstanceReport) -> bool {
        let since = if self.report.health.as_str() == report.health.as_str() {
            self.report.since
        } else {
            report.since
        };
        let report = InstanceReport { since, ..report.clone() };
        if report == self.report {
            return false;
        }
        self.report = report;
        true
    }

    /// Sets the health to gone. False means that it was set before.
    pub(super) fn say_goodbye(&mut self, moment: Moment) -> bool {
        self.set_health(moment, Health::Gone)
    }

    /// Sets a health that no instance reported. False means that it was set before (SCL-05).
    pub(super) fn set_health(&mut self, moment: Moment, health: Health) -> bool {
        if self.report.health == health {
            return false;
        }
        if self.report.health.as_str() != health.as_str() {
            self.report.since = moment.now;
        }
        self.report.health = health;
        true
    }
}

/// The report of a registration that stands by, if its plugin calls itself by another name than the one that serves (C031).
pub(super) fn contradicted(report: &InstanceReport, served: &CsiFingerprint) -> Option<InstanceReport> {
    let identity = &report.fingerprint.as_ref()?.identity;
    let fault = check_same_provider(&served.identity, identity).err()?;
    let reason = format!("faulty answer, {fault}");
    let fitness = Fitness::Unfit { reason: reason.as_str().into() };
    Some(InstanceReport { health: Health::Unhealthy { reason }, fitness, ..report.clone() })
}
