//! A registry, its disk and a few allocations, small enough to try every order of events.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::registry::{
    CheckOutcome, Deregister, Entry, LeaveCause, Register, Registry, RegistryAsk, RegistryOptions, Renew,
    ReportFitness, Standing,
};
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::{
    Fitness, Generation, Moment, PluginKey, PluginName, PluginType, Timestamp,
};

use super::super::law::Law;
use super::super::law_checker::{NO_CALLER_WAITS, Verdict, Violation, found, violation};
use super::super::search::{Play, World};
use super::super::stand_in::{Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::writes::Outcome;
use super::disk::RegistryDisk;
use super::event::{IDLE, RegistryBounds, RegistryEvent, allocation, policy, registering};
use super::laws::RegistryLaws;
use super::questions;

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct RegistryWorld {
    pub(super) registry: StandIn<Registry, RegistryDisk, RegistryLaws>,
    options: RegistryOptions,
    tamper: Option<Rc<dyn Tamper<Registry>>>,
    now: Timestamp,
    left: RegistryBounds,
    orders: Vec<u8>,
    askers: u64,
    pub(super) unanswered: BTreeSet<u64>,
    /// The callers among them that wait for a promise.
    pub(super) promises: BTreeSet<u64>,
    /// The callers among them that wait for an answer to a question.
    pub(super) questions: BTreeSet<u64>,
    /// Whether it was requested to stop.
    pub(super) is_stopped: bool,
    pub(super) verdict: Verdict,
}

const GRACE: Duration = Duration::from_secs(6);

impl RegistryWorld {
    /// A world with these bounds, with a fault in the machine if one is given.
    #[must_use]
    pub fn new(bounds: RegistryBounds, tamper: Option<Rc<dyn Tamper<Registry>>>) -> Self {
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let options = RegistryOptions {
            restore_grace: GRACE,
            registrations_max: 3,
            waiting_max: 2,
            checks_max: 2,
            check_deadline: Duration::from_secs(1),
            ..RegistryOptions::default()
        };
        let disk = RegistryDisk::new(now);
        let laws = RegistryLaws::new(options.clone(), true);
        let registry = StandIn::begin(options.clone(), disk, laws, Rules::default());
        let mut world = Self {
            registry: registry.tampered_with(tamper.clone()),
            options,
            tamper,
            now,
            left: bounds,
            orders: vec![bounds.orders_each; usize::from(bounds.allocations)],
            askers: 0,
            unanswered: BTreeSet::new(),
            promises: BTreeSet::new(),
            questions: BTreeSet::new(),
            is_stopped: false,
            verdict: Verdict::NONE,
        };
        world.load();
        world
    }

    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: 500_000 }
    }

    fn plugins(&self, who: u8) -> Vec<PluginKey> {
        let name = || PluginName::new("zfs").expect("it is a name");
        let node = PluginKey::new(PluginType::CsiNode, name());
        if who == 0 && self.left.has_monolith {
            return vec![PluginKey::new(PluginType::CsiController, name()), node];
        }
        vec![node]
    }

    /// The node plugin of an allocation, with its generation.
    fn node_of(&self, who: u8) -> Option<(PluginKey, Generation)> {
        let plugin = self.plugins(u8::MAX).remove(0);
        let entries = self.registry.machine()?.view().entries;
        let is_it = |entry: &&Entry| {
            entry.registration.plugin == plugin && entry.registration.allocation == allocation(who)
        };
        let generation = entries.iter().find(is_it)?.generation;
        Some((plugin, generation))
    }

    fn say(&mut self, ask: RegistryAsk) {
        self.askers += 1;
        self.unanswered.insert(self.askers);
        match ask {
            RegistryAsk::Register(_) => self.promises.insert(self.askers),
            ref ask if questions::is_prompt(ask) => self.questions.insert(self.askers),
            _ => false,
        };
        self.registry.ask(self.moment(), self.askers, ask);
    }

    fn load(&mut self) {
        let now = self.now;
        let store = &mut self.registry.store;
        let image = store.read(now);
        let (rows, run, begun) = (store.rows_with_waiting(), store.run(), store.begun());
        self.registry.checker.expect(rows, run, begun);
        self.registry.loaded(self.moment(), image);
    }

    fn kill_host(&mut self, reached: u8) {
        let mut disk = self.registry.store.clone();
        let mut laws = self.registry.checker.clone();
        disk.begin_run(usize::from(reached), self.now);
        laws.forget_listeners();
        let registry = StandIn::begin(self.options.clone(), disk, laws, Rules::default());
        self.registry = registry.tampered_with(self.tamper.clone());
        self.unanswered.clear();
        self.is_stopped = false;
    }

    fn pass(&mut self) {
        let next = self.registry.pauses_until().or_else(|| self.registry.next_timer());
        self.now = next.unwrap_or(self.now).max(self.now);
        if self.registry.pauses_until().is_some() {
            self.registry.wake();
        } else {
            self.registry.timers_due(self.moment());
        }
    }

    /// Takes in the effects that have left, and checks them.
    fn hear(&mut self) {
        let mut left = Vec::new();
        self.registry.take_left(&mut left);
        for left in left {
            self.look_at_refusal(&left);
            match left {
                Left::Answer(Some(asker), _) | Left::Refused(asker, _) => {
                    if !self.unanswered.remove(&asker) {
                        self.verdict
                            .violation(Law::Shell7, || format!("question {asker} was answered twice"));
                    }
                }
                Left::Ended(_) => self.unanswered.clear(),
                Left::Snapshot(..) => self.registry.store.was_told(),
                Left::Answer(None, _) => self.verdict.violation(Law::Shell7, || NO_CALLER_WAITS.to_owned()),
                Left::News(..) | Left::Call { .. } => {}
            }
        }
        self.look_at_the_sick_disk();
        let has_ended = self.registry.has_ended();
        let is_rebuilt = self.registry.is_loading() || self.registry.pauses_until().is_some();
        let StandIn { store, checker, .. } = &mut self.registry;
        // Writes handed over before the end are on disk afterwards, and no actor is there to report them.
        if !store.is_ahead() && !has_ended {
            let rows = store.rows();
            checker.compare_told(rows, store.waiting() > 0 || is_rebuilt);
        }
        self.verdict.heard_of(self.registry.checker.verdict.broken());
    }

    fn orders(&self, events: &mut Vec<RegistryEvent>) {
        for (who, left) in (0_u8..).zip(&self.orders) {
            if *left > 0 {
                events.extend(self.left.kinds().map(|kind| RegistryEvent::Register(who, kind)));
                events.push(RegistryEvent::Deregister(who));
                events.extend((self.left.reports > 0).then_some(RegistryEvent::Fail(who)));
            }
        }
        for who in (0..self.left.allocations).filter(|who| self.node_of(*who).is_some()) {
            if self.left.reports > 0 {
                events.extend([true, false].map(|is_fit| RegistryEvent::Report(who, is_fit)));
            }
            events.extend((self.left.renewals > 0).then_some(RegistryEvent::Renew(who)));
        }
        events.extend((self.left.waits > 0).then_some(RegistryEvent::Wait));
        events.extend((self.left.questions > 0).then_some(RegistryEvent::Ask));
    }

    fn faults(&self, events: &mut Vec<RegistryEvent>) {
        let waiting = u8::try_from(self.registry.store.waiting()).unwrap_or(u8::MAX);
        if waiting > 0 {
            events.push(RegistryEvent::Settle(1, Outcome::Written));
        }
        if waiting > 1 {
            events.push(RegistryEvent::Settle(waiting, Outcome::Written));
        }
        if self.left.failures > 0 {
            if waiting > 0 {
                let failed = [Outcome::Failed, Outcome::FailedButWritten];
                events.extend(failed.map(|outcome| RegistryEvent::Settle(1, outcome)));
            }
            events.push(RegistryEvent::RefuseNext);
        }
        if self.registry.is_sick() {
            events.push(RegistryEvent::Disk(false));
        } else if self.left.sicknesses > 0 {
            events.push(RegistryEvent::Disk(true));
        }
        if self.left.crashes > 0 && !self.registry.crashes_next() {
            events.push(RegistryEvent::Crash);
        }
        if self.left.restarts > 0 {
            events.extend((0..=waiting).map(RegistryEvent::KillHost));
        }
    }
}

