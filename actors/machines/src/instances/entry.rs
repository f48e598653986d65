//! The state of the instance of one registration.

use std::sync::Arc;

use super::messages::InstanceReport;
use super::shown::first_report;
use super::state::Entry;
use crate::csi::check_same_provider;
use crate::registry::Entry as Registered;
use crate::supervisor::{ChildState, DynamicChild};
use crate::vocabulary::{CsiFingerprint, Fitness, Health, Moment, Timestamp};

/// Whether a registration continues with the same contents when its instance ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    /// It has left, has other contents, or all stop.
    No,
    /// Work is routed to it.
    AsActive,
    /// Work is routed elsewhere.
    AsStandby,
}

impl Entry {
    /// A registration whose instance is not started yet.
    pub(super) fn new(wanted: &Registered, since: Timestamp) -> Self {
        Self {
            child: DynamicChild::new(ChildState::GivenUp),
            number: wanted.number,
            registration: Arc::clone(&wanted.registration),
            report: first_report(&wanted.registration, wanted.generation, since),
            needs_successor: false,
            has_crashed: false,
            kept: None,
            told: Some(Fitness::Unproven),
            was_told_fit: false,
        }
    }

    /// The successor of a former instance. Findings about another registration, or at another socket, do not apply to this one.
    /// But an active registration with other contents stays active until its first check.
    pub(super) fn after(self, former: Self, is_active: bool) -> Self {
        let is_same = former.number == self.number && former.registration == self.registration;
        let is_continued = is_same || former.number == self.number && is_active;
        let mut next = self;
        if is_continued {
            let first = next.report.clone();
            next.report = next.report.after(&former.report);
            if former.has_crashed {
                (next.report.health, next.report.since) = (first.health, first.since);
            }
            next.told = None;
        }
        if is_same {
            next.child.inherit(former.child);
            next.kept = former.kept;
        }
        next
    }

    /// Stores a report. False means that it looks like the one before (SCL-05).
    pub(super) fn accept(&mut self, report: InstanceReport) -> bool {
        let (known, known_since) = self.shown_health();
        let since = if known.as_str() == report.health.as_str() { known_since } else { report.since };
        let report = InstanceReport { since, ..report };
        // Fitness is the result of a check, also where the plugin answers that it is not ready.
        if report.health != Health::Starting || report.fitness != self.report.fitness {
            self.kept = None;
        }
        let is_new = !report.looks_like(&self.report);
        self.report = report;
        is_new
    }

    /// Keeps the shown state of a registration that continues until its successor has checked: the plugin itself continues too (R1d).
    pub(super) fn keep_health(&mut self, goes_on: Continuation, since: Timestamp) {
        self.kept = match (goes_on, &self.report.health) {
            (Continuation::No, _) => None,
            (Continuation::AsActive, _) => Some((Health::Starting, since)),
            (Continuation::AsStandby, Health::Healthy | Health::Unhealthy { .. }) => {
                Some((self.report.health.clone(), self.report.since))
            }
            (Continuation::AsStandby, Health::Starting | Health::Gone) => {
                self.kept.take().or(Some((Health::Starting, self.report.since)))
            }
        };
    }

    /// Its report as it is shown: with the kept health as long as its successor has not checked.
    pub(super) fn shown_report(&self) -> InstanceReport {
        let (health, since) = self.shown_health();
        InstanceReport { health: health.clone(), since, ..self.report.clone() }
    }

    fn shown_health(&self) -> (&Health, Timestamp) {
        match (&self.kept, &self.report.health) {
            (Some((health, since)), Health::Starting | Health::Gone) => (health, *since),
            (_, health) => (health, self.report.since),
        }
    }

    /// Sets the health to gone. False means that it was set before.
    pub(super) fn set_gone(&mut self, moment: Moment) -> bool {
        self.set_health(moment, Health::Gone)
    }

    /// It has retired and waits for another generation of the same registration: it is not gone (R1d).
    pub(super) fn go_on(&mut self) {
        if self.report.health == Health::Gone {
            let since = self.shown_health().1;
            (self.report.health, self.report.since) = (Health::Starting, since);
        }
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

/// The report of a standby registration, if its plugin reports another name than the plugin that serves (C031).
pub(super) fn contradicted(report: &InstanceReport, served: &CsiFingerprint) -> Option<InstanceReport> {
    let identity = &report.fingerprint.as_ref()?.identity;
    let fault = check_same_provider(&served.identity, identity).err()?;
    let reason = format!("faulty answer, {fault}");
    let fitness = Fitness::Unfit { reason: reason.as_str().into() };
    Some(InstanceReport { health: Health::Unhealthy { reason }, fitness, ..report.clone() })
}
