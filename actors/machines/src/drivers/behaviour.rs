//! What the owner of the drivers decides: what comes in, and where it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::*;
use super::news::{DriversNews, DriversView};
use super::state::{
    Drivers, DriversCall, DriversChange, DriversImage, DriversOptions, DriversOutcome, DriversTimer,
    HAND_OVER_DEADLINE,
};
use crate::driver::{Folded, ending_deadline};
use crate::kernel::{AskId, CallKey, CallLost, Effects, Input, Machine, StopStep};
use crate::lease::LeasedCalls;
use crate::vocabulary::{Attempt, DriverName, Moment, Timestamp};

/// How long one call for endings waits before it is made again.
const WAIT_DEADLINE: Duration = Duration::from_secs(3_600);

impl Machine for Drivers {
    const KIND: &'static str = "drivers";
    type Config = DriversOptions;
    type Image = DriversImage;
    type Ask = DriversAsk;
    type Answer = DriversAnswer;
    type Call = DriversCall;
    type Outcome = DriversOutcome;
    type Timer = DriversTimer;
    type Change = DriversChange;
    type News = DriversNews;
    type View = DriversView;

    fn restore(options: &DriversOptions, image: DriversImage, moment: Moment) -> Self {
        Self {
            options: options.clone(),
            image,
            entries: BTreeMap::new(),
            eventors: BTreeMap::new(),
            served: BTreeSet::new(),
            dispensing: BTreeMap::new(),
            curious: BTreeMap::new(),
            given_up: BTreeMap::new(),
            stop: None,
            stop_began: moment.now,
            steps: Vec::new(),
            life: Attempt::new(moment.random >> 16),
        }
    }

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => self.begin(moment, effects),
            Input::Asked { id, asked_at, ask } => self.asked(moment, *id, *asked_at, ask, effects),
            Input::Returned { call, outcome, .. } => self.returned(moment, call, outcome, effects),
            Input::Elapsed(timer) => self.elapsed(moment, timer, effects),
            Input::StopRequested(mode) => self.stop(moment, *mode, effects),
        }
    }

    fn view(&self) -> DriversView {
        DriversView { reports: self.reports() }
    }

    fn stop_steps(&self) -> Vec<StopStep> {
        self.steps.clone()
    }

    fn stops_within(&self) -> Option<Duration> {
        self.entries.values().map(|entry| ending_deadline(&entry.config)).max()
    }
}

impl Drivers {
    /// Brings back what the host wants, and ends what it blocks.
    fn begin(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        self.call(DriversCall::Sweep, effects);
        effects.call(CallKey::default(), WAIT_DEADLINE, DriversCall::AwaitEndings);
        // The eventors of a former life of this machine are no more: what came meanwhile may be missing (EVT-02).
        self.served = self.image.tasks.keys().cloned().collect();
        let specs: Vec<_> = self.image.specs.values().cloned().collect();
        for spec in specs {
            self.add_entry(moment, spec, effects);
        }
        let blocked: Vec<_> = self.options.blocked.iter().cloned().collect();
        for driver in blocked {
            self.retire_unknown(moment, &driver, effects);
        }
    }

    fn asked(
        &mut self,
        moment: Moment,
        id: AskId,
        asked_at: Timestamp,
        ask: &DriversAsk,
        effects: &mut Effects<Self>,
    ) {
        match ask {
            DriversAsk::AddDriver(AddDriver { spec }) => {
                let answer = self.add(moment, spec, effects);
                effects.reply(id, DriversAnswer::AddDriver(answer));
            }
            DriversAsk::RemoveDriver(RemoveDriver { name }) => self.remove(moment, id, name, effects),
            DriversAsk::RestartDriver(RestartDriver { name }) => {
                let answer = self.restart(moment, name, effects);
                effects.reply(id, DriversAnswer::RestartDriver(answer));
            }
            DriversAsk::GiveUpDriver(GiveUpDriver { name, reason }) => {
                self.give_up(name, reason, effects);
                effects.reply(id, DriversAnswer::GiveUpDriver(()));
            }
            DriversAsk::ListDrivers(ListDrivers) => {
                effects.reply(id, DriversAnswer::ListDrivers(self.reports()));
            }
            DriversAsk::DescribeDriver(DescribeDriver { name }) => self.describe(id, name, effects),
            DriversAsk::AwaitDrivers(AwaitDrivers { within }) => {
                self.await_drivers(moment, id, asked_at + *within, effects);
            }
            DriversAsk::DispenseDriver(dispense) => {
                self.dispense(moment, id, asked_at, dispense, effects);
            }
            DriversAsk::AnnounceTask(AnnounceTask { driver, task }) => {
                let answer = self.announce(driver, task, effects);
                effects.reply(id, DriversAnswer::AnnounceTask(answer));
            }
            DriversAsk::RegisterTaskHandler(RegisterTaskHandler { driver, task, sink }) => {
                let answer = self.register(driver, task, *sink, effects);
                effects.reply(id, DriversAnswer::RegisterTaskHandler(answer));
            }
            DriversAsk::ForgetTaskHandler(ForgetTaskHandler { driver, task }) => {
                self.forget(driver, task, effects);
                effects.reply(id, DriversAnswer::ForgetTaskHandler(()));
            }
            DriversAsk::RecentTaskEvents(RecentTaskEvents { driver, task }) => {
                self.recent(id, driver, task, effects);
            }
            DriversAsk::DriverReported(DriverReported { life, report, may_lend }) => {
                self.reported(moment, *life, report, *may_lend, effects);
                effects.reply(id, DriversAnswer::DriverReported(()));
            }
            DriversAsk::EventorSaid(EventorSaid { driver, life, news }) => {
                self.eventor_said(driver, *life, news, effects);
                effects.reply(id, DriversAnswer::EventorSaid(()));
            }
        }
    }

