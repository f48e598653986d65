//! Who hears of which task, and the eventors that tell them.

use super::messages::{DriversAnswer, DriversNews, WatchError};
use super::state::{Desk, Drivers, DriversCall, DriversChange, DriversTimer, Watched};
use crate::driver::{DriverStage, TaskKey};
use crate::eventor::{EventorNews, TaskEventSink};
use crate::shell::{AskId, Effects, StopMode};
use crate::vocabulary::{Attempt, BackoffState, DriverName, Moment};

impl Drivers {
    // === Tasks ===

    fn watched(&self) -> usize {
        self.image.tasks.values().map(|tasks| tasks.len()).sum()
    }

    fn may_watch(&self, driver: &DriverName, task: &TaskKey) -> Result<Option<Watched>, WatchError> {
        if self.stop.is_some() {
            return Err(WatchError::Stopping { task: task.clone() });
        }
        let known = self.image.tasks.get(driver).and_then(|tasks| tasks.get(task));
        match known {
            None if self.watched() >= self.options.tasks_max => {
                Err(WatchError::TooMany { count: self.watched() })
            }
            known => Ok(known.cloned()),
        }
    }

    pub(super) fn announce(
        &mut self,
        driver: &DriverName,
        task: &TaskKey,
        effects: &mut Effects<Self>,
    ) -> Result<(), WatchError> {
        if self.may_watch(driver, task)?.is_none() {
            let sink = TaskEventSink::parked(self.options.eventor.journal_items);
            self.watch(driver, task, Watched { sink, is_parked: true }, effects);
        }
        Ok(())
    }

    pub(super) fn register(
        &mut self,
        driver: &DriverName,
        task: &TaskKey,
        sink: &TaskEventSink,
        effects: &mut Effects<Self>,
    ) -> Result<(), WatchError> {
        if let Some(former) = self.may_watch(driver, task)?.filter(|former| !former.sink.is_same(sink)) {
            let call = if former.is_parked {
                DriversCall::HandOver(former.sink, sink.clone())
            } else {
                DriversCall::End(former.sink)
            };
            self.call(call, effects);
        }
        self.watch(driver, task, Watched { sink: sink.clone(), is_parked: false }, effects);
        Ok(())
    }

    fn watch(&mut self, driver: &DriverName, task: &TaskKey, watched: Watched, effects: &mut Effects<Self>) {
        let tasks = self.image.tasks.entry(driver.clone()).or_default();
        tasks.insert(task.clone(), watched.clone());
        effects.persist(DriversChange::Watch(driver.clone(), task.clone(), watched.clone()));
        if let Some(life) = self.equipped(driver) {
            self.call(DriversCall::Watch(life, vec![(task.clone(), watched.sink)], false), effects);
        }
    }

    pub(super) fn forget(&mut self, driver: &DriverName, task: &TaskKey, effects: &mut Effects<Self>) {
        let Some(tasks) = self.image.tasks.get_mut(driver) else { return };
        let Some(watched) = tasks.remove(task) else { return };
        if tasks.is_empty() {
            self.image.tasks.remove(driver);
            self.served.remove(driver);
        }
        effects.persist(DriversChange::Forget(driver.clone(), task.clone()));
        if let Some(life) = self.equipped(driver) {
            self.call(DriversCall::Forget(life, task.clone()), effects);
        }
        self.call(DriversCall::End(watched.sink), effects);
    }

    pub(super) fn recent(
        &mut self,
        id: AskId,
        driver: &DriverName,
        task: &TaskKey,
        effects: &mut Effects<Self>,
    ) {
        match self.equipped(driver) {
            Some(life) => self.call(DriversCall::AskRecent(life, task.clone(), id), effects),
            None => effects.reply(id, DriversAnswer::RecentTaskEvents(Vec::new())),
        }
    }

    /// The life of the eventor that knows its tasks.
    fn equipped(&self, driver: &DriverName) -> Option<Attempt> {
        self.desks.get(driver).filter(|desk| desk.was_equipped).and_then(|desk| desk.life)
    }

    // === Eventors ===

