//! Handles the ends of drivers, and starts their successors.

use super::messages::{DriversAnswer, Removed};
use super::news::DriversNews;
use super::state::{ChildEnded, ChildKind, Drivers, DriversCall, DriversTimer, Entry};
use crate::driver::{DriverEnding, DriverHealth, DriverMode, DriverReport, DriverStage, ending_deadline};
use crate::kernel::{CallLost, Ending, StepContext, StopMode, StopStep};
use crate::supervisor::{ChildState, Ended};
use crate::vocabulary::{Attempt, DriverName, Moment};

impl Drivers {
    // === Endings ===

    pub(super) fn ended(&mut self, ended: &ChildEnded, cx: &mut StepContext<Self>) {
        let ChildEnded { driver, kind, life, ending } = ended;
        match kind {
            ChildKind::Eventor => self.eventor_ended(driver, *life, cx),
            ChildKind::Driver => {
                let Some(entry) = self.entries.get(driver) else { return };
                match (entry.child.ended(*life), ending) {
                    // An earlier life (REG-08).
                    (None, _) => return,
                    (Some(_), Ending::Normal) => {
                        let removed = became_of(&entry.report);
                        self.left(driver, &removed, cx);
                    }
                    (Some(Ended::OnRequest), _) => self.fell_stopping(driver, ending, cx),
                    (Some(Ended::ByItself), _) => self.fell(driver, ending, cx),
                }
            }
        }
        self.end_if_empty(cx);
    }

    pub(super) fn not_started(
        &mut self,
        driver: &DriverName,
        life: Attempt,
        lost: &CallLost,
        cx: &mut StepContext<Self>,
    ) {
        let ending = Ending::Failed(format!("it could not be started: {lost}"));
        let ended = ChildEnded { driver: driver.clone(), kind: ChildKind::Driver, life, ending };
        self.ended(&ended, cx);
    }

    /// Starts the successor of a driver that has ended, if there is one.
    fn left(&mut self, driver: &DriverName, removed: &Removed, cx: &mut StepContext<Self>) {
        cx.cancel_timer(DriversTimer::Stop(driver.clone()));
        let Some(mut entry) = self.entries.remove(driver) else { return };
        self.note_end(cx.moment(), driver, removed);
        for id in entry.leaving.drain(..) {
            cx.reply(id, DriversAnswer::RemoveDriver(Ok(removed.clone())));
        }
        match entry.next.take() {
            Some(next) if self.stop.is_none() => self.add_entry(next, cx),
            Some(_) | None => self.depart(entry, cx),
        }
        self.answer_all_known(cx);
    }

