//! The laws of the owner of the drivers.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::driver::{DriverHealth, DriverReport, DriverStage, TaskKey};
use callboard_actors::drivers::{
    ChildKind, DispenseDriver, DriverReported, Drivers, DriversAnswer, DriversAsk, DriversCall,
    DriversChange, DriversNews, DriversOutcome, DriversTimer, EventorReported, ForgetTaskHandler,
    NotDispensed, Wanted,
};
use callboard_actors::eventor::EventorNews;
use callboard_actors::shell::{AskId, Effect, Input};
use callboard_actors::vocabulary::{Attempt, DriverName, Generation, Moment};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::restarts::Restarts;

/// The present life of a driver and of its eventor, as the owner knows them.
#[derive(Debug, Clone, Hash, Default)]
struct Lives {
    driver: Option<Attempt>,
    /// Whether the driver was requested to end.
    is_ending: bool,
    eventor: Option<Attempt>,
    /// Whether the eventor has reported that it began.
    has_begun: bool,
    /// The generation that the eventor was given.
    attends: Option<Generation>,
    /// The last report of the driver, and whether leases can be had; reports from before it received its restart do not count.
    said: Option<(DriverReport, bool)>,
    /// The number of the restart that was requested of it, until it has received that.
    restart: Option<Attempt>,
}

impl Lives {
    /// Whether the driver sent this before it received its restart.
    fn is_outdated(&self, report: &DriverReport) -> bool {
        !self.is_ending && self.restart.is_some_and(|number| report.restart < number)
    }
}

/// Observes every step of the owner of the drivers.
#[derive(Debug, Clone, Hash, Default)]
pub struct DriversLaws {
    lives: BTreeMap<DriverName, Lives>,
    watched: BTreeMap<DriverName, BTreeSet<TaskKey>>,
    waiting: BTreeMap<AskId, (DriverName, Wanted)>,
    restarts: Restarts,
    is_stopped: bool,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl DriversLaws {
    fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        self.verdict.violation(law, || format!("owner of the drivers: {}", what()));
    }

    // === Inputs ===

    /// Whether the input is of an earlier life of an actor.
    fn hear(&mut self, input: &Input<Drivers>) -> bool {
        match input {
            Input::StopRequested(_) => self.is_stopped = true,
            Input::Asked { id, ask, .. } => return self.asked(*id, ask),
            Input::Returned { outcome: Ok(DriversOutcome::Ended(endings)), .. } => {
                for ended in endings {
                    let Some(lives) = self.lives.get_mut(&ended.driver) else { continue };
                    match ended.kind {
                        ChildKind::Driver if lives.driver == Some(ended.life) => {
                            self.restarts.ended(ended, lives.is_ending);
                            (lives.driver, lives.is_ending, lives.said, lives.restart) =
                                (None, false, None, None);
                        }
                        ChildKind::Eventor if lives.eventor == Some(ended.life) => {
                            (lives.eventor, lives.has_begun, lives.attends) = (None, false, None);
                        }
                        ChildKind::Driver | ChildKind::Eventor => {}
                    }
                }
            }
            Input::Elapsed(DriversTimer::Dispense(_, id)) => {
                self.waiting.remove(id);
            }
            Input::Elapsed(_) | Input::Returned { .. } | Input::Resumed => {}
        }
        false
    }

    fn asked(&mut self, id: AskId, ask: &DriversAsk) -> bool {
        match ask {
            DriversAsk::DispenseDriver(DispenseDriver { name, wanted, .. }) => {
                self.waiting.insert(id, (name.clone(), *wanted));
            }
            DriversAsk::ForgetTaskHandler(ForgetTaskHandler { driver, task }) => {
                self.forgets(driver, task);
            }
            DriversAsk::DriverReported(DriverReported { life, report, may_lend }) => {
                let lives = self.lives.entry(report.name.clone()).or_default();
                if lives.driver != Some(*life) || lives.is_outdated(report) {
                    return true;
                }
                lives.restart = None;
                lives.said = Some((report.clone(), *may_lend));
                self.restarts.reported(report);
            }
            DriversAsk::EventorReported(EventorReported { driver, life, news }) => {
                let lives = self.lives.entry(driver.clone()).or_default();
                if lives.eventor != Some(*life) {
                    return true;
                }
                if *news == EventorNews::Began {
                    (lives.has_begun, lives.attends) = (true, None);
                }
            }
            DriversAsk::AddDriver(_)
            | DriversAsk::RemoveDriver(_)
            | DriversAsk::RestartDriver(_)
            | DriversAsk::GiveUpDriver(_)
            | DriversAsk::ListDrivers(_)
            | DriversAsk::DescribeDriver(_)
            | DriversAsk::AwaitDrivers(_)
            | DriversAsk::AnnounceTask(_)
            | DriversAsk::RegisterTaskHandler(_)
            | DriversAsk::RecentTaskEvents(_) => {}
        }
        false
    }

    fn forgets(&mut self, driver: &DriverName, task: &TaskKey) {
        if let Some(tasks) = self.watched.get_mut(driver) {
            tasks.remove(task);
        }
    }

