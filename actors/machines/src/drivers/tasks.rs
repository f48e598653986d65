//! Manages the handlers of task events, and the eventors that deliver to them.

use super::messages::{DriversAnswer, WatchError};
use super::news::DriversNews;
use super::state::{Drivers, DriversCall, DriversChange, DriversTimer, EventorEntry};
use crate::driver::{DriverStage, TaskKey};
use crate::eventor::{EventorNews, JournalId};
use crate::kernel::{AskId, StepContext, StopMode};
use crate::supervisor::{ChildState, DynamicChild};
use crate::vocabulary::{Attempt, DriverName};

impl Drivers {
    // === Tasks ===

    fn watched(&self) -> usize {
        self.image.tasks.values().map(|tasks| tasks.len()).sum()
    }

    fn may_watch(&self, driver: &DriverName, task: &TaskKey) -> Result<Option<JournalId>, WatchError> {
        if self.stop.is_some() {
            return Err(WatchError::Stopping { task: task.clone() });
        }
        let known = self.image.tasks.get(driver).and_then(|tasks| tasks.get(task));
        match known {
            None if self.watched() >= self.options.tasks_max => {
                Err(WatchError::TooMany { count: self.watched() })
            }
            known => Ok(known.copied()),
        }
    }

    pub(super) fn announce(
        &mut self,
        driver: &DriverName,
        task: &TaskKey,
        cx: &mut StepContext<Self>,
    ) -> Result<(), WatchError> {
        if self.may_watch(driver, task)?.is_none() {
            self.image.parked += 1;
            self.watch(driver, task, JournalId::Parked(self.image.parked), cx);
        }
        Ok(())
    }

    pub(super) fn register(
        &mut self,
        driver: &DriverName,
        task: &TaskKey,
        sink: JournalId,
        cx: &mut StepContext<Self>,
    ) -> Result<(), WatchError> {
        if let Some(former) = self.may_watch(driver, task)?.filter(|former| *former != sink) {
            let call = match former {
                JournalId::Parked(_) => DriversCall::HandOver(former, sink),
                JournalId::Handler(_) => DriversCall::End(former),
            };
            self.call(call, cx);
        }
        self.watch(driver, task, sink, cx);
        Ok(())
    }

    fn watch(&mut self, driver: &DriverName, task: &TaskKey, sink: JournalId, cx: &mut StepContext<Self>) {
        self.image.tasks.entry(driver.clone()).or_default().insert(task.clone(), sink);
        cx.persist(DriversChange::Watch(driver.clone(), task.clone(), sink));
        if let Some(life) = self.equipped(driver) {
            self.call(DriversCall::Watch(life, vec![(task.clone(), sink)], false), cx);
        }
    }

    pub(super) fn forget(&mut self, driver: &DriverName, task: &TaskKey, cx: &mut StepContext<Self>) {
        let Some(tasks) = self.image.tasks.get_mut(driver) else { return };
        let Some(sink) = tasks.remove(task) else { return };
        if tasks.is_empty() {
            self.image.tasks.remove(driver);
            self.served.remove(driver);
        }
        cx.persist(DriversChange::Forget(driver.clone(), task.clone()));
        if let Some(life) = self.equipped(driver) {
            self.call(DriversCall::Forget(life, task.clone()), cx);
        }
        self.call(DriversCall::End(sink), cx);
    }

    pub(super) fn recent(
        &mut self,
        id: AskId,
        driver: &DriverName,
        task: &TaskKey,
        cx: &mut StepContext<Self>,
    ) {
        match self.equipped(driver) {
            Some(life) => self.call(DriversCall::AskRecent(life, task.clone(), id), cx),
            None => cx.reply(id, DriversAnswer::RecentTaskEvents(Vec::new())),
        }
    }

    /// The life of the eventor that knows its tasks.
    fn equipped(&self, driver: &DriverName) -> Option<Attempt> {
        self.eventors.get(driver).filter(|eventor| eventor.was_equipped)?.child.life()
    }

    // === Eventors ===

    /// Ensures that there is an eventor, now or when the present one has ended.
    pub(super) fn open_eventor(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let eventor = EventorEntry {
            child: DynamicChild::new(ChildState::Pausing),
            was_equipped: false,
            is_renewal: self.served.remove(driver),
            attends: None,
            is_closing: false,
            has_left: false,
            parting: Vec::new(),
        };
        let eventor = self.eventors.entry(driver.clone()).or_insert(eventor);
        (eventor.is_closing, eventor.has_left) = (false, false);
        self.start_eventor(driver, cx);
    }

