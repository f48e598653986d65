//! One plugin, its registrations, its instance and the instance's supervisor: small enough to try every order.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::instance::Instance;
use callboard_actors::instances::{
    AwaitRetired, CheckNow, Dispense, Instances, InstancesAnswer, InstancesOptions,
};
use callboard_actors::registry::{Active, RegistryNews, RegistryView};
use callboard_actors::shell::{FeedItem, Message};
use callboard_actors::vocabulary::{
    AllocationId, Attempt, Generation, Health, Moment, PluginKey, PluginName, PluginType, Registration,
    SocketPath, Timestamp,
};

use super::super::law::Law;
use super::super::search::{Play, World};
use super::super::tamper::Tamper;
use super::super::witness::{Violation, found, violation};
use super::model::{InFlight, InstancesModel, Tampers};
use super::plugins::Behaviour;

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstancesBounds {
    /// How often the registry routes the plugin elsewhere or nowhere.
    pub routes: u8,
    /// How many calls the plugin meets in another way than well, in each of these ways.
    pub faults: u8,
    /// Which ways there are.
    pub behaviours: &'static [Behaviour],
    /// How often somebody wants the plugin, or a look at it, or to know when it is let go.
    pub asks: u8,
    /// How often time passes until something is due.
    pub pauses: u8,
    /// How many steps crash, or instances fall.
    pub crashes: u8,
    /// Whether all are told to stop at some instant.
    pub stops: bool,
}

impl InstancesBounds {
    /// Nothing happens.
    pub const NONE: Self =
        Self { routes: 0, faults: 0, behaviours: &[], asks: 0, pauses: 0, crashes: 0, stops: false };
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstancesEvent {
    /// The registry routes to a new generation, or to nobody.
    Route(bool),
    /// Something arrives.
    Deliver(InFlight),
    /// The plugin meets a call.
    Answer(Attempt, u64, Behaviour),
    /// Somebody wants the plugin.
    Dispense,
    /// Somebody wants a look at it.
    Check,
    /// Somebody wants to know when it is let go.
    AwaitRetired,
    /// Time passes until something is due.
    Pass,
    /// The next step of the supervisor crashes.
    CrashParent,
    /// The next step of an instance crashes.
    CrashChild(Attempt),
    /// An instance falls.
    Fall(Attempt),
    /// All are told to stop.
    Stop,
}

/// The world, with what may still happen.
#[derive(Debug, Clone, Hash)]
pub struct InstancesWorld {
    model: InstancesModel,
    now: Timestamp,
    left: InstancesBounds,
    routed: Option<Active>,
    generations: u64,
    published: u64,
    lives: u64,
    askers: u64,
    unanswered: BTreeSet<u64>,
    is_stopping: bool,
}

impl InstancesWorld {
    /// A world in which so much may happen, with faults in the machines if any are given.
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
            routed: None,
            generations: 0,
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

    /// Lives of the supervisor begin to count at random.
    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: self.lives << 36 | 500_000 }
    }

    fn give_snapshot(&mut self) {
        if self.model.wants_snapshot() {
            self.model.forget_inbox();
            let view = RegistryView { entries: Vec::new(), active: self.routed.iter().cloned().collect() };
            self.model.registry_says(FeedItem::Snapshot { number: self.published, view });
        }
    }

    fn route(&mut self, is_served: bool) {
        let from = self.routed.take();
        if is_served {
            self.generations += 1;
            self.routed = Some(active(self.generations, self.now));
        }
        self.published += 1;
        let news = RegistryNews::ActiveChanged { plugin: plugin(), from, to: self.routed.clone() };
        self.model.registry_says(FeedItem::Change { number: self.published, news });
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
        self.give_snapshot();
        self.model.told.clear();
        self.model.stirred.clear();
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

    /// What every plugin comes to when nothing goes wrong any more.
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
        let reports = view.reports;
        match (&self.routed, reports.as_slice()) {
            (None, []) if lives == 0 => Ok(()),
            (Some(active), [report])
                if report.generation == active.generation
                    && report.health == Health::Healthy
                    && lives == 1 =>
            {
                Ok(())
            }
            (active, reports) => violation(
                Law::I4,
                format!(
                    "when all was calm, {active:?} was active and shown were {reports:?} of {lives} instances"
                ),
            ),
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
            events.extend(self.routed.as_ref().map(|_| InstancesEvent::Route(false)));
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
        if self.left.pauses > 0 && self.model.next_timer().is_some() {
            events.push(InstancesEvent::Pass);
        }
        if self.left.crashes > 0 && !self.model.parent.is_fuse_lit() {
            events.push(InstancesEvent::CrashParent);
            for life in self.model.children.keys() {
                events.extend([InstancesEvent::CrashChild(*life), InstancesEvent::Fall(*life)]);
            }
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
                self.route(is_served);
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
                self.ask(AwaitRetired { allocation: allocation(self.generations) });
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

fn plugin() -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").expect("it is a name"))
}

fn allocation(generation: u64) -> AllocationId {
    AllocationId::new(format!("a{generation}")).expect("it is a name")
}

fn active(generation: u64, since: Timestamp) -> Active {
    let registration = Registration {
        plugin: plugin(),
        allocation: allocation(generation),
        socket: SocketPath::new(format!("/run/a{generation}.sock")).expect("it is short and absolute"),
        provider: Some("zfs.example".into()),
        version: None,
        options: Arc::default(),
    };
    Active { generation: Generation::new(generation), registration: Arc::new(registration), since }
}

/// As a line of a history.
impl fmt::Display for InstancesEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(true) => f.write_str("route next"),
            Self::Route(false) => f.write_str("route nobody"),
            Self::Deliver(InFlight::Feed) => f.write_str("deliver feed"),
            Self::Deliver(InFlight::Report(life)) => write!(f, "deliver report life={life}"),
            Self::Deliver(InFlight::Endings) => f.write_str("deliver endings"),
            Self::Answer(life, number, behaviour) => {
                write!(f, "answer life={life} call={number} {}", behaviour.as_str())
            }
            Self::Dispense => f.write_str("dispense csi-node/zfs 20"),
            Self::Check => f.write_str("check csi-node/zfs"),
            Self::AwaitRetired => f.write_str("await-retired"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::CrashParent => f.write_str("crash-next instances"),
            Self::CrashChild(life) => write!(f, "crash-next instance life={life}"),
            Self::Fall(life) => write!(f, "kill instance life={life}"),
            Self::Stop => f.write_str("stop"),
        }
    }
}