    pub(super) fn open_desk(&mut self, driver: &DriverName, effects: &mut Effects<Self>) {
        let desk = Desk {
            life: None,
            was_equipped: false,
            is_renewal: self.served.remove(driver),
            attends: None,
            backoff: BackoffState::default(),
        };
        self.desks.insert(driver.clone(), desk);
        self.start_eventor(driver, effects);
    }

    pub(super) fn start_eventor(&mut self, driver: &DriverName, effects: &mut Effects<Self>) {
        let Some(desk) = self.desks.get_mut(driver).filter(|desk| desk.life.is_none()) else { return };
        if self.stop.is_some() {
            return;
        }
        self.life = self.life.next();
        desk.life = Some(self.life);
        desk.attends = None;
        let call = DriversCall::StartEventor(self.life, driver.clone());
        self.call(call, effects);
    }

    pub(super) fn close_desk(&mut self, driver: &DriverName, effects: &mut Effects<Self>) {
        effects.cancel_timer(DriversTimer::RestartEventor(driver.clone()));
        match self.desks.get(driver).map(|desk| desk.life) {
            Some(Some(life)) => self.call(DriversCall::Stop(life, StopMode::Stop), effects),
            Some(None) => self.remove_desk(driver),
            None => {}
        }
    }

    pub(super) fn eventor_said(
        &mut self,
        driver: &DriverName,
        life: Attempt,
        news: &EventorNews,
        effects: &mut Effects<Self>,
    ) {
        let Some(desk) = self.desks.get_mut(driver).filter(|desk| desk.life == Some(life)) else { return };
        match news {
            EventorNews::Began => {
                let is_renewal = std::mem::replace(&mut desk.is_renewal, true);
                desk.was_equipped = true;
                desk.attends = None;
                let tasks = self.image.tasks.get(driver).into_iter().flatten();
                let tasks = tasks.map(|(task, watched)| (task.clone(), watched.sink.clone())).collect();
                self.call(DriversCall::Watch(life, tasks, is_renewal), effects);
                self.attend(driver, effects);
            }
            EventorNews::Interrupted { generation, error } => {
                effects.publish(DriversNews::EventsInterrupted {
                    driver: driver.clone(),
                    generation: *generation,
                    error: error.clone(),
                });
            }
            EventorNews::DeadLetters { task, count, error } => {
                effects.publish(DriversNews::DeadLetters {
                    driver: driver.clone(),
                    task: task.clone(),
                    count: *count,
                    error: error.clone(),
                });
            }
        }
    }

    /// Gives the eventor the client of a generation that is configured, once.
    pub(super) fn attend(&mut self, driver: &DriverName, effects: &mut Effects<Self>) {
        let Some(post) = self.posts.get(driver) else { return };
        let Some(client) = &post.client else { return };
        let Some(desk) = self.desks.get_mut(driver).filter(|desk| desk.was_equipped) else { return };
        let (Some(life), DriverStage::Watching) = (desk.life, post.report.stage) else { return };
        if desk.attends != Some(client.generation()) {
            desk.attends = Some(client.generation());
            let call = DriversCall::Attend(life, client.clone());
            self.call(call, effects);
        }
    }

    /// An eventor has ended: on request, or else it comes again, and is told again what is watched (EVT-03).
    pub(super) fn eventor_ended(
        &mut self,
        moment: Moment,
        driver: &DriverName,
        life: Attempt,
        effects: &mut Effects<Self>,
    ) {
        let is_wanted = self.stop.is_none() && self.posts.get(driver).is_some_and(super::state::Post::serves);
        let Some(desk) = self.desks.get_mut(driver).filter(|desk| desk.life == Some(life)) else { return };
        desk.life = None;
        if is_wanted {
            let pause = desk.backoff.failed(&self.options.restart_backoff, moment);
            effects.start_timer(DriversTimer::RestartEventor(driver.clone()), moment.now + pause);
        } else {
            self.remove_desk(driver);
        }
    }

    /// If the driver comes again, what its tasks told meanwhile may be missing (EVT-02).
    fn remove_desk(&mut self, driver: &DriverName) {
        self.desks.remove(driver);
        if self.image.tasks.contains_key(driver) {
            self.served.insert(driver.clone());
        }
    }
}
