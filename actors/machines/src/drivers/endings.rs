//! How drivers end, one and all, and what comes after.

use super::messages::{DriversAnswer, Removed};
use super::news::DriversNews;
use super::state::{ChildEnded, ChildKind, Drivers, DriversCall, DriversTimer, Entry};
use crate::driver::{DriverEnding, DriverHealth, DriverMode, DriverReport, DriverStage, ending_deadline};
use crate::kernel::{CallLost, Effects, Ending, StopMode, StopStep};
use crate::supervisor::{ChildState, Ended};
use crate::vocabulary::{Attempt, DriverName, Moment};

impl Drivers {
    // === Endings ===

    pub(super) fn ended(&mut self, moment: Moment, ended: &ChildEnded, effects: &mut Effects<Self>) {
        let ChildEnded { driver, kind, life, ending } = ended;
        match kind {
            ChildKind::Eventor => self.eventor_ended(moment, driver, *life, effects),
            ChildKind::Driver => {
                let Some(entry) = self.entries.get(driver) else { return };
                match (entry.child.ended(*life), ending) {
                    // An earlier life (REG-08).
                    (None, _) => return,
                    (Some(_), Ending::Normal) => {
                        let removed = became_of(&entry.report);
                        self.left(moment, driver, &removed, effects);
                    }
                    (Some(Ended::OnRequest), _) => self.fell_stopping(moment, driver, ending, effects),
                    (Some(Ended::ByItself), _) => self.fell(moment, driver, ending, effects),
                }
            }
        }
        self.end_if_empty(effects);
    }

    pub(super) fn not_started(
        &mut self,
        moment: Moment,
        driver: &DriverName,
        life: Attempt,
        lost: &CallLost,
        effects: &mut Effects<Self>,
    ) {
        let ending = Ending::Failed(format!("it could not be started: {lost}"));
        let ended = ChildEnded { driver: driver.clone(), kind: ChildKind::Driver, life, ending };
        self.ended(moment, &ended, effects);
    }

    /// Brings what comes after a driver that is no more: another one, or nothing.
    fn left(&mut self, moment: Moment, driver: &DriverName, removed: &Removed, effects: &mut Effects<Self>) {
        effects.cancel_timer(DriversTimer::Stop(driver.clone()));
        let Some(mut entry) = self.entries.remove(driver) else { return };
        self.note_end(moment, driver, removed);
        for id in entry.leaving.drain(..) {
            effects.reply(id, DriversAnswer::RemoveDriver(Ok(removed.clone())));
        }
        match entry.next.take() {
            Some(next) if self.stop.is_none() => self.add_entry(moment, next, effects),
            Some(_) | None => self.depart(moment, entry, effects),
        }
        self.tell_curious(effects);
    }

    /// Notes for the report of a stop what became of a driver.
    fn note_end(&mut self, moment: Moment, driver: &DriverName, removed: &Removed) {
        if self.stop.is_none() {
            return;
        }
        let ending = match removed {
            Removed::NothingRan => "no process of it ran".to_owned(),
            Removed::Ended { ending } => ending.clone(),
            Removed::Untold => "it did not say how its process ended".to_owned(),
        };
        let (what, took) = (format!("driver/{driver}"), moment.now.since(self.stop_began));
        // What a driver leaves although it was to end is named by the owner of the processes.
        self.steps.push(StopStep { what, ending, took, is_left: false });
    }

    /// Publishes the last report of a driver.
    fn depart(&mut self, moment: Moment, mut entry: Entry, effects: &mut Effects<Self>) {
        let driver = entry.config.spec.name.clone();
        if entry.report.health != DriverHealth::Gone {
            entry.report.since = moment.now;
        }
        entry.report.health = DriverHealth::Gone;
        entry.report.stage = DriverStage::Gone;
        self.refuse_waiting(&driver, effects);
        let eventor = self.eventors.get_mut(&driver);
        if eventor.is_some_and(|eventor| !std::mem::replace(&mut eventor.has_left, true)) {
            effects.publish(DriversNews::Left(entry.report));
        }
        self.close_eventor(&driver, effects);
    }

