//! One plugin, its registrations, its instance and the instance's supervisor: small enough to try every order of events.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::instance::Instance;
use callboard_actors::instances::{
    AwaitHealthy, AwaitRetired, CheckNow, Dispense, InstanceReport, Instances, InstancesAnswer,
    InstancesOptions,
};
use callboard_actors::registry::RegistryNews;
use callboard_actors::shell::{FeedItem, Message};
use callboard_actors::vocabulary::{Health, Moment, PluginKey, PluginName, PluginType, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{Violation, found, violation};
use super::super::search::{Play, World};
use super::super::tamper::Tamper;
use super::event::{InstancesBounds, InstancesEvent};
use super::model::{InstancesModel, Tampers};
use super::plugins::Behaviour;
use super::registry::SmallRegistry;

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct InstancesWorld {
    model: InstancesModel,
    now: Timestamp,
    left: InstancesBounds,
    registry: SmallRegistry,
    published: u64,
    lives: u64,
    askers: u64,
    unanswered: BTreeSet<u64>,
    is_stopping: bool,
}

impl InstancesWorld {
    /// A world with these bounds, with faults in the machines if any are given.
    #[must_use]
    pub fn new(
        bounds: InstancesBounds,
        parent: Option<Rc<dyn Tamper<Instances>>>,
        child: Option<Rc<dyn Tamper<Instance>>>,
    ) -> Self {
        let model = InstancesModel::tampered(InstancesOptions::default(), Tampers { parent, child });
        let mut world = Self {
            model,
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
            registry: SmallRegistry::default(),
            published: 0,
            lives: 1,
            askers: 100,
            unanswered: BTreeSet::new(),
            is_stopping: false,
        };
        world.model.load(world.moment());
        world.give_snapshot();
        world
    }

    /// The numbers of the supervisor's lives start at random.
    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: self.lives << 36 | 500_000 }
    }

    fn give_snapshot(&mut self) {
        if self.model.wants_snapshot() {
            self.model.forget_inbox();
            let view = self.registry.view(self.now);
            self.model.registry_says(FeedItem::Snapshot { number: self.published, view });
        }
    }

    fn publish(&mut self, news: Vec<RegistryNews>) {
        for news in news {
            self.published += 1;
            self.model.registry_says(FeedItem::Change { number: self.published, news });
        }
    }

    /// The registry receives the messages of the supervisor.
    fn tell_registry(&mut self) {
        for (call, ask) in std::mem::take(&mut self.model.to_registry) {
            let news = self.registry.take(&ask, self.now);
            self.publish(news);
            self.model.registry_answers(self.moment(), call, Ok(()));
        }
    }

    fn ask<Q: Message<Instances>>(&mut self, message: Q) {
        self.askers += 1;
        self.unanswered.insert(self.askers);
        self.model.ask(self.moment(), self.askers, message.into_ask());
    }

    fn pass(&mut self) {
        self.now = self.model.next_timer().unwrap_or(self.now).max(self.now);
        self.model.timers_due(self.moment());
    }

    fn hear(&mut self) -> Result<(), Violation> {
        while !self.model.to_registry.is_empty() {
            self.tell_registry();
        }
        self.give_snapshot();
        self.model.told.clear();
        self.model.changed.clear();
        self.model.set_out.clear();
        for (asker, answer) in std::mem::take(&mut self.model.answered) {
            if asker > 100 && !self.unanswered.remove(&asker) {
                return violation(Law::Shell7, format!("question {asker} was answered twice"));
            }
            let _: Option<Rc<InstancesAnswer>> = answer;
        }
        if self.model.has_ended {
            self.unanswered.clear();
        }
        found(self.model.broken())
    }

    /// Checks the final state of every plugin once faults have stopped.
    fn check_end(&self) -> Result<(), Violation> {
        if !self.unanswered.is_empty() {
            return violation(Law::Shell7, format!("questions {:?} were never answered", self.unanswered));
        }
        if self.is_stopping {
            return match (self.model.has_ended, self.model.children.len()) {
                (true, 0) => Ok(()),
                (has_ended, left) => {
                    violation(Law::S4, format!("told to stop: ended {has_ended}, {left} instances left"))
                }
            };
        }
        let lives = self.model.children.len();
        let Some(machine) = self.model.parent.machine() else {
            return violation(Law::Shell4, "the supervisor of the instances does not live");
        };
        let view = callboard_actors::shell::Machine::view(machine);
        let all: Vec<_> = view.reports.iter().chain(&view.standby).collect();
        let serves = |report: &&InstanceReport| {
            report.health == Health::Healthy && self.registry.has(&report.allocation, report.generation)
        };
        let active = view.reports.first().map(|report| (&report.allocation, report.generation));
        let is_so = lives == self.registry.count()
            && all.len() == lives
            && all.iter().all(serves)
            && active == self.registry.active().as_ref().map(|(of, generation)| (of, *generation));
        if !is_so {
            let registry = &self.registry;
            let what =
                format!("when all was calm, {registry:?} was known and {all:?} of {lives} instances shown");
            return violation(Law::I4, what);
        }
        match self.registry.not_told_fit() {
            Some(who) => {
                violation(Law::R1b, format!("when all was calm, {who} was healthy, and not told fit"))
            }
            None => Ok(()),
        }
    }
}

