//! Carries out the effects of the parent and the children, or puts them in flight.

use super::super::super::law::Law;
use super::super::super::law_checker::NO_CALLER_WAITS;
use super::super::super::observed::Observed;
use super::*;

fn name((plugin, allocation): &Place) -> String {
    format!("instance {plugin} of {allocation}")
}

impl InstancesModel {
    pub(super) fn carry_parent(&mut self, moment: Moment) {
        let mut left = Vec::new();
        loop {
            if self.parent.is_loading() {
                // The calls of the former life are given up.
                (self.follow, self.await_endings) = (None, None);
                self.parent.loaded(moment, ());
            }
            self.parent.take_left(&mut left);
            if let Some(noted) = &mut self.noted {
                noted.extend(Observed::noted("instances", &mut self.parent));
            }
            if left.is_empty() {
                return;
            }
            for left in left.drain(..) {
                match left {
                    Left::Answer(Some(asker), answer) => self.answered.push((asker, Some(answer))),
                    Left::Refused(asker, _) => self.answered.push((asker, None)),
                    Left::News(number, news) => self.told.push(FeedItem::Change { number, news }),
                    Left::Snapshot(number, view) => {
                        self.told.push(FeedItem::Snapshot { number, view: (*view).clone() });
                    }
                    Left::Call { number, call, .. } => self.call(moment, number, call),
                    Left::Ended(_) => {
                        self.has_ended = true;
                        self.kill_all();
                    }
                    Left::Answer(None, _) => self.answered_no_caller(),
                }
            }
        }
    }

    fn answered_no_caller(&mut self) {
        self.parent.checker.verdict.violation(Law::Shell7, || NO_CALLER_WAITS.to_owned());
    }

    fn call(&mut self, moment: Moment, number: u64, call: InstancesCall) {
        match call {
            InstancesCall::Follow { afresh } => {
                self.follow = Some(number);
                self.set_out.extend((!self.inbox.is_empty()).then_some(SetOut::Feed));
                self.afresh |= afresh;
                return;
            }
            InstancesCall::AwaitEndings => {
                self.await_endings = Some(number);
                self.set_out.extend((!self.endings.is_empty()).then_some(SetOut::Endings));
                return;
            }
            InstancesCall::Look { life, .. } => {
                self.look(moment, number, life);
                return;
            }
            InstancesCall::Describe => {
                let outcome = InstancesOutcome::Described(BTreeMap::new());
                self.parent.returned(moment, number, Ok(outcome));
                return;
            }
            InstancesCall::Report(report) => {
                self.to_registry.push((number, RegistryAsk::ReportFitness(report)));
                return;
            }
            InstancesCall::Renew(renew) => {
                self.to_registry.push((number, RegistryAsk::Renew(renew)));
                return;
            }
            InstancesCall::Sweep => {
                let had_instances = !self.latest.is_empty();
                self.kill_all();
                self.parent.returned(moment, number, Ok(InstancesOutcome::Swept(had_instances)));
                return;
            }
            InstancesCall::Start { life, config } => self.start(moment, life, *config),
            InstancesCall::Retire { life, cause } => {
                if let Some(child) = self.children.get_mut(&life) {
                    child.actor.ask(moment, RETIREMENT, InstanceAsk::Retire(Retire { cause }));
                    self.carry_child(moment, life);
                }
            }
            InstancesCall::Kill { life } => self.end_child(life, Ending::Killed),
        }
        self.parent.returned(moment, number, Ok(InstancesOutcome::Done));
    }

    fn start(&mut self, moment: Moment, life: Attempt, config: InstanceConfig) {
        let place = (config.plugin.clone(), config.allocation.clone());
        let laws = InstanceLaws::new(config.clone());
        let mut actor =
            StandIn::begin(config, NoDisk, laws, Rules::default()).tampered_with(self.tampers.child.clone());
        actor.loaded(moment, ());
        self.latest.insert(place.clone(), life);
        self.children.insert(life, Child { actor, place, reports: VecDeque::new(), look: None });
        self.carry_child(moment, life);
    }

    fn look(&mut self, moment: Moment, number: u64, life: Attempt) {
        match self.children.get_mut(&life) {
            Some(child) => {
                child.look = Some(number);
                child.actor.ask(moment, LOOKS + number, InstanceAsk::LookNow(LookNow));
                self.carry_child(moment, life);
            }
            None => self.looked(moment, number, None),
        }
    }