    /// A driver's actor ended before it had ended what runs: another one does, unless the host itself stops. What is left then
    /// is ended by the owner of the processes.
    fn fell_stopping(
        &mut self,
        moment: Moment,
        driver: &DriverName,
        ending: &Ending,
        effects: &mut Effects<Self>,
    ) {
        if self.stop.is_some() {
            return self.left(moment, driver, &Removed::Untold, effects);
        }
        effects.cancel_timer(DriversTimer::Stop(driver.clone()));
        if let Some(entry) = self.entries.get_mut(driver) {
            entry.config.mode = DriverMode::Retire;
        }
        self.fell(moment, driver, ending, effects);
    }

    /// A driver's actor ended without a request.
    fn fell(&mut self, moment: Moment, driver: &DriverName, ending: &Ending, effects: &mut Effects<Self>) {
        if self.stop.is_some() {
            self.entries.remove(driver);
            return self.note_end(moment, driver, &Removed::Untold);
        }
        let Some(entry) = self.entries.get_mut(driver) else { return };
        entry.lendable = None;
        let policy = (&self.options.restart_budget, &self.options.restart_backoff);
        let next = if !entry.child.fell(DriversTimer::Restart(driver.clone()), policy, moment, effects) {
            "that happened too often, so it is started again only when it is restarted or added anew"
        } else if entry.serves() {
            "it is started again"
        } else {
            "another one ends what it left"
        };
        if entry.report.health != DriverHealth::Unhealthy {
            entry.report.since = moment.now;
        }
        entry.report.health = DriverHealth::Unhealthy;
        entry.report.reason = format!("its actor ended ({ending}); {next}");
        if entry.child.state() == ChildState::GivenUp && !entry.serves() {
            // No more will be known of it, so the waiting callers are answered.
            let removed = Removed::Ended { ending: entry.report.reason.clone() };
            self.left(moment, driver, &removed, effects);
            return;
        }
        if entry.serves() {
            effects.publish(DriversNews::Reported(entry.report.clone()));
        }
        self.serve_waiting(moment, driver, effects);
        self.tell_curious(effects);
    }

    // === The end of all ===

    pub(super) fn stop(&mut self, moment: Moment, mode: StopMode, effects: &mut Effects<Self>) {
        (self.stop, self.stop_began) = (Some(mode), moment.now);
        let drivers: Vec<_> = self.dispensing.keys().cloned().collect();
        drivers.iter().for_each(|driver| self.refuse_waiting(driver, effects));
        for (id, _) in std::mem::take(&mut self.curious) {
            effects.cancel_timer(DriversTimer::AwaitDrivers(id));
            effects.reply(id, DriversAnswer::AwaitDrivers(self.summary()));
        }
        let entries: Vec<_> =
            self.entries.iter().map(|(driver, entry)| (driver.clone(), entry.child.state())).collect();
        for (driver, child) in entries {
            match child {
                ChildState::Running(_) | ChildState::Stopping(_) => {
                    self.stop_child(moment, &driver, mode, effects);
                }
                // What is left of its process is ended by the owner of the processes.
                ChildState::Pausing | ChildState::GivenUp => {
                    effects.cancel_timer(DriversTimer::Restart(driver.clone()));
                    self.left(moment, &driver, &Removed::Untold, effects);
                }
            }
        }
        let eventors: Vec<_> = self.eventors.keys().cloned().collect();
        eventors.iter().for_each(|driver| self.close_eventor(driver, effects));
        self.end_if_empty(effects);
    }

    pub(super) fn stop_child(
        &mut self,
        moment: Moment,
        driver: &DriverName,
        mode: StopMode,
        effects: &mut Effects<Self>,
    ) {
        let Some(entry) = self.entries.get_mut(driver) else { return };
        entry.lendable = None;
        let due = moment.now + ending_deadline(&entry.config);
        if let Some(life) = entry.child.stop(DriversTimer::Stop(driver.clone()), due, effects) {
            self.call(DriversCall::Stop(life, mode), effects);
        }
    }

    fn end_if_empty(&mut self, effects: &mut Effects<Self>) {
        if self.stop.is_some() && self.entries.is_empty() && self.eventors.is_empty() {
            effects.stop();
        }
    }
}

/// What became of the process of a driver whose actor ended in order.
fn became_of(report: &DriverReport) -> Removed {
    match &report.ending {
        Some(DriverEnding::NothingRan) => Removed::NothingRan,
        Some(DriverEnding::Told { how }) => Removed::Ended { ending: how.clone() },
        None => Removed::Untold,
    }
}
