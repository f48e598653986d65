//! Decides for the owner of the drivers: dispatches its inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::*;
use super::news::{DriversNews, DriversView};
use super::state::{
    Drivers, DriversCall, DriversChange, DriversImage, DriversOptions, DriversOutcome, DriversTimer,
    HAND_OVER_DEADLINE,
};
use crate::driver::{Folded, ending_deadline};
use crate::kernel::{
    AskId, CallKey, CallLost, Input, Machine, StepContext, StopStep, await_endings_again, await_news,
};
use crate::lease::LeasedCalls;
use crate::vocabulary::{Attempt, DriverName, Moment, Timestamp};

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
            until_known: BTreeMap::new(),
            given_up: BTreeMap::new(),
            stop: None,
            stop_began: moment.now,
            steps: Vec::new(),
            life: Attempt::new(moment.random >> 16),
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => self.begin(cx),
            Input::Asked { id, asked_at, ask } => self.asked(*id, *asked_at, ask, cx),
            Input::Returned { call, outcome, .. } => self.returned(call, outcome, cx),
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(mode) => self.stop(*mode, cx),
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
    /// Starts the drivers that the host wants, and ends those that it blocks.
    fn begin(&mut self, cx: &mut StepContext<Self>) {
        self.call(DriversCall::Sweep, cx);
        await_news(DriversCall::AwaitEndings, cx);
        // The eventors of a former life of this machine have ended: events of the meantime may be missing (EVT-02).
        self.served = self.image.tasks.keys().cloned().collect();
        let specs: Vec<_> = self.image.specs.values().cloned().collect();
        for spec in specs {
            self.add_entry(spec, cx);
        }
        let blocked: Vec<_> = self.options.blocked.iter().cloned().collect();
        for driver in blocked {
            self.retire_unknown(&driver, cx);
        }
    }

    fn asked(&mut self, id: AskId, asked_at: Timestamp, ask: &DriversAsk, cx: &mut StepContext<Self>) {
        match ask {
            DriversAsk::AddDriver(AddDriver { spec }) => {
                let answer = self.add(spec, cx);
                cx.reply(id, DriversAnswer::AddDriver(answer));
            }
            DriversAsk::RemoveDriver(RemoveDriver { name }) => self.remove(id, name, cx),
            DriversAsk::RestartDriver(RestartDriver { name }) => {
                let answer = self.restart(name, cx);
                cx.reply(id, DriversAnswer::RestartDriver(answer));
            }
            DriversAsk::GiveUpDriver(GiveUpDriver { name, reason }) => {
                self.give_up(name, reason, cx);
                cx.reply(id, DriversAnswer::GiveUpDriver(()));
            }
            DriversAsk::ListDrivers(ListDrivers) => {
                cx.reply(id, DriversAnswer::ListDrivers(self.reports()));
            }
            DriversAsk::DescribeDriver(DescribeDriver { name }) => self.describe(id, name, cx),
            DriversAsk::AwaitDrivers(AwaitDrivers { within }) => {
                self.await_drivers(id, asked_at + *within, cx);
            }
            DriversAsk::DispenseDriver(dispense) => {
                self.dispense(id, asked_at, dispense, cx);
            }
            DriversAsk::AnnounceTask(AnnounceTask { driver, task }) => {
                let answer = self.announce(driver, task, cx);
                cx.reply(id, DriversAnswer::AnnounceTask(answer));
            }
            DriversAsk::RegisterTaskHandler(RegisterTaskHandler { driver, task, sink }) => {
                let answer = self.register(driver, task, *sink, cx);
                cx.reply(id, DriversAnswer::RegisterTaskHandler(answer));
            }
            DriversAsk::ForgetTaskHandler(ForgetTaskHandler { driver, task }) => {
                self.forget(driver, task, cx);
                cx.reply(id, DriversAnswer::ForgetTaskHandler(()));
            }
            DriversAsk::RecentTaskEvents(RecentTaskEvents { driver, task }) => {
                self.recent(id, driver, task, cx);
            }
            DriversAsk::DriverReported(DriverReported { life, report, may_lend }) => {
                self.reported(*life, report, *may_lend, cx);
                cx.reply(id, DriversAnswer::DriverReported(()));
            }
            DriversAsk::EventorReported(EventorReported { driver, life, news }) => {
                self.eventor_said(driver, *life, news, cx);
                cx.reply(id, DriversAnswer::EventorReported(()));
            }
        }
    }

    fn elapsed(&mut self, timer: &DriversTimer, cx: &mut StepContext<Self>) {
        match timer {
            DriversTimer::AwaitEndings => {
                await_news(DriversCall::AwaitEndings, cx);
            }
            DriversTimer::Stop(driver) => self.stopped_too_slowly(driver, cx),
            DriversTimer::Restart(driver) => self.restart_due(driver, cx),
            DriversTimer::AskForRestart(driver, number) => self.ask_for_restart(driver, *number, cx),
            DriversTimer::RestartEventor(driver) => self.start_eventor(driver, cx),
            DriversTimer::Dispense(driver, id) => self.dispense_ended(driver, *id, cx),
            DriversTimer::AwaitDrivers(id) => {
                if self.until_known.remove(id).is_some() {
                    cx.reply(*id, DriversAnswer::AwaitDrivers(self.summary()));
                }
            }
        }
    }

    // === Calls ===

    pub(super) fn call(&self, call: DriversCall, cx: &mut StepContext<Self>) {
        cx.call(CallKey::default(), HAND_OVER_DEADLINE, call);
    }

    fn returned(
        &mut self,
        call: &DriversCall,
        outcome: &Result<DriversOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        match (call, outcome) {
            (DriversCall::AwaitEndings, outcome) => {
                let again = (DriversCall::AwaitEndings, DriversTimer::AwaitEndings);
                await_endings_again(outcome, again, cx);
                if let Ok(DriversOutcome::Ended(endings)) = outcome {
                    endings.iter().for_each(|ended| self.ended(ended, cx));
                }
            }
            (DriversCall::AskTroubles(_, driver, id), outcome) => {
                let (troubles, calls) = match outcome {
                    Ok(DriversOutcome::Described(troubles, calls)) => (troubles.clone(), *calls),
                    Ok(_) | Err(_) => Default::default(),
                };
                let answer = self.status(driver, troubles, calls);
                cx.reply(*id, DriversAnswer::DescribeDriver(answer));
            }
            (DriversCall::AskRecent(_, _, id), outcome) => {
                cx.reply(*id, DriversAnswer::RecentTaskEvents(told(outcome)));
            }
            (DriversCall::StartDriver(life, config), Err(lost)) => {
                self.not_started(&config.spec.name, *life, lost, cx);
            }
            (DriversCall::RestartNow(life, number), Ok(DriversOutcome::NotTaken)) => {
                self.restart_not_taken(*life, *number, cx);
            }
            (DriversCall::StartEventor(life, driver), Err(_)) => self.eventor_ended(driver, *life, cx),
            // The effect of these calls is reported by an ending or by news of the child. A timer kills a child that does not end.
            (
                DriversCall::StartDriver(..)
                | DriversCall::StartEventor(..)
                | DriversCall::Sweep
                | DriversCall::Stop(..)
                | DriversCall::Kill(_)
                | DriversCall::RestartNow(..)
                | DriversCall::SubscribeTo(..)
                | DriversCall::Watch(..)
                | DriversCall::Forget(..)
                | DriversCall::HandOver(..)
                | DriversCall::End(_),
                _,
            ) => {}
        }
    }

    // === Known state ===

    pub(super) fn reports(&self) -> Vec<crate::driver::DriverReport> {
        self.entries.values().filter(|entry| entry.serves()).map(|entry| entry.report.clone()).collect()
    }

    fn describe(&mut self, id: AskId, driver: &DriverName, cx: &mut StepContext<Self>) {
        let life =
            self.entries.get(driver).filter(|entry| entry.serves()).and_then(|entry| entry.child.life());
        match life {
            Some(life) => self.call(DriversCall::AskTroubles(life, driver.clone(), id), cx),
            None => {
                let answer = self.status(driver, Vec::new(), LeasedCalls::default());
                cx.reply(id, DriversAnswer::DescribeDriver(answer));
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