impl World for RegistryWorld {
    fn events(&self) -> Vec<RegistryEvent> {
        let mut events = Vec::new();
        if !self.registry.has_ended() {
            self.orders(&mut events);
            if self.left.stops {
                events.push(RegistryEvent::Stop);
            }
            // Nothing can be read while a write is in flight, unless that is held for a sick disk.
            if self.registry.is_loading() && (self.registry.store.waiting() == 0 || self.registry.is_sick()) {
                events.push(RegistryEvent::Load);
            }
            if self.left.pauses > 0 && self.registry.next_timer().is_some()
                || self.registry.pauses_until().is_some()
            {
                events.push(RegistryEvent::Pass);
            }
            let is_due = |due| due <= self.now + IDLE;
            if self.left.idles > 0 && !self.registry.next_timer().is_some_and(is_due) {
                events.push(RegistryEvent::Idle);
            }
            for (number, _) in self.registry.calls() {
                events.extend([true, false].map(|is_proven| RegistryEvent::Checked(number, is_proven)));
            }
        }
        self.faults(&mut events);
        events
    }
}

impl Play for RegistryWorld {
    type Event = RegistryEvent;

    fn can(&self, event: &RegistryEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &RegistryEvent) -> Result<(), Violation> {
        match *event {
            RegistryEvent::Register(who, kind) => {
                self.orders[usize::from(who)] -= 1;
                let message = registering(who, kind, self.plugins(who), self.left.are_provable);
                let policy = policy(who).filter(|_| self.left.has_policies && kind > 0);
                self.say(RegistryAsk::Register(Register { policy, ..message }));
            }
            RegistryEvent::Deregister(who) => {
                self.orders[usize::from(who)] -= 1;
                let (plugins, cause) = (self.plugins(who), LeaveCause::Stopped);
                let message = Deregister { plugins, allocation: allocation(who), cause };
                self.say(RegistryAsk::Deregister(message));
            }
            RegistryEvent::Fail(who) => {
                self.orders[usize::from(who)] -= 1;
                let (plugins, cause) = (self.plugins(who), LeaveCause::Failed);
                let message = Deregister { plugins, allocation: allocation(who), cause };
                self.say(RegistryAsk::Deregister(message));
            }
            RegistryEvent::Report(who, is_fit) => {
                self.left.reports -= 1;
                if let Some((plugin, generation)) = self.node_of(who) {
                    let fitness =
                        if is_fit { Fitness::Fit } else { Fitness::Unfit { reason: "it hangs".into() } };
                    let allocation = allocation(who);
                    self.say(RegistryAsk::ReportFitness(ReportFitness {
                        plugin,
                        allocation,
                        generation,
                        fitness,
                    }));
                }
            }
            RegistryEvent::Renew(who) => {
                self.left.renewals -= 1;
                if let Some((plugin, generation)) = self.node_of(who) {
                    let allocation = allocation(who);
                    self.say(RegistryAsk::Renew(Renew { plugin, allocation, generation }));
                }
            }
            RegistryEvent::Wait => {
                self.left.waits -= 1;
                self.say(questions::wait(self.plugins(u8::MAX).remove(0)));
            }
            RegistryEvent::Ask => {
                self.left.questions -= 1;
                let questions = questions::prompt(self.plugins(u8::MAX).remove(0), allocation(0));
                questions.into_iter().for_each(|question| self.say(question));
            }
            RegistryEvent::Settle(count, outcome) => {
                self.left.failures -= u8::from(outcome != Outcome::Written);
                if let Some(settled) = self.registry.store.settle(usize::from(count), outcome) {
                    self.registry.settled(self.moment(), settled);
                }
            }
            RegistryEvent::RefuseNext => {
                self.left.failures -= 1;
                self.registry.store.refuse_next();
            }
            RegistryEvent::Disk(is_sick) => {
                self.left.sicknesses -= u8::from(is_sick);
                self.registry.disk(self.moment(), is_sick);
            }
            RegistryEvent::Crash => {
                self.left.crashes -= 1;
                self.registry.crash_next_step();
            }
            RegistryEvent::Load => self.load(),
            RegistryEvent::Checked(number, is_proven) => {
                let outcome = if is_proven {
                    CheckOutcome::Proven
                } else {
                    CheckOutcome::NotProven("no listener".into())
                };
                self.registry.returned(self.moment(), number, Ok(outcome));
            }
            RegistryEvent::Pass => {
                self.left.pauses = self.left.pauses.saturating_sub(1);
                self.pass();
            }
            RegistryEvent::Idle => {
                self.left.idles -= 1;
                self.now = self.now + IDLE;
            }
            RegistryEvent::KillHost(reached) => {
                self.left.restarts -= 1;
                self.kill_host(reached);
            }
            RegistryEvent::Stop => {
                self.left.stops = false;
                self.is_stopped = true;
                self.registry.request_stop(self.moment(), StopMode::Stop);
            }
        }
        self.hear();
        found(self.verdict.broken())
    }

    /// Only events that happen by themselves remain; then every caller has an answer.
    fn settle(&mut self) -> Result<(), Violation> {
        for _ in 0..64 {
            let next = if self.registry.is_sick() {
                RegistryEvent::Disk(false)
            } else if self.registry.store.waiting() > 0 {
                RegistryEvent::Settle(u8::MAX, Outcome::Written)
            } else if self.registry.is_loading() {
                RegistryEvent::Load
            } else if self.registry.pauses_until().is_some() || self.registry.next_timer().is_some() {
                RegistryEvent::Pass
            } else {
                break;
            };
            self.take(&next)?;
        }
        if !self.unanswered.is_empty() {
            return violation(Law::Shell7, format!("questions {:?} were never answered", self.unanswered));
        }
        let entries = self.registry.machine().map(|machine| machine.view().entries).unwrap_or_default();
        match entries.iter().find(|entry| entry.standing == Standing::Provisional) {
            Some(entry) => violation(
                Law::R8,
                format!("the grace is over, and {} is kept", entry.registration.allocation),
            ),
            None => Ok(()),
        }
    }
}
