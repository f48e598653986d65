//! The supervisor of the instances with its children, and all messages in flight between them.
//!
//! The model carries out the effects of each of them, and the world decides when they arrive.

mod carrying;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use callboard_actors::instance::{
    ConnectionEnded, Instance, InstanceAnswer, InstanceAsk, InstanceCall, InstanceConfig, InstanceReport,
    LookNow, Retire,
};
use callboard_actors::instances::{
    ChildEnded, InstanceReported, Instances, InstancesAsk, InstancesCall, InstancesOptions, InstancesOutcome,
    RegistryItem,
};
use callboard_actors::inventory::InstancesItem;
use callboard_actors::registry::RegistryAsk;
use callboard_actors::shell::{AskError, Ending, FeedItem, Machine, Never, StopMode, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, Attempt, Moment, PluginKey, Timestamp};

use super::super::law_checker::Violation;
use super::super::observed::Observed;
use super::super::stand_in::{Count, Disk, Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::child::InstanceLaws;
use super::parent::InstancesLaws;
use super::plugins::{Behaviour, CONNECTION, answer_of};

/// For machines that write nothing.
#[derive(Debug, Clone, Copy, Hash, Default)]
pub struct NoDisk;

impl<M: Machine<Change = Never>> Disk<M> for NoDisk {
    fn write(&mut self, _: Ticket, change: Never) -> Written {
        match change {}
    }
}

type Parent = StandIn<Instances, NoDisk, InstancesLaws>;

/// A registration: the plugin, and the allocation that serves it.
pub(in super::super) type Place = (PluginKey, AllocationId);

/// One instance, with its reports that its parent has not received yet.
#[derive(Debug, Clone, Hash)]
pub(super) struct Child {
    pub(super) actor: StandIn<Instance, NoDisk, InstanceLaws>,
    place: Place,
    reports: VecDeque<InstanceReport>,
    /// The look that its parent waits for.
    look: Option<u64>,
}

/// The sender of a message in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InFlight {
    /// The registry's notifications for the parent.
    Feed,
    /// The next report of this life.
    Report(Attempt),
    /// Endings of instances.
    Endings,
}

/// A message was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in super::super) enum SetOut {
    Feed,
    Report(Place),
    Endings,
}

/// The faults that are put into the machines of a model.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Tampers {
    pub(super) parent: Option<Rc<dyn Tamper<Instances>>>,
    pub(super) child: Option<Rc<dyn Tamper<Instance>>>,
}

/// The asker of messages that need no answer.
const NO_ASKER: u64 = 0;
/// A look that the parent requests asks a child under the number of its call plus this.
const LOOKS: u64 = 1 << 32;
/// The asker of a retirement.
const RETIREMENT: u64 = 1;

/// The parent, the children and the messages between them.
#[derive(Debug, Clone, Hash)]
pub struct InstancesModel {
    pub(super) parent: Parent,
    pub(super) children: BTreeMap<Attempt, Child>,
    tampers: Tampers,
    inbox: VecDeque<RegistryItem>,
    follow: Option<u64>,
    await_endings: Option<u64>,
    endings: VecDeque<ChildEnded>,
    /// Reports of children that have ended; they still arrive.
    late: BTreeMap<Attempt, VecDeque<InstanceReport>>,
    /// The latest life of each registration's instance.
    latest: BTreeMap<Place, Attempt>,
    /// The messages of the parent to the registry, with the numbers of its calls; the world takes them.
    pub(in super::super) to_registry: Vec<(u64, RegistryAsk)>,
    /// The lives in which something has changed since the world last looked.
    pub(in super::super) changed: Vec<Attempt>,
    /// The messages sent since the world last looked.
    pub(in super::super) set_out: Vec<SetOut>,
    /// The notifications of the parent for its subscribers.
    pub(in super::super) told: Vec<InstancesItem>,
    /// The callers that the parent answered, with the answers.
    pub(in super::super) answered: Vec<(u64, Option<Rc<callboard_actors::instances::InstancesAnswer>>)>,
    pub(in super::super) has_ended: bool,
    steps_before: Count,
    afresh: bool,
    /// The journal entries of the parent and the children, if a trace is made.
    pub(in super::super) noted: Option<Vec<Observed>>,
}

impl InstancesModel {
    /// A model whose parent has just been started.
    #[must_use]
    pub fn new(options: InstancesOptions) -> Self {
        Self::tampered(options, Tampers::default())
    }