    fn looked(&mut self, moment: Moment, number: u64, report: Option<InstanceReport>) {
        let gone = AskError::NotRunning { actor: Instance::KIND.to_owned() };
        self.parent.returned(moment, number, Ok(InstancesOutcome::Looked(report.ok_or(gone))));
    }

    pub(super) fn carry_child(&mut self, moment: Moment, life: Attempt) {
        let Some(child) = self.children.get_mut(&life) else { return };
        self.changed.push(life);
        let left = child.actor.leaving(moment);
        if let Some(noted) = &mut self.noted {
            noted.extend(Observed::noted(&name(&child.place), &mut child.actor));
        }
        self.parent.checker.verdict.heard_of(child.actor.checker.verdict.broken());
        for left in left {
            match left {
                Left::News(_, report) => {
                    if let Some(child) = self.children.get_mut(&life) {
                        self.set_out.push(SetOut::Report(child.place.clone()));
                        child.reports.push_back(report);
                    }
                }
                Left::Answer(Some(asker), answer) if asker >= LOOKS => {
                    // It reported what it saw before it answered, so the report arrives first.
                    while self.children.get(&life).is_some_and(|child| !child.reports.is_empty()) {
                        self.deliver_one(moment, life);
                    }
                    let report = match &*answer {
                        InstanceAnswer::LookNow(report) | InstanceAnswer::Retire(report) => {
                            Some(report.clone())
                        }
                        InstanceAnswer::ConnectionEnded(()) => None,
                    };
                    self.looked(moment, asker - LOOKS, report);
                }
                Left::Refused(asker, _) if asker >= LOOKS => self.looked(moment, asker - LOOKS, None),
                Left::Ended(ending) => self.end_child(life, ending),
                Left::Answer(None, _) => self.answered_no_caller(),
                Left::Answer(..) | Left::Refused(..) | Left::Snapshot(..) | Left::Call { .. } => {}
            }
        }
    }

    fn deliver_one(&mut self, moment: Moment, life: Attempt) {
        let report = self.children.get_mut(&life).and_then(|child| child.reports.pop_front());
        if let Some(report) = report {
            self.parent.ask(
                moment,
                NO_ASKER,
                InstancesAsk::InstanceReported(InstanceReported { life, report }),
            );
        }
    }

    pub(super) fn end_child(&mut self, life: Attempt, ending: Ending) {
        let Some(Child { place, reports, actor, .. }) = self.children.remove(&life) else { return };
        self.steps_before.0 += actor.steps();
        self.late.insert(life, reports);
        if let Some(noted) = self.noted.as_mut().filter(|_| ending == Ending::Killed) {
            noted.push(Observed::killed(name(&place)));
        }
        let (plugin, allocation) = place;
        self.endings.push_back(ChildEnded { plugin, allocation, life, ending });
        self.set_out.push(SetOut::Endings);
    }

    fn kill_all(&mut self) {
        let lives: Vec<Attempt> = self.children.keys().copied().collect();
        for life in lives {
            self.end_child(life, Ending::Killed);
        }
    }

    /// The parent ends with its children; a successor starts. Reports in flight arrive at the successor.
    pub(in super::super) fn succeed_parent(&mut self, moment: Moment) {
        self.kill_all();
        self.endings.clear();
        (self.follow, self.await_endings) = (None, None);
        self.steps_before.0 += self.parent.steps();
        let laws = self.parent.checker.clone();
        self.parent = StandIn::begin(laws.options.clone(), NoDisk, laws, Rules::default())
            .tampered_with(self.tampers.parent.clone());
        self.load(moment);
    }

    // === Other senders ===

    /// The registry's answer to the parent, or no answer.
    pub(in super::super::super) fn registry_answers(
        &mut self,
        moment: Moment,
        call: u64,
        answer: Result<(), AskError>,
    ) {
        self.parent.returned(moment, call, Ok(InstancesOutcome::Sent(answer)));
        self.carry_parent(moment);
    }

    /// The connection of this instance ends.
    pub(in super::super) fn hang_up(&mut self, moment: Moment, life: Attempt) {
        if let Some(child) = self.children.get_mut(&life) {
            child.actor.ask(
                moment,
                NO_ASKER,
                InstanceAsk::ConnectionEnded(ConnectionEnded { connection: CONNECTION, cut_off: None }),
            );
        }
        self.carry_child(moment, life);
        self.carry_parent(moment);
    }
}