    // === Effects ===

    fn calls(&mut self, call: &DriversCall, input: &Input<Drivers>) {
        match call {
            DriversCall::StartDriver(life, config) => {
                let driver = config.spec.name.clone();
                self.restarts.begins(config, input);
                self.begins(&driver);
                let lives = self.lives.entry(driver.clone()).or_default();
                let former = lives.driver.replace(*life);
                (lives.is_ending, lives.said, lives.restart) = (false, None, None);
                if let Some(former) = former {
                    self.violation(Law::Prc4, || {
                        format!("life {life} of {driver} begins before {former} has ended")
                    });
                }
            }
            DriversCall::StartEventor(life, driver) => {
                self.begins(driver);
                let lives = self.lives.entry(driver.clone()).or_default();
                let former = lives.eventor.replace(*life);
                (lives.has_begun, lives.attends) = (false, None);
                if let Some(former) = former {
                    self.violation(Law::Prc4, || {
                        format!("eventor {life} of {driver} begins before {former} has ended")
                    });
                }
            }
            DriversCall::Stop(life, _) => {
                for lives in self.lives.values_mut().filter(|lives| lives.driver == Some(*life)) {
                    lives.is_ending = true;
                }
            }
            DriversCall::SubscribeTo(life, generation) => {
                for lives in self.lives.values_mut().filter(|lives| lives.eventor == Some(*life)) {
                    lives.attends = Some(*generation);
                }
            }
            DriversCall::RestartNow(..) if self.is_stopped => {
                self.violation(Law::I6, || "it is being stopped and brings a driver anew".to_owned());
            }
            DriversCall::RestartNow(life, number) => {
                for (driver, lives) in &mut self.lives {
                    if lives.driver == Some(*life) {
                        (lives.restart, lives.said) = (Some(*number), None);
                        self.restarts.asked(driver, *number);
                    }
                }
            }
            DriversCall::AwaitEndings
            | DriversCall::Sweep
            | DriversCall::Kill(_)
            | DriversCall::AskTroubles(..)
            | DriversCall::AskRecent(..)
            | DriversCall::Watch(..)
            | DriversCall::Forget(..)
            | DriversCall::HandOver(..)
            | DriversCall::End(_) => {}
        }
    }

    fn writes(&mut self, change: &DriversChange) {
        self.restarts.wrote(change);
        if let DriversChange::Forget(driver, task) = change {
            self.forgets(driver, task);
        }
        if let DriversChange::Watch(driver, task, _) = change {
            self.watched.entry(driver.clone()).or_default().insert(task.clone());
        }
    }

    fn begins(&mut self, driver: &DriverName) {
        if self.is_stopped {
            self.violation(Law::I6, || format!("it is being stopped and starts something of {driver}"));
        }
    }

    fn replies(&mut self, id: AskId, answer: &DriversAnswer) {
        let asked = self.waiting.remove(&id);
        if let DriversAnswer::DispenseDriver(Err(NotDispensed::Refused { driver, .. })) = answer
            && !self.is_refused(driver)
        {
            let what = || format!("{driver} is answered to be refused, which it has not said");
            return self.violation(Law::Res1, what);
        }
        if let DriversAnswer::DispenseDriver(Err(NotDispensed::NotHealthy { driver, .. })) = answer
            && self.lives.get(driver).is_some_and(|lives| !lives.is_ending && lives.restart.is_some())
        {
            let what = || format!("{driver} is being restarted, and a caller is answered what it was before");
            return self.violation(Law::Res1, what);
        }
        let DriversAnswer::DispenseDriver(Ok(dispensed)) = answer else { return };
        let generation = dispensed.generation;
        let said = self.lives.get(&dispensed.driver).and_then(|lives| lives.said.as_ref());
        let is_had = said.is_some_and(|(report, _)| {
            let is_enough = match (report.health, asked.as_ref().map(|(_, wanted)| *wanted)) {
                (DriverHealth::Healthy, _) => true,
                (DriverHealth::Undetected | DriverHealth::Unhealthy, Some(Wanted::Reachable)) => true,
                (_, _) => false,
            };
            is_enough && report.generation == generation
        });
        if !is_had {
            let said = said.map(|(report, _)| (report.health, report.generation));
            self.violation(Law::Res1, || {
                format!("generation {generation} is given out of a driver that says {said:?}")
            });
        }
    }

    // === After a step ===

    /// No caller waits for a driver that is ready.
    fn check_readiness(&mut self) {
        let is_ready = |driver: &DriverName| {
            self.lives.get(driver).is_some_and(|lives| {
                let is_healthy = |(report, may_lend): &(DriverReport, bool)| {
                    report.health == DriverHealth::Healthy && *may_lend
                };
                !lives.is_ending && lives.said.as_ref().is_some_and(is_healthy)
            })
        };
        let late =
            self.waiting.values().find(|(driver, _)| is_ready(driver)).map(|(driver, _)| driver.clone());
        if let Some(driver) = late {
            self.violation(Law::Hlt4, || format!("{driver} is ready, and a caller goes on waiting for it"));
        }
    }

