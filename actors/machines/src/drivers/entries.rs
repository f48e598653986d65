//! The lives of the drivers: how each is started, ended, and started again.

use std::time::Duration;

use super::messages::{AddDriverError, Added, DriversAnswer, NoSuchDriver};
use super::news::DriversNews;
use super::state::{Drivers, DriversCall, DriversChange, DriversTimer, Entry, Restarting};
use crate::driver::{
    DriverConfig, DriverHealth, DriverMode, DriverReport, DriverSpec, ending_deadline, process_name,
};
use crate::kernel::{AskId, StepContext, StopMode};
use crate::process::{Executable, ProcessSpec};
use crate::supervisor::{ChildState, DynamicChild};
use crate::vocabulary::{Attempt, DriverName};

/// The pause before an actor that has not taken a request is asked again.
const ASK_AGAIN_PAUSE: Duration = Duration::from_millis(100);

impl Drivers {
    // === Orders ===

    pub(super) fn add(
        &mut self,
        spec: &DriverSpec,
        cx: &mut StepContext<Self>,
    ) -> Result<Added, AddDriverError> {
        let driver = &spec.name;
        if self.stop.is_some() {
            return Err(AddDriverError::Stopping { driver: driver.clone() });
        }
        process_name(driver).map_err(|fault| AddDriverError::Name { driver: driver.clone(), fault })?;
        if !self.options.allows(driver) {
            self.retire_unknown(driver, cx);
            return Err(AddDriverError::Blocked { driver: driver.clone() });
        }
        let added = match self.entries.get(driver) {
            None if self.entries.len() >= self.options.drivers_max => {
                return Err(AddDriverError::TooMany { count: self.entries.len() });
            }
            None => Added::New,
            Some(entry) if entry.next.as_ref() == Some(spec) => Added::Unchanged,
            Some(entry) if entry.serves() && entry.next.is_none() && entry.config.spec == *spec => {
                match entry.child.state() {
                    ChildState::Running(_) | ChildState::Pausing => Added::Unchanged,
                    ChildState::Stopping(_) | ChildState::GivenUp => Added::Replacing,
                }
            }
            Some(_) => Added::Replacing,
        };
        match added {
            Added::Unchanged => return Ok(added),
            Added::New => self.add_entry(spec.clone(), cx),
            Added::Replacing => self.replace(spec, cx),
        }
        self.given_up.remove(driver);
        self.image.specs.insert(driver.clone(), spec.clone());
        cx.persist(DriversChange::Keep(Box::new(spec.clone())));
        Ok(added)
    }

    fn replace(&mut self, spec: &DriverSpec, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(&spec.name) else { return };
        entry.next = Some(spec.clone());
        self.end_child(&spec.name.clone(), cx);
    }

    pub(super) fn remove(&mut self, id: AskId, driver: &DriverName, cx: &mut StepContext<Self>) {
        let refused = if self.stop.is_some() {
            Some(NoSuchDriver::Stopping { driver: driver.clone() })
        } else if process_name(driver).is_err() {
            Some(NoSuchDriver::Unknown { driver: driver.clone() })
        } else if self.waiting() >= self.options.waiting_max {
            Some(NoSuchDriver::TooMany { waiting: self.waiting() })
        } else {
            None
        };
        if let Some(error) = refused {
            cx.reply(id, DriversAnswer::RemoveDriver(Err(error)));
            return;
        }
        if self.image.specs.remove(driver).is_some() {
            cx.persist(DriversChange::Drop(driver.clone()));
        }
        self.give_up(driver, "it was removed", cx);
        self.retire_unknown(driver, cx);
        if let Some(entry) = self.entries.get_mut(driver) {
            entry.next = None;
            entry.leaving.push(id);
        }
        self.end_child(driver, cx);
        self.refuse_waiting(driver, cx);
    }

    pub(super) fn restart(
        &mut self,
        driver: &DriverName,
        cx: &mut StepContext<Self>,
    ) -> Result<(), NoSuchDriver> {
        if self.stop.is_some() {
            return Err(NoSuchDriver::Stopping { driver: driver.clone() });
        }
        let entry = self.entries.get_mut(driver).filter(|entry| entry.serves());
        let Some(entry) = entry else { return Err(NoSuchDriver::Unknown { driver: driver.clone() }) };
        if let Some(reason) = entry.not_launched() {
            return Err(NoSuchDriver::NotLaunched { driver: driver.clone(), reason });
        }
        match entry.child.state() {
            ChildState::Stopping(_) if entry.next.is_none() => {
                return Err(NoSuchDriver::Stopping { driver: driver.clone() });
            }
            // Its next life starts when it has stopped.
            ChildState::Stopping(_) => return Ok(()),
            ChildState::Running(_) => {
                cx.persist(DriversChange::Restart(driver.clone()));
                self.request_restart(driver, cx);
            }
            ChildState::Pausing | ChildState::GivenUp => {
                cx.persist(DriversChange::Restart(driver.clone()));
                entry.restarting = Restarting::Asked;
                self.start_child(driver, cx);
            }
        }
        Ok(())
    }

    /// Asks the actor of a driver for a restart. Its process may have outlived an earlier actor.
    fn request_restart(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(driver) else { return };
        let ChildState::Running(life) = entry.child.state() else { return };
        entry.restarted(cx.now());
        let number = entry.restart;
        cx.publish(DriversNews::Reported(entry.report.clone()));
        self.call(DriversCall::RestartNow(life, number), cx);
    }