    /// Records the end of a driver for the report of a stop.
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
        // Processes that a driver leaves although it was to end are reported by the owner of the processes.
        self.steps.push(StopStep { what, ending, took, is_left: false });
    }

    /// Publishes the last report of a driver.
    fn depart(&mut self, mut entry: Entry, cx: &mut StepContext<Self>) {
        let driver = entry.config.spec.name.clone();
        if entry.report.health != DriverHealth::Gone {
            entry.report.since = cx.now();
        }
        entry.report.health = DriverHealth::Gone;
        entry.report.stage = DriverStage::Gone;
        self.refuse_waiting(&driver, cx);
        let eventor = self.eventors.get_mut(&driver);
        if eventor.is_some_and(|eventor| !std::mem::replace(&mut eventor.has_left, true)) {
            cx.publish(DriversNews::Left(entry.report));
        }
        self.close_eventor(&driver, cx);
    }

    /// A driver's actor ended before it had ended its processes: another actor does, unless the host itself stops. Remaining processes
    /// are then ended by the owner of the processes.
    fn fell_stopping(&mut self, driver: &DriverName, ending: &Ending, cx: &mut StepContext<Self>) {
        if self.stop.is_some() {
            return self.left(driver, &Removed::Untold, cx);
        }
        cx.cancel_timer(DriversTimer::Stop(driver.clone()));
        if let Some(entry) = self.entries.get_mut(driver) {
            entry.config.mode = DriverMode::Retire;
        }
        self.fell(driver, ending, cx);
    }

    /// A driver's actor ended without a request.
    fn fell(&mut self, driver: &DriverName, ending: &Ending, cx: &mut StepContext<Self>) {
        if self.stop.is_some() {
            return self.left(driver, &Removed::Untold, cx);
        }
        let Some(entry) = self.entries.get_mut(driver) else { return };
        entry.lendable = None;
        let policy = (&self.options.restart_budget, &self.options.restart_backoff);
        let next = if !entry.child.fell(DriversTimer::Restart(driver.clone()), policy, cx) {
            "restart budget exhausted, so it is started again only when a restart is requested or it is added again"
        } else if entry.serves() {
            "it is started again"
        } else {
            "the next one ends its leftovers"
        };
        if entry.report.health != DriverHealth::Unhealthy {
            entry.report.since = cx.now();
        }
        entry.report.health = DriverHealth::Unhealthy;
        entry.report.reason = format!("its actor ended ({ending}); {next}");
        if entry.child.state() == ChildState::GivenUp && !entry.serves() {
            // Nothing more will be known of it, so the waiting callers are answered.
            let removed = Removed::Ended { ending: entry.report.reason.clone() };
            self.left(driver, &removed, cx);
            return;
        }
        if entry.serves() {
            cx.publish(DriversNews::Reported(entry.report.clone()));
        }
        self.serve_waiting(driver, cx);
        self.answer_all_known(cx);
    }

    // === The end of all ===

    pub(super) fn stop(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        // Drivers that were asked to leave their processes in place are now asked to end them.
        let is_stronger = self.stop == Some(StopMode::Detach) && mode == StopMode::Stop;
        if self.stop.is_none() {
            self.stop_began = cx.now();
        }
        self.stop = Some(mode);
        let drivers: Vec<_> = self.dispensing.keys().cloned().collect();
        drivers.iter().for_each(|driver| self.refuse_waiting(driver, cx));
        for (id, _) in std::mem::take(&mut self.until_known) {
            cx.cancel_timer(DriversTimer::AwaitDrivers(id));
            cx.reply(id, DriversAnswer::AwaitDrivers(self.summary()));
        }
        let entries: Vec<_> =
            self.entries.iter().map(|(driver, entry)| (driver.clone(), entry.child.state())).collect();
        for (driver, child) in entries {
            match child {
                ChildState::Running(_) => self.stop_child(&driver, mode, cx),
                ChildState::Stopping(life) if is_stronger => self.stop_again(&driver, life, mode, cx),
                ChildState::Stopping(_) => {}
                // Its remaining process is ended by the owner of the processes.
                ChildState::Pausing | ChildState::GivenUp => {
                    cx.cancel_timer(DriversTimer::Restart(driver.clone()));
                    self.left(&driver, &Removed::Untold, cx);
                }
            }
        }
        let eventors: Vec<_> = self.eventors.keys().cloned().collect();
        eventors.iter().for_each(|driver| self.close_eventor(driver, cx));
        self.end_if_empty(cx);
    }

    /// Asks a driver that is stopping for a stronger stop. It has its whole time for that.
    fn stop_again(&mut self, driver: &DriverName, life: Attempt, mode: StopMode, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(driver) else { return };
        let due = cx.now() + ending_deadline(&entry.config);
        self.call(DriversCall::Stop(life, mode), cx);
        cx.start_timer(DriversTimer::Stop(driver.clone()), due);
    }

    pub(super) fn stop_child(&mut self, driver: &DriverName, mode: StopMode, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(driver) else { return };
        entry.lendable = None;
        let due = cx.now() + ending_deadline(&entry.config);
        if let Some(life) = entry.child.stop(DriversTimer::Stop(driver.clone()), due, cx) {
            self.call(DriversCall::Stop(life, mode), cx);
        }
    }

    fn end_if_empty(&mut self, cx: &mut StepContext<Self>) {
        if self.stop.is_some() && self.entries.is_empty() && self.eventors.is_empty() {
            cx.stop();
        }
    }
}

/// The end of the process of a driver whose actor ended in order.
fn became_of(report: &DriverReport) -> Removed {
    match &report.ending {
        Some(DriverEnding::NothingRan) => Removed::NothingRan,
        Some(DriverEnding::Told { how }) => Removed::Ended { ending: how.clone() },
        None => Removed::Untold,
    }
}