    fn elapsed(&mut self, moment: Moment, timer: &DriversTimer, effects: &mut Effects<Self>) {
        match timer {
            DriversTimer::Stop(driver) => self.stopped_too_slowly(moment, driver, effects),
            DriversTimer::Restart(driver) => self.restart_due(driver, effects),
            DriversTimer::RestartEventor(driver) => self.start_eventor(driver, effects),
            DriversTimer::Dispense(driver, id) => self.dispense_ended(moment, driver, *id, effects),
            DriversTimer::AwaitDrivers(id) => {
                if self.curious.remove(id).is_some() {
                    effects.reply(*id, DriversAnswer::AwaitDrivers(self.summary()));
                }
            }
        }
    }

    // === Calls ===

    pub(super) fn call(&self, call: DriversCall, effects: &mut Effects<Self>) {
        effects.call(CallKey::default(), HAND_OVER_DEADLINE, call);
    }

    fn returned(
        &mut self,
        moment: Moment,
        call: &DriversCall,
        outcome: &Result<DriversOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        match (call, outcome) {
            (DriversCall::AwaitEndings, outcome) => {
                effects.call(CallKey::default(), WAIT_DEADLINE, DriversCall::AwaitEndings);
                if let Ok(DriversOutcome::Ended(endings)) = outcome {
                    endings.iter().for_each(|ended| self.ended(moment, ended, effects));
                }
            }
            (DriversCall::AskTroubles(_, driver, id), outcome) => {
                let (troubles, calls) = match outcome {
                    Ok(DriversOutcome::Described(troubles, calls)) => (troubles.clone(), *calls),
                    Ok(_) | Err(_) => Default::default(),
                };
                let answer = self.status(driver, troubles, calls);
                effects.reply(*id, DriversAnswer::DescribeDriver(answer));
            }
            (DriversCall::AskRecent(_, _, id), outcome) => {
                effects.reply(*id, DriversAnswer::RecentTaskEvents(told(outcome)));
            }
            (DriversCall::StartDriver(life, config), Err(lost)) => {
                self.not_started(moment, &config.spec.name, *life, lost, effects);
            }
            (DriversCall::RestartNow(life, number), Ok(DriversOutcome::NotTaken)) => {
                self.restart_not_taken(*life, *number, effects);
            }
            // Their effect is reported by an ending or by news of the child. A timer kills a child that does not end.
            (
                DriversCall::StartDriver(..)
                | DriversCall::StartEventor(..)
                | DriversCall::Sweep
                | DriversCall::Stop(..)
                | DriversCall::Kill(_)
                | DriversCall::RestartNow(..)
                | DriversCall::Attend(..)
                | DriversCall::Watch(..)
                | DriversCall::Forget(..)
                | DriversCall::HandOver(..)
                | DriversCall::End(_),
                _,
            ) => {}
        }
    }

    // === What is known ===

    pub(super) fn reports(&self) -> Vec<crate::driver::DriverReport> {
        self.entries.values().filter(|entry| entry.serves()).map(|entry| entry.report.clone()).collect()
    }

    fn describe(&mut self, id: AskId, driver: &DriverName, effects: &mut Effects<Self>) {
        let life =
            self.entries.get(driver).filter(|entry| entry.serves()).and_then(|entry| entry.child.life());
        match life {
            Some(life) => self.call(DriversCall::AskTroubles(life, driver.clone(), id), effects),
            None => {
                let answer = self.status(driver, Vec::new(), LeasedCalls::default());
                effects.reply(id, DriversAnswer::DescribeDriver(answer));
            }
        }
    }

    fn status(
        &self,
        driver: &DriverName,
        troubles: Vec<Folded>,
        calls: LeasedCalls,
    ) -> Result<DriverStatus, NoSuchDriver> {
        let entry = self.entries.get(driver).filter(|entry| entry.serves());
        let entry = entry.ok_or_else(|| NoSuchDriver::Unknown { driver: driver.clone() })?;
        Ok(DriverStatus {
            report: entry.report.clone(),
            troubles,
            tasks_watched: self.image.tasks.get(driver).map_or(0, BTreeMap::len),
            restarts: entry.child.restarts(),
            calls,
        })
    }
}

fn told(outcome: &Result<DriversOutcome, CallLost>) -> Vec<Folded> {
    match outcome {
        Ok(DriversOutcome::Told(folded)) => folded.clone(),
        Ok(_) | Err(_) => Vec::new(),
    }
}