    /// The actor of a driver has not taken the request for its restart, for example because its mailbox was full. The request was
    /// acknowledged, so it is repeated after a pause.
    pub(super) fn restart_not_taken(&self, life: Attempt, number: Attempt, cx: &mut StepContext<Self>) {
        let is_awaited = |entry: &&Entry| entry.awaited_restart() == Some((life, number));
        if let Some(entry) = self.entries.values().find(is_awaited) {
            let again = DriversTimer::AskForRestart(entry.config.spec.name.clone(), number);
            cx.start_timer(again, cx.now() + ASK_AGAIN_PAUSE);
        }
    }

    /// Repeats the request for a restart, unless it has become pointless.
    pub(super) fn ask_for_restart(&self, driver: &DriverName, number: Attempt, cx: &mut StepContext<Self>) {
        let awaited = self.entries.get(driver).and_then(Entry::awaited_restart);
        if let Some((life, _)) = awaited.filter(|(_, awaited)| *awaited == number) {
            self.call(DriversCall::RestartNow(life, number), cx);
        }
    }

    /// Ends the process that an earlier run has left of a driver that is unknown in this run: it is proven, then ended.
    pub(super) fn retire_unknown(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        if self.entries.contains_key(driver) {
            return;
        }
        // It is never launched, so its program does not matter.
        let spec = DriverSpec::new(driver.clone(), ProcessSpec::new(Executable::at("/")));
        self.open(spec, DriverMode::Retire, cx);
    }

    // === The life of one driver ===

    pub(super) fn add_entry(&mut self, spec: DriverSpec, cx: &mut StepContext<Self>) {
        let driver = spec.name.clone();
        self.open(spec, DriverMode::Serve, cx);
        self.open_eventor(&driver, cx);
        if let Some(entry) = self.entries.get(&driver) {
            cx.publish(DriversNews::Reported(entry.report.clone()));
        }
    }

    fn open(&mut self, spec: DriverSpec, mode: DriverMode, cx: &mut StepContext<Self>) {
        let driver = spec.name.clone();
        // The caller has checked its name.
        let Ok(process) = process_name(&driver) else { return };
        let report = DriverReport::of_nothing_yet(driver.clone(), cx.now());
        let config = DriverConfig { spec, process, mode, limits: self.options.limits };
        let restarting = if self.image.restarts.remove(&driver) { Restarting::Asked } else { Restarting::No };
        let entry = Entry {
            config,
            child: DynamicChild::new(ChildState::Pausing),
            report,
            lendable: None,
            restart: Attempt::default(),
            restarting,
            next: None,
            leaving: Vec::new(),
        };
        self.entries.insert(driver.clone(), entry);
        self.start_child(&driver, cx);
    }

    fn start_child(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(driver) else { return };
        self.life = self.life.next();
        entry.child.start(self.life);
        entry.restart = Attempt::default();
        cx.cancel_timer(DriversTimer::Restart(driver.clone()));
        if !entry.serves() {
            entry.restarting = Restarting::No;
        }
        let is_restart_due = entry.restarting != Restarting::No;
        let call = DriversCall::StartDriver(self.life, Box::new(entry.config.clone()));
        self.call(call, cx);
        if is_restart_due {
            self.request_restart(driver, cx);
        }
    }

    pub(super) fn restart_due(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        // It may have started before, or be stopping. No child pauses once the host stops.
        if self.entries.get(driver).is_some_and(|entry| entry.child.state() == ChildState::Pausing) {
            self.start_child(driver, cx);
        }
    }

    /// Ends a driver. A driver without an actor gets an actor that only ends it.
    fn end_child(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(driver) else { return };
        entry.lendable = None;
        match entry.child.state() {
            ChildState::Running(_) if entry.config.mode == DriverMode::Retire => {}
            ChildState::Running(_) | ChildState::Stopping(_) => {
                self.stop_child(driver, StopMode::Stop, cx);
            }
            ChildState::Pausing | ChildState::GivenUp => {
                entry.config.mode = DriverMode::Retire;
                self.start_child(driver, cx);
            }
        }
    }

    pub(super) fn stopped_too_slowly(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(driver) else { return };
        let again = cx.now() + ending_deadline(&entry.config);
        if let Some(life) = entry.child.overdue(DriversTimer::Stop(driver.clone()), again, cx) {
            self.call(DriversCall::Kill(life), cx);
        }
    }

    // === Reports of a driver ===

    pub(super) fn reported(
        &mut self,
        life: Attempt,
        report: &DriverReport,
        may_lend: bool,
        cx: &mut StepContext<Self>,
    ) {
        let driver = &report.name;
        let Some(entry) = self.entries.get_mut(driver) else { return };
        // Late reports of an earlier life have no effect (REG-08).
        if entry.child.life() != Some(life) {
            return;
        }
        // Nor have reports from before its actor received the restart request.
        if entry.has_not_heard_of_restart(report) {
            if entry.restarting == Restarting::Taken {
                self.request_restart(&driver.clone(), cx);
            }
            return;
        }
        if entry.note_restart(report) {
            cx.persist(DriversChange::Restarted(driver.clone()));
        }
        let is_running = matches!(entry.child.state(), ChildState::Running(_));
        entry.lendable = (may_lend && is_running).then_some(report.generation);
        let is_new = entry.report != *report;
        entry.report = report.clone();
        if !entry.serves() {
            return;
        }
        // Its end is published when nothing of it is left.
        if is_new && report.health != DriverHealth::Gone {
            cx.publish(DriversNews::Reported(report.clone()));
        }
        self.attend(driver, cx);
        self.serve_waiting(driver, cx);
        self.answer_all_known(cx);
    }
}