    pub(super) fn tampered(options: InstancesOptions, tampers: Tampers) -> Self {
        let laws = InstancesLaws::new(options.clone());
        let parent =
            StandIn::begin(options, NoDisk, laws, Rules::default()).tampered_with(tampers.parent.clone());
        Self {
            parent,
            children: BTreeMap::new(),
            tampers,
            inbox: VecDeque::new(),
            follow: None,
            await_endings: None,
            endings: VecDeque::new(),
            late: BTreeMap::new(),
            latest: BTreeMap::new(),
            to_registry: Vec::new(),
            changed: Vec::new(),
            set_out: Vec::new(),
            told: Vec::new(),
            answered: Vec::new(),
            has_ended: false,
            steps_before: Count::default(),
            afresh: false,
            noted: None,
        }
    }

    /// The first law that was broken by any actor of the model.
    #[must_use]
    pub const fn broken(&self) -> Option<&Violation> {
        self.parent.checker.verdict.broken()
    }

    /// The number of steps taken in the model.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps_before.0 + self.parent.steps()
    }

    /// How many instances live.
    #[must_use]
    pub fn children_count(&self) -> usize {
        self.children.len()
    }

    /// A subscriber follows the parent from a new snapshot.
    pub fn subscribe(&mut self, moment: Moment) {
        self.parent.subscribe();
        self.carry_parent(moment);
    }

    /// Builds the machine of the parent, if it waits for that.
    pub fn load(&mut self, moment: Moment) {
        if self.parent.is_loading() {
            self.parent.loaded(moment, ());
            self.carry_parent(moment);
        }
    }

    // === Messages from outside ===

    /// The registry sends a notification to the parent.
    pub fn registry_says(&mut self, item: RegistryItem) {
        self.inbox.push_back(item);
        self.set_out.push(SetOut::Feed);
    }

    /// Whether the parent requests a new snapshot. Reset by the call.
    pub fn wants_snapshot(&mut self) -> bool {
        std::mem::take(&mut self.afresh)
    }

    /// Drops the registry's notifications in flight, since a snapshot replaces them.
    pub fn forget_inbox(&mut self) {
        self.inbox.clear();
    }

    /// A message reaches the parent.
    pub fn ask(&mut self, moment: Moment, asker: u64, ask: InstancesAsk) {
        self.parent.ask(moment, asker, ask);
        self.carry_parent(moment);
    }

    /// The parent is requested to stop.
    pub fn request_stop(&mut self, moment: Moment) {
        self.parent.request_stop(moment, StopMode::Stop);
        self.carry_parent(moment);
    }

    /// A step of the parent crashes.
    pub fn crash_parent(&mut self) {
        self.parent.crash_next_step();
    }

    /// A step of this child crashes.
    pub fn crash_child(&mut self, life: Attempt) {
        if let Some(child) = self.children.get_mut(&life) {
            child.actor.crash_next_step();
        }
    }

    /// A child crashes for no reason of its own.
    pub fn fell(&mut self, moment: Moment, life: Attempt) {
        self.end_child(life, Ending::Killed);
        self.carry_parent(moment);
    }

    // === Messages in flight ===

    /// All messages that could arrive now.
    pub fn in_flight(&self) -> Vec<InFlight> {
        let mut in_flight = Vec::new();
        if self.follow.is_some() && !self.inbox.is_empty() {
            in_flight.push(InFlight::Feed);
        }
        let living =
            self.children.iter().filter(|(_, child)| !child.reports.is_empty()).map(|(life, _)| *life);
        let late = self.late.iter().filter(|(_, reports)| !reports.is_empty()).map(|(life, _)| *life);
        in_flight.extend(living.chain(late).map(InFlight::Report));
        if self.await_endings.is_some() && !self.endings.is_empty() {
            in_flight.push(InFlight::Endings);
        }
        in_flight
    }

    /// A message arrives. False if it was not in flight, or the parent does not wait for it yet.
    pub fn deliver(&mut self, moment: Moment, in_flight: InFlight) -> bool {
        let has_arrived = match in_flight {
            InFlight::Feed => self.deliver_feed(moment),
            InFlight::Report(life) => self.deliver_report(moment, life),
            InFlight::Endings => self.deliver_endings(moment),
        };
        self.carry_parent(moment);
        has_arrived
    }

    fn deliver_feed(&mut self, moment: Moment) -> bool {
        let Some(call) = self.follow.take_if(|_| !self.inbox.is_empty()) else { return false };
        let items = self.inbox.drain(..).collect();
        self.parent.returned(moment, call, Ok(InstancesOutcome::Followed(Ok(items))));
        true
    }

    fn deliver_report(&mut self, moment: Moment, life: Attempt) -> bool {
        let living = self.children.get_mut(&life).and_then(|child| child.reports.pop_front());
        let report = living.or_else(|| self.late.get_mut(&life)?.pop_front());
        self.late.retain(|_, reports| !reports.is_empty());
        let Some(report) = report else { return false };
        self.parent.ask(moment, NO_ASKER, InstancesAsk::InstanceReported(InstanceReported { life, report }));
        true
    }

    fn deliver_endings(&mut self, moment: Moment) -> bool {
        let Some(call) = self.await_endings.take_if(|_| !self.endings.is_empty()) else { return false };
        let endings = self.endings.drain(..).collect();
        self.parent.returned(moment, call, Ok(InstancesOutcome::Ended(endings)));
        true
    }

    /// The oldest report of any of a registration's instances arrives. False if there is none.
    pub fn deliver_report_of(&mut self, moment: Moment, place: &Place) -> bool {
        let is_of = |reports: &VecDeque<InstanceReport>| {
            reports.front().is_some_and(|report| report.plugin == place.0 && report.allocation == place.1)
        };
        let late = self.late.iter().find(|(_, reports)| is_of(reports)).map(|(life, _)| *life);
        let latest = self.latest.get(place).copied();
        let has_said = |life: &Attempt| self.children.get(life).is_some_and(|child| is_of(&child.reports));
        let Some(life) = late.or(latest.filter(has_said)) else { return false };
        self.deliver(moment, InFlight::Report(life));
        true
    }

    /// The calls to plugins in flight: the life, the number and the call.
    pub fn plugin_calls(&self) -> impl Iterator<Item = (Attempt, u64, InstanceCall)> + '_ {
        let calls = |(life, child): (&Attempt, &'_ Child)| {
            let life = *life;
            child.actor.calls().map(|(number, call)| (life, number, *call)).collect::<Vec<_>>()
        };
        self.children.iter().flat_map(calls)
    }

    /// A plugin answers a call in this way.
    pub fn plugin_answers(&mut self, moment: Moment, life: Attempt, call: u64, behaviour: Behaviour) {
        let Some(child) = self.children.get_mut(&life) else { return };
        let Some((_, what)) = child.actor.calls().find(|(number, _)| *number == call) else { return };
        let outcome = answer_of(child.actor.checker.config(), *what, behaviour);
        child.actor.returned(moment, call, outcome);
        self.carry_child(moment, life);
        self.carry_parent(moment);
    }

    /// The latest instance of a registration, while it lives.
    pub fn life_of(&self, place: &Place) -> Option<Attempt> {
        self.latest.get(place).copied().filter(|life| self.children.contains_key(life))
    }

    /// The call that this instance has in flight.
    pub fn call_of(&self, life: Attempt) -> Option<(u64, InstanceCall)> {
        let (number, call) = self.children.get(&life)?.actor.calls().next()?;
        Some((number, *call))
    }

    /// The time at which something is due in this instance.
    pub fn timer_of(&self, life: Attempt) -> Option<Timestamp> {
        self.children.get(&life)?.actor.next_timer()
    }

    /// The registration that this is an instance of.
    pub fn place_of(&self, life: Attempt) -> Option<&Place> {
        Some(&self.children.get(&life)?.place)
    }

    /// The registrations with an instance, or with reports that have not arrived.
    pub fn places(&self) -> BTreeSet<Place> {
        let late = self.late.values().flatten();
        let late = late.map(|report| (report.plugin.clone(), report.allocation.clone()));
        self.children.values().map(|child| child.place.clone()).chain(late).collect()
    }

    /// The registrations whose instance has a call in flight, or a timer due by then.
    pub fn busy_at(&self, at: Timestamp) -> Vec<Place> {
        let is_due = |child: &Child| child.actor.next_timer().is_some_and(|due| due <= at);
        let is_busy = |child: &&Child| is_due(child) || child.actor.calls().next().is_some();
        self.children.values().filter(is_busy).map(|child| child.place.clone()).collect()
    }

    // === Time ===

    /// The time at which something is due next.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let children = self.children.values().filter_map(|child| child.actor.next_timer());
        children.chain(self.parent.next_timer()).min()
    }

    /// Runs all timers that are due by now.
    pub fn timers_due(&mut self, moment: Moment) {
        self.parent.timers_due(moment);
        let lives: Vec<Attempt> = self.children.keys().copied().collect();
        for life in lives {
            self.child_timers_due(moment, life);
        }
        self.carry_parent(moment);
    }

    /// The time at which something is due for the parent.
    pub fn parent_timer(&self) -> Option<Timestamp> {
        self.parent.next_timer()
    }

    /// Runs all timers of the parent that are due by now.
    pub fn parent_timers_due(&mut self, moment: Moment) {
        self.parent.timers_due(moment);
        self.carry_parent(moment);
    }

    /// Runs all timers of this instance that are due by now.
    pub fn child_timers_due(&mut self, moment: Moment, life: Attempt) {
        if let Some(child) = self.children.get_mut(&life) {
            child.actor.timers_due(moment);
        }
        self.carry_child(moment, life);
        self.carry_parent(moment);
    }
}