    pub(super) fn start_eventor(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(eventor) = self.eventors.get_mut(driver) else { return };
        if self.stop.is_some() || eventor.child.life().is_some() {
            return;
        }
        self.life = self.life.next();
        eventor.child.start(self.life);
        eventor.attends = None;
        let call = DriversCall::StartEventor(self.life, driver.clone());
        self.call(call, cx);
    }

    /// The driver is gone: its tasks are no longer watched, and the event streams of its handlers end.
    pub(super) fn close_eventor(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        self.served.remove(driver);
        let mut parting = Vec::new();
        for (task, sink) in self.image.tasks.remove(driver).unwrap_or_default() {
            cx.persist(DriversChange::Forget(driver.clone(), task));
            parting.push(sink);
        }
        let Some(eventor) = self.eventors.get_mut(driver) else { return self.end_streams(parting, cx) };
        eventor.parting.append(&mut parting);
        eventor.is_closing = true;
        eventor.is_renewal = false;
        cx.cancel_timer(DriversTimer::RestartEventor(driver.clone()));
        match eventor.child.life() {
            Some(life) => self.call(DriversCall::Stop(life, StopMode::Stop), cx),
            None => self.remove_eventor(driver, cx),
        }
    }

    pub(super) fn eventor_said(
        &mut self,
        driver: &DriverName,
        life: Attempt,
        news: &EventorNews,
        cx: &mut StepContext<Self>,
    ) {
        let Some(eventor) = self.eventors.get_mut(driver) else { return };
        if eventor.child.life() != Some(life) {
            return;
        }
        match news {
            EventorNews::Began => {
                let is_renewal = std::mem::replace(&mut eventor.is_renewal, true);
                eventor.was_equipped = true;
                eventor.attends = None;
                let tasks = self.image.tasks.get(driver).into_iter().flatten();
                let tasks = tasks.map(|(task, sink)| (task.clone(), *sink)).collect();
                self.call(DriversCall::Watch(life, tasks, is_renewal), cx);
                self.attend(driver, cx);
            }
            EventorNews::Interrupted { generation, error } => {
                cx.publish(DriversNews::EventsInterrupted {
                    driver: driver.clone(),
                    generation: *generation,
                    error: error.clone(),
                });
            }
            EventorNews::DeadLetters { task, count, error } => {
                cx.publish(DriversNews::DeadLetters {
                    driver: driver.clone(),
                    task: task.clone(),
                    count: *count,
                    error: error.clone(),
                });
            }
        }
    }

    /// Sends the eventor a generation that is configured, once.
    pub(super) fn attend(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(driver) else { return };
        let Some(generation) = entry.lendable else { return };
        let Some(eventor) = self.eventors.get_mut(driver).filter(|eventor| eventor.was_equipped) else {
            return;
        };
        let (Some(life), DriverStage::Watching) = (eventor.child.life(), entry.report.stage) else { return };
        if eventor.attends != Some(generation) {
            eventor.attends = Some(generation);
            self.call(DriversCall::SubscribeTo(life, generation), cx);
        }
    }

    /// An eventor has ended. Without a request it is restarted, and gets the watched tasks again (EVT-03).
    pub(super) fn eventor_ended(&mut self, driver: &DriverName, life: Attempt, cx: &mut StepContext<Self>) {
        let Some(eventor) = self.eventors.get_mut(driver) else { return };
        if eventor.child.ended(life).is_none() {
            return;
        }
        if eventor.is_closing {
            return self.remove_eventor(driver, cx);
        }
        let restart = DriversTimer::RestartEventor(driver.clone());
        eventor.child.pause(restart, &self.options.restart_backoff, cx);
        let parting = std::mem::take(&mut eventor.parting);
        self.end_streams(parting, cx);
    }

    fn remove_eventor(&mut self, driver: &DriverName, cx: &mut StepContext<Self>) {
        if let Some(eventor) = self.eventors.remove(driver) {
            self.end_streams(eventor.parting, cx);
        }
    }

    fn end_streams(&self, parting: Vec<JournalId>, cx: &mut StepContext<Self>) {
        for sink in parting {
            self.call(DriversCall::End(sink), cx);
        }
    }
}
