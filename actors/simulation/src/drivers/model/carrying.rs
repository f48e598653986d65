//! Carries out the effects of the owner, the drivers and the eventors, or puts them in flight.

use callboard_actors::driver::{DriverAsk, RestartNow};
use callboard_actors::lease::LeasedCalls;

use super::super::super::law_checker::NO_CALLER_WAITS;
use super::super::super::observed::Observed;
use super::*;

impl DriversModel {
    pub(super) fn carry(&mut self, moment: Moment) {
        let mut left = Vec::new();
        loop {
            if self.owner.is_loading() {
                // The calls of the former life are given up.
                self.await_endings = None;
                let image = self.owner.store.0.clone();
                self.owner.loaded(moment, image);
            }
            self.owner.take_left(&mut left);
            if let Some(told) = &mut self.told {
                told.extend(Observed::noted("drivers", &mut self.owner));
                told.extend(
                    left.iter().map(|left| Observed::left_to("drivers", left, |asker| asker != NO_ASKER)),
                );
            }
            if left.is_empty() {
                return;
            }
            for left in left.drain(..) {
                match left {
                    Left::Answer(Some(asker), answer) => {
                        self.handler_answered(asker, Some(&answer));
                        self.answered.push((asker, Some(answer)));
                    }
                    Left::Refused(asker, _) => {
                        self.handler_answered(asker, None);
                        self.answered.push((asker, None));
                    }
                    Left::Call { number, call, .. } => self.call(moment, number, call),
                    Left::Ended(_) => {
                        self.has_ended = true;
                        self.kill_all();
                        self.check_end();
                    }
                    Left::Answer(None, _) => self.answered_no_caller(),
                    Left::News(..) | Left::Snapshot(..) => {}
                }
            }
        }
    }

    fn answered_no_caller(&mut self) {
        self.violation(Law::Shell7, NO_CALLER_WAITS.to_owned());
    }

    fn call(&mut self, moment: Moment, number: u64, call: DriversCall) {
        let outcome = match call {
            DriversCall::AwaitEndings => {
                self.await_endings = Some(number);
                self.set_off.extend((!self.endings.is_empty()).then_some(SetOff::Endings));
                return;
            }
            DriversCall::RestartNow(life, restart) => return self.restart(moment, number, life, restart),
            DriversCall::AskTroubles(..) => DriversOutcome::Described(Vec::new(), LeasedCalls::default()),
            DriversCall::AskRecent(..) => DriversOutcome::Told(Vec::new()),
            other => {
                self.order(moment, other);
                DriversOutcome::Done
            }
        };
        self.owner.returned(moment, number, Ok(outcome));
    }

    /// Requests a restart from a driver. Its owner is notified when the driver has accepted that, or crashed over it.
    fn restart(&mut self, moment: Moment, call: u64, life: Attempt, restart: Attempt) {
        match self.children.get_mut(&life).map(|child| &mut child.actor) {
            Some(Actor::Driver(child)) => {
                let ask = DriverAsk::RestartNow(RestartNow { number: restart });
                child.actor.ask(moment, asker_of(call), ask);
                self.carry_child(moment, life);
            }
            Some(Actor::Eventor(_)) | None => {
                self.owner.returned(moment, call, Ok(DriversOutcome::Done));
            }
        }
    }