impl World for InstancesWorld {
    fn events(&self) -> Vec<InstancesEvent> {
        if self.model.has_ended {
            return Vec::new();
        }
        let mut events: Vec<InstancesEvent> =
            self.model.in_flight().into_iter().map(InstancesEvent::Deliver).collect();
        if self.left.routes > 0 {
            events.push(InstancesEvent::Route(true));
            events.extend(self.registry.active().map(|_| InstancesEvent::Route(false)));
        }
        if self.left.standbys > 0 && self.registry.active().is_some() {
            events.extend((self.left.joins != Some(0)).then_some(InstancesEvent::Join));
            events.extend(self.registry.next().map(|_| InstancesEvent::TakeOver));
        }
        if self.left.hangups > 0 {
            events.extend(self.model.children.keys().map(|life| InstancesEvent::HangUp(*life)));
        }
        for (life, number, _) in self.model.plugin_calls() {
            events.push(InstancesEvent::Answer(life, number, Behaviour::Well));
            if self.left.faults > 0 {
                let faulty = self.left.behaviours.iter();
                events.extend(faulty.map(|behaviour| InstancesEvent::Answer(life, number, *behaviour)));
            }
        }
        if self.left.asks > 0 {
            events.extend([InstancesEvent::Dispense, InstancesEvent::Check, InstancesEvent::AwaitRetired]);
        }
        if self.left.gates > 0 {
            events.push(InstancesEvent::AwaitHealthy);
        }
        if self.left.pauses > 0 && self.model.next_timer().is_some() {
            events.push(InstancesEvent::Pass);
        }
        if self.left.crashes > 0 && !self.model.parent.crashes_next() {
            events.push(InstancesEvent::CrashParent);
            for life in self.model.children.keys() {
                events.extend([InstancesEvent::CrashChild(*life), InstancesEvent::Fall(*life)]);
            }
        }
        if self.left.successors > 0 && !self.is_stopping {
            events.push(InstancesEvent::Succeed);
        }
        if self.left.stops {
            events.push(InstancesEvent::Stop);
        }
        events
    }
}

impl Play for InstancesWorld {
    type Event = InstancesEvent;

    fn can(&self, event: &InstancesEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &InstancesEvent) -> Result<(), Violation> {
        match *event {
            InstancesEvent::Route(is_served) => {
                self.left.routes = self.left.routes.saturating_sub(1);
                let now = self.now;
                let news = if is_served { self.registry.replace(now) } else { self.registry.leave(now) };
                self.publish(news);
            }
            InstancesEvent::Join => {
                self.left.standbys -= 1;
                self.left.joins = self.left.joins.map(|joins| joins - 1);
                let news = self.registry.join(self.now);
                self.publish(news);
            }
            InstancesEvent::TakeOver => {
                self.left.standbys -= 1;
                let news = self.registry.take_over(self.now);
                self.publish(news);
            }
            InstancesEvent::HangUp(life) => {
                self.left.hangups -= 1;
                self.model.hang_up(self.moment(), life);
            }
            InstancesEvent::Deliver(in_flight) => {
                self.model.deliver(self.moment(), in_flight);
            }
            InstancesEvent::Answer(life, number, behaviour) => {
                self.left.faults -= u8::from(behaviour != Behaviour::Well);
                self.model.plugin_answers(self.moment(), life, number, behaviour);
            }
            InstancesEvent::Dispense => {
                self.left.asks -= 1;
                self.ask(Dispense { plugin: plugin(), within: Duration::from_secs(20) });
            }
            InstancesEvent::Check => {
                self.left.asks -= 1;
                self.ask(CheckNow { plugin: plugin() });
            }
            InstancesEvent::AwaitRetired => {
                self.left.asks -= 1;
                self.ask(AwaitRetired { allocation: self.registry.latest() });
            }
            InstancesEvent::AwaitHealthy => {
                self.left.gates -= 1;
                self.ask(AwaitHealthy {
                    allocation: self.registry.latest(),
                    plugins: vec![plugin()],
                    healthy_for: Duration::from_secs(5),
                    within: Duration::from_secs(20),
                });
            }
            InstancesEvent::Pass => {
                self.left.pauses = self.left.pauses.saturating_sub(1);
                self.pass();
            }
            InstancesEvent::CrashParent => {
                self.left.crashes -= 1;
                self.lives += 1;
                self.model.crash_parent();
            }
            InstancesEvent::Succeed => {
                self.left.successors -= 1;
                self.lives += 1;
                // Their callers receive the error that it does not run.
                self.unanswered.clear();
                self.model.succeed_parent(self.moment());
            }
            InstancesEvent::CrashChild(life) => {
                self.left.crashes -= 1;
                self.model.crash_child(life);
            }
            InstancesEvent::Fall(life) => {
                self.left.crashes -= 1;
                self.model.fell(self.moment(), life);
            }
            InstancesEvent::Stop => {
                self.left.stops = false;
                self.is_stopping = true;
                self.model.request_stop(self.moment());
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        while calm < 12 && !self.model.has_ended {
            let call = self.model.plugin_calls().next();
            if let Some(in_flight) = self.model.in_flight().into_iter().next() {
                self.take(&InstancesEvent::Deliver(in_flight))?;
            } else if let Some((life, number, _)) = call {
                self.take(&InstancesEvent::Answer(life, number, Behaviour::Well))?;
            } else if self.model.next_timer().is_some() {
                calm += 1;
                self.take(&InstancesEvent::Pass)?;
            } else {
                break;
            }
        }
        self.check_end()
    }
}

pub(super) fn plugin() -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").expect("it is a name"))
}
