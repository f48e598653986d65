//! Dispenses drivers, and reports their known state.

use std::collections::BTreeSet;
use std::time::Duration;

use super::DriverSummary;
use super::messages::{DispenseDriver, DispensedDriver, DriversAnswer, NotDispensed, Wanted};
use super::state::{Drivers, DriversTimer, UntilKnown, Waiting};
use crate::driver::{DriverHealth, DriverStage};
use crate::kernel::{AskId, StepContext};
use crate::supervisor::ChildState;
use crate::vocabulary::{DriverName, Timestamp};

impl Drivers {
    pub(super) fn waiting(&self) -> usize {
        let dispensing: usize = self.dispensing.values().map(|waiting| waiting.len()).sum();
        let leaving: usize = self.entries.values().map(|entry| entry.leaving.len()).sum();
        dispensing + leaving + self.until_known.len()
    }

    // === Dispensing ===

    pub(super) fn dispense(
        &mut self,
        id: AskId,
        asked_at: Timestamp,
        dispense: &DispenseDriver,
        cx: &mut StepContext<Self>,
    ) {
        let DispenseDriver { name, wanted, within } = dispense;
        let until = asked_at + *within;
        let answer = self.present(name, *wanted, cx.now().since(asked_at));
        if is_final(&answer) || until <= cx.now() {
            cx.reply(id, DriversAnswer::DispenseDriver(answer));
        } else if self.waiting() >= self.options.waiting_max {
            let error = NotDispensed::TooMany { waiting: self.waiting() };
            cx.reply(id, DriversAnswer::DispenseDriver(Err(error)));
        } else {
            let waiting = Waiting { since: asked_at, wanted: *wanted };
            self.dispensing.entry(name.clone()).or_default().insert(id, waiting);
            cx.start_timer(DriversTimer::Dispense(name.clone(), id), until);
        }
    }

    /// Answers all callers that wait for a driver and can have it now, or that wait for a driver that cannot become ready.
    pub(super) fn serve_waiting(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(waiting) = self.dispensing.get(driver) else { return };
        let known: Vec<_> = waiting
            .iter()
            .map(|(id, waiting)| (*id, self.present(driver, waiting.wanted, cx.now().since(waiting.since))))
            .filter(|(_, answer)| is_final(answer))
            .collect();
        for (id, answer) in known {
            self.no_longer_waits(driver, id);
            cx.cancel_timer(DriversTimer::Dispense(driver.clone(), id));
            cx.reply(id, DriversAnswer::DispenseDriver(answer));
        }
    }

    /// Answers all callers that wait for a driver that does not come.
    pub(super) fn refuse_waiting(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        for (id, _) in self.dispensing.remove(driver).into_iter().flatten() {
            cx.cancel_timer(DriversTimer::Dispense(driver.clone(), id));
            let error = NotDispensed::Stopping { driver: driver.clone() };
            cx.reply(id, DriversAnswer::DispenseDriver(Err(error)));
        }
    }

    pub(super) fn dispense_ended(&mut self, driver: &DriverName, id: AskId, cx: &mut StepContext<Self>) {
        if let Some(Waiting { since, wanted }) = self.no_longer_waits(driver, id) {
            let answer = self.present(driver, wanted, cx.now().since(since));
            cx.reply(id, DriversAnswer::DispenseDriver(answer));
        }
    }

    fn no_longer_waits(&mut self, driver: &DriverName, id: AskId) -> Option<Waiting> {
        let waiting = self.dispensing.get_mut(driver)?;
        let found = waiting.remove(&id);
        if waiting.is_empty() {
            self.dispensing.remove(driver);
        }
        found
    }