    /// Whether the program of a driver is refused, by its last report.
    fn is_refused(&self, driver: &DriverName) -> bool {
        self.lives.get(driver).is_some_and(|lives| {
            let said = lives.said.as_ref().map(|(report, _)| report.stage);
            said == Some(DriverStage::Refused) && !lives.is_ending
        })
    }

    /// No caller waits for a driver whose program is refused.
    fn check_refused(&mut self) {
        let waits = self.waiting.values().find(|(driver, _)| self.is_refused(driver));
        if let Some(driver) = waits.map(|(driver, _)| driver.clone()) {
            self.violation(Law::Hlt4, || format!("{driver} is refused, and a caller waits for it"));
        }
    }

    /// The eventor of a driver that serves knows its generation.
    fn check_attended(&mut self, driver: &DriverName) {
        let Some(lives) = self.lives.get(driver) else { return };
        let Some((report, true)) = &lives.said else { return };
        let is_due = report.stage == DriverStage::Watching && lives.has_begun && !lives.is_ending;
        let generation = report.generation;
        if is_due && lives.attends != Some(generation) {
            self.violation(Law::Evt3, || {
                format!("{driver} serves as generation {generation}, and its events are not asked for")
            });
        }
    }

    /// An eventor that begins receives every task that is watched.
    fn check_renewed(&mut self, driver: &DriverName, effects: &[Effect<Drivers>]) {
        let told: BTreeSet<TaskKey> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Call { call: DriversCall::Watch(_, tasks, _), .. } => Some(tasks),
                _ => None,
            })
            .flatten()
            .map(|(task, _)| task.clone())
            .collect();
        let watched = self.watched.get(driver).cloned().unwrap_or_default();
        if told != watched {
            self.violation(Law::Evt3, || {
                format!("the eventor of {driver} begins, is told of {told:?}, and watched are {watched:?}")
            });
        }
    }

    /// Nothing of a driver that has left is watched: its handlers are notified that no more events come.
    fn check_left(&mut self, driver: &DriverName) {
        if !self.is_stopped
            && let Some(tasks) = self.watched.get(driver).filter(|tasks| !tasks.is_empty())
        {
            let tasks = tasks.clone();
            self.violation(Law::S4, || format!("{driver} has left, and {tasks:?} are watched on"));
        }
    }

    fn check(&mut self, input: &Input<Drivers>, effects: &[Effect<Drivers>]) {
        match input {
            Input::Asked { ask: DriversAsk::DriverReported(said), .. } => {
                self.check_readiness();
                self.check_refused();
                self.check_attended(&said.report.name);
            }
            Input::Asked { ask: DriversAsk::DispenseDriver(_), .. } => self.check_refused(),
            Input::Asked {
                ask: DriversAsk::EventorReported(EventorReported { driver, news: EventorNews::Began, .. }),
                ..
            } => {
                self.check_renewed(driver, effects);
                self.check_attended(driver);
            }
            Input::Asked { .. }
            | Input::Resumed
            | Input::Returned { .. }
            | Input::Elapsed(_)
            | Input::StopRequested(_) => {}
        }
        if let Some(driver) = self.restarts.take_owed() {
            self.violation(Law::Res1, || {
                format!("{driver} is brought again, and not restarted as requested")
            });
        }
        let is_left = |lives: &Lives| lives.driver.is_some() || lives.eventor.is_some();
        let ends = effects.iter().any(|effect| matches!(effect, Effect::Stop(_)));
        if ends && self.lives.values().any(is_left) {
            let lives = self.lives.clone();
            self.violation(Law::S4, || format!("it ends and leaves {lives:?}"));
        }
    }
}

impl LawChecker<Drivers> for DriversLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Drivers) {
        self.lives.clear();
        self.waiting.clear();
        self.is_stopped = false;
    }

    fn stepped(&mut self, _: Moment, input: &Input<Drivers>, effects: &[Effect<Drivers>], _: &Drivers) {
        if self.hear(input) {
            if !effects.iter().all(|effect| matches!(effect, Effect::Reply(..))) {
                self.violation(Law::Reg8, || {
                    format!("{input:?} is of an earlier life, and leads to {effects:?}")
                });
            }
            return;
        }
        let mut left = Vec::new();
        for effect in effects {
            match effect {
                Effect::Call { call, .. } => self.calls(call, input),
                Effect::Reply(id, answer) => self.replies(*id, answer),
                Effect::Persist(_, change) => self.writes(change),
                Effect::Publish(DriversNews::Left(report)) => left.push(&report.name),
                Effect::Publish(DriversNews::Reported(report)) if report.health == DriverHealth::Gone => {
                    self.violation(Law::S4, || {
                        format!("{} is told to be gone, and is not left", report.name)
                    });
                }
                Effect::Publish(_) | Effect::StartTimer(..) | Effect::CancelTimer(_) | Effect::Stop(_) => {}
            }
        }
        self.check(input, effects);
        for driver in left {
            self.check_left(driver);
        }
    }

    fn panicked(&mut self, input: &Input<Drivers>) {
        self.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