    fn order(&mut self, moment: Moment, call: DriversCall) {
        match call {
            DriversCall::AwaitEndings
            | DriversCall::RestartNow(..)
            | DriversCall::AskTroubles(..)
            | DriversCall::AskRecent(..) => {}
            DriversCall::Sweep => self.kill_all(),
            DriversCall::Kill(life) => {
                // The owner of the processes must end what is left of its process.
                self.is_excused = true;
                self.end_child(life, Ending::Killed);
            }
            DriversCall::StartDriver(life, config) => {
                let name = config.spec.name.clone();
                let laws = DriverLaws::new((*config).clone());
                let actor = StandIn::begin(*config, NoDisk, laws, Rules::default());
                let actor = actor.tampered_with(self.options.tampers.driver.clone());
                let child = DriverChild { actor, link: None, is_unwell: false };
                self.starts(moment, life, name, Actor::Driver(Box::new(child)));
            }
            DriversCall::StartEventor(life, name) => {
                let options = self.options.drivers.eventor;
                let actor = StandIn::begin(options, NoDisk, EventorLaws::new(options), Rules::default());
                let actor = actor.tampered_with(self.options.tampers.eventor.clone());
                let child = EventorChild { actor, stream: None };
                self.starts(moment, life, name, Actor::Eventor(Box::new(child)));
            }
            DriversCall::Stop(life, mode) => {
                match self.children.get_mut(&life).map(|child| &mut child.actor) {
                    Some(Actor::Driver(child)) => child.actor.request_stop(moment, mode),
                    Some(Actor::Eventor(child)) => child.actor.request_stop(moment, mode),
                    None => {}
                }
                self.carry_child(moment, life);
            }
            DriversCall::SubscribeTo(life, generation) => {
                self.tell_eventor(moment, life, callboard_actors::eventor::SubscribeTo { generation });
            }
            DriversCall::Watch(life, tasks, is_renewal) => {
                for (task, sink) in tasks {
                    let name = self.children.get(&life).map(|child| child.name.clone());
                    let subscribers = name.and_then(|name| self.audiences.get_mut(&name));
                    let after = subscribers.and_then(|subscribers| subscribers.position(sink));
                    self.tell_eventor(
                        moment,
                        life,
                        callboard_actors::eventor::Watch { task, sink, after, is_renewal },
                    );
                }
            }
            DriversCall::Forget(life, task) => {
                self.tell_eventor(moment, life, callboard_actors::eventor::Forget { task });
            }
            DriversCall::HandOver(from, to) => {
                self.audiences.values_mut().filter(|subscribers| subscribers.knows(to)).for_each(
                    |subscribers| {
                        subscribers.hand_over(from, to);
                    },
                );
            }
            DriversCall::End(sink) => {
                self.audiences.values_mut().filter(|subscribers| subscribers.knows(sink)).for_each(
                    |subscribers| {
                        subscribers.end(sink);
                    },
                );
            }
        }
    }

    fn tell_eventor<Q: Message<Eventor>>(&mut self, moment: Moment, life: Attempt, message: Q) {
        if let Some(Actor::Eventor(child)) = self.children.get_mut(&life).map(|child| &mut child.actor) {
            child.actor.ask(moment, NO_ASKER, message.into_ask());
            self.carry_child(moment, life);
        }
    }

    fn starts(&mut self, moment: Moment, life: Attempt, name: DriverName, actor: Actor) {
        let number = self.options.specs.iter().position(|spec| spec.name == name).unwrap_or(0);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let child = Child { number, name, actor, mail: VecDeque::new(), counted: Count::default() };
        self.children.insert(life, child);
        self.carry_child(moment, life);
    }

    pub(super) fn carry_child(&mut self, moment: Moment, life: Attempt) {
        let Some(child) = self.children.get(&life) else { return };
        let (number, kind) = (child.number, child.kind());
        self.set_off.push(SetOff::Changed(number, kind));
        match kind {
            ChildKind::Driver => while self.carry_driver(moment, life) {},
            ChildKind::Eventor => while self.carry_eventor(moment, life) {},
        }
        if let Some(child) = self.children.get_mut(&life) {
            self.steps_before.0 += child.count();
        }
    }

    fn says(&mut self, life: Attempt, said: DriversAsk) {
        if let Some(child) = self.children.get_mut(&life) {
            child.mail.push_back(said);
            self.set_off.push(SetOff::Mail(child.number, child.kind()));
        }
    }

    // === A driver ===

    fn carry_driver(&mut self, moment: Moment, life: Attempt) -> bool {
        let Some(Child { actor: Actor::Driver(child), name, .. }) = self.children.get_mut(&life) else {
            return false;
        };
        if self.told.is_some() {
            child.actor.begin_noting();
        }
        let left = child.actor.leaving(moment);
        if let Some(told) = &mut self.told {
            told.extend(Observed::noted(&format!("driver {name}"), &mut child.actor));
        }
        self.owner.checker.verdict.heard_of(child.actor.checker.verdict.broken());
        let has_left = !left.is_empty();
        for left in left {
            match left {
                Left::News(_, report) => {
                    let may_lend = self.may_lend(life, &report);
                    let reported = DriverReported { life, report, may_lend };
                    self.says(life, DriversAsk::DriverReported(reported));
                }
                Left::Call { number, call, .. } => self.driver_calls(moment, life, number, &call),
                Left::Ended(ending) => self.end_child(life, ending),
                Left::Answer(None, _) => self.answered_no_caller(),
                Left::Answer(Some(asker), _) => {
                    self.owner.returned(moment, call_of(asker), Ok(DriversOutcome::Done));
                }
                Left::Refused(asker, _) => {
                    self.owner.returned(moment, call_of(asker), Ok(DriversOutcome::NotTaken));
                }
                Left::Snapshot(..) => {}
            }
        }
        has_left
    }