    /// The present answer to a caller that wants a driver (RES-01).
    fn present(
        &self,
        driver: &DriverName,
        wanted: Wanted,
        waited: Duration,
    ) -> Result<DispensedDriver, NotDispensed> {
        let driver = driver.clone();
        if self.stop.is_some() {
            return Err(NotDispensed::Stopping { driver });
        }
        if !self.options.allows(&driver) {
            return Err(NotDispensed::Blocked { driver });
        }
        let Some(entry) = self.entries.get(&driver) else { return Err(NotDispensed::Unknown { driver }) };
        let report = &entry.report;
        match (entry.child.state(), report.health, entry.lendable) {
            (ChildState::Stopping(_), _, _) if entry.next.is_some() => {
                Err(NotDispensed::NotReady { driver, waited })
            }
            (ChildState::Stopping(_), _, _) => Err(NotDispensed::Stopping { driver }),
            _ if !entry.serves() && entry.next.is_none() => Err(NotDispensed::Stopping { driver }),
            (ChildState::Running(_), DriverHealth::Healthy, Some(generation)) => {
                Ok(DispensedDriver { driver, generation })
            }
            // Before the first fingerprint it may not have been configured.
            (
                ChildState::Running(_),
                DriverHealth::Undetected | DriverHealth::Unhealthy,
                Some(generation),
            ) if wanted == Wanted::Reachable => Ok(DispensedDriver { driver, generation }),
            (ChildState::Running(_), _, _) if report.stage == DriverStage::Refused => {
                Err(NotDispensed::Refused { driver, reason: report.reason.clone() })
            }
            (_, health @ (DriverHealth::Undetected | DriverHealth::Unhealthy), _) => {
                Err(NotDispensed::NotHealthy { driver, health, reason: report.reason.clone(), waited })
            }
            (_, DriverHealth::NoAnswerYet | DriverHealth::Healthy | DriverHealth::Gone, _) => {
                Err(NotDispensed::NotReady { driver, waited })
            }
        }
    }

    // === Known state ===

    pub(super) fn summary(&self) -> DriverSummary {
        let reports = self.entries.values().filter(|entry| entry.serves()).map(|entry| &entry.report);
        let mut summary = DriverSummary::of(reports);
        for driver in self.options.expected.iter().filter(|driver| !self.entries.contains_key(driver)) {
            match self.given_up.get(driver) {
                Some(reason) => summary.unhealthy.push((driver.clone(), reason.clone())),
                None => summary.no_answer.push(driver.clone()),
            }
        }
        summary.unhealthy.sort();
        summary.no_answer.sort();
        summary
    }

    /// Notes that an expected driver does not come.
    pub(super) fn give_up(&mut self, driver: &DriverName, reason: &str, cx: &mut StepContext<Self>) {
        if self.options.expected.contains(driver) {
            self.given_up.insert(driver.clone(), reason.to_owned());
            self.answer_all_known(cx);
        }
    }

    pub(super) fn await_drivers(&mut self, id: AskId, until: Timestamp, cx: &mut StepContext<Self>) {
        let awaited: BTreeSet<_> = self
            .entries
            .keys()
            .chain(&self.options.expected)
            .filter(|driver| !self.is_known(driver))
            .cloned()
            .collect();
        let is_over = self.stop.is_some() || until <= cx.now();
        if awaited.is_empty() || is_over || self.waiting() >= self.options.waiting_max {
            cx.reply(id, DriversAnswer::AwaitDrivers(self.summary()));
        } else {
            self.until_known.insert(id, UntilKnown { awaited });
            cx.start_timer(DriversTimer::AwaitDrivers(id), until);
        }
    }

    /// Whether it is known if a driver serves. A driver that is neither added nor expected is known not to serve.
    fn is_known(&self, driver: &DriverName) -> bool {
        match self.entries.get(driver) {
            Some(entry) => !entry.serves() || entry.report.health != DriverHealth::NoAnswerYet,
            None => !self.options.expected.contains(driver) || self.given_up.contains_key(driver),
        }
    }

    pub(super) fn answer_all_known(&mut self, cx: &mut StepContext<Self>) {
        let known: Vec<AskId> = self
            .until_known
            .iter()
            .filter(|(_, caller)| caller.awaited.iter().all(|driver| self.is_known(driver)))
            .map(|(id, _)| *id)
            .collect();
        for id in known {
            self.until_known.remove(&id);
            cx.cancel_timer(DriversTimer::AwaitDrivers(id));
            cx.reply(id, DriversAnswer::AwaitDrivers(self.summary()));
        }
    }
}

/// Whether waiting longer cannot change the answer.
fn is_final(answer: &Result<DispensedDriver, NotDispensed>) -> bool {
    answer.as_ref().map_or_else(|error| !error.is_transient(), |_| true)
}