    /// Whether leases of the generation of a report can be had, as the shell of a driver reports it.
    fn may_lend(&mut self, life: Attempt, report: &callboard_actors::driver::DriverReport) -> bool {
        let Some(link) = self.link_of(life) else { return false };
        if report.health == callboard_actors::driver::DriverHealth::Gone {
            link.is_cut = true;
        }
        !link.is_cut && link.generation == report.generation
    }

    pub(super) fn link_of(&mut self, life: Attempt) -> Option<&mut Link> {
        match &mut self.children.get_mut(&life)?.actor {
            Actor::Driver(child) => child.link.as_mut(),
            Actor::Eventor(_) => None,
        }
    }

    // === An eventor ===

    fn carry_eventor(&mut self, moment: Moment, life: Attempt) -> bool {
        let Some(Child { actor: Actor::Eventor(child), name, .. }) = self.children.get_mut(&life) else {
            return false;
        };
        let driver = name.clone();
        if self.told.is_some() {
            child.actor.begin_noting();
        }
        let left = child.actor.leaving(moment);
        if let Some(told) = &mut self.told {
            told.extend(Observed::noted(&format!("eventor {driver}"), &mut child.actor));
        }
        self.owner.checker.verdict.heard_of(child.actor.checker.verdict.broken());
        let has_left = !left.is_empty();
        for left in left {
            match left {
                Left::News(_, news) => {
                    let said = EventorReported { driver: driver.clone(), life, news };
                    self.says(life, DriversAsk::EventorReported(said));
                }
                Left::Call { number, call, .. } => self.eventor_calls(moment, (life, &driver), number, call),
                Left::Ended(ending) => self.end_child(life, ending),
                Left::Answer(None, _) => self.answered_no_caller(),
                Left::Answer(..) | Left::Refused(..) | Left::Snapshot(..) => {}
            }
        }
        has_left
    }

    // === Endings ===

    pub(super) fn end_child(&mut self, life: Attempt, ending: Ending) {
        let Some(mut child) = self.children.remove(&life) else { return };
        self.steps_before.0 += child.count();
        let (number, kind) = (child.number, child.kind());
        if kind == ChildKind::Driver && ending != Ending::Normal && self.stopped.is_some() {
            self.is_excused = true;
        }
        let driver = child.name;
        if let Some(told) = self.told.as_mut().filter(|_| ending == Ending::Killed) {
            let of = if kind == ChildKind::Driver { "driver" } else { "eventor" };
            told.push(Observed::killed(format!("{of} {driver}")));
        }
        self.mark_changed(&driver);
        if !child.mail.is_empty() {
            self.late.insert(life, Late { number, kind, mail: child.mail });
            self.set_off.push(SetOff::Mail(number, kind));
        }
        self.endings.push_back(ChildEnded { driver, kind, life, ending });
        self.set_off.push(SetOff::Endings);
    }

    pub(super) fn drop_link(&mut self, life: Attempt) {
        if let Some(Child { actor: Actor::Driver(child), .. }) = self.children.get_mut(&life) {
            child.link = None;
        }
        self.mark_eventor_changed(life);
    }

    pub(super) fn mark_eventor_changed(&mut self, life: Attempt) {
        if let Some(driver) = self.children.get(&life).map(|child| child.name.clone()) {
            self.mark_changed(&driver);
        }
    }

    fn kill_all(&mut self) {
        let lives: Vec<Attempt> = self.lives().collect();
        for life in lives {
            self.end_child(life, Ending::Killed);
        }
    }
}

/// The asker under which a call of the owner asks a driver: never [`NO_ASKER`]. Only its owner asks a driver.
const fn asker_of(call: u64) -> u64 {
    call + 1
}

const fn call_of(asker: u64) -> u64 {
    asker - 1
}
