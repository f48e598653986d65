//! The inventory, the notifications of the instances, the owner of the drivers and time: small enough to try every order of events.

use std::collections::VecDeque;

use callboard_actors::allocations::{AllocationsNews, AllocationsView};
use callboard_actors::instances::{InstanceReport, InstancesNews, InstancesView};
use callboard_actors::inventory::{
    AllocationsItem, AwaitFirst, InstancesItem, Inventory, InventoryAsk, InventoryCall, InventoryConfig,
    InventoryOptions, InventoryOutcome, Offer, Source, TakeInventory,
};
use callboard_actors::shell::{AskError, FeedItem, Machine, StopMode};
use callboard_actors::vocabulary::{Health, Timestamp};

use super::super::instances::NoDisk;
use super::super::law::Law;
use super::super::law_checker::{Verdict, Violation, violation};
use super::super::search::{Actor, Scene, SceneEvent as Event, Stage};
use super::super::stand_in::{Rules, StandIn};
use super::drivers::DriversModel;
use super::event::{AllocationWord, DriverWord, InventoryBounds, InventoryEvent, Word, allocation, plugin};
use super::laws::InventoryLaws;
use super::reports::{prepared, said};

/// The notifications of the instances, the owner of the drivers and the questions to them.
#[derive(Debug, Clone, Hash)]
pub struct InventoryScene {
    /// The present reports of the instances.
    reports: Vec<Option<InstanceReport>>,
    is_settled: bool,
    generations: u64,
    published: u64,
    inbox: VecDeque<InstancesItem>,
    follow: Option<u64>,
    /// The instances' report about `blue`, which stands by, and the allocations' reports about it; nothing without expectations.
    standby: Option<InstanceReport>,
    is_prepared: bool,
    expects: bool,
    allocations_inbox: VecDeque<AllocationsItem>,
    follow_allocations: Option<u64>,
    drivers: DriversModel,
    has_drivers: bool,
}

impl InventoryScene {
    // === The instances ===

    fn may_say(report: Option<&InstanceReport>, word: Word) -> bool {
        match (word, report.map(|report| &report.health)) {
            (Word::Starts, None | Some(Health::Gone)) => true,
            (Word::Serves, Some(Health::Starting | Health::Unhealthy { .. }))
            | (Word::Ails, Some(Health::Starting | Health::Healthy))
            | (Word::Retires, Some(Health::Starting | Health::Healthy | Health::Unhealthy { .. }))
            | (Word::Leaves, Some(Health::Gone)) => true,
            (Word::Starts | Word::Serves | Word::Ails | Word::Retires | Word::Leaves, _) => false,
        }
    }

    fn say(&mut self, plugin: usize, word: Word) {
        let report = &mut self.reports[plugin];
        let Some(said) = said(report, &mut self.generations, (plugin, "red"), word) else { return };
        if word == Word::Leaves {
            self.reports[plugin] = None;
            self.publish(InstancesNews::Left(said));
        } else {
            self.publish(InstancesNews::Reported(said));
        }
    }

    fn say_of_standby(&mut self, word: Word) {
        let Some(said) = said(&mut self.standby, &mut self.generations, (0, "blue"), word) else { return };
        // When it retires, its registration has left.
        if word == Word::Retires {
            self.standby = None;
        }
        self.publish(InstancesNews::Standby(said));
    }

    // === The allocations ===

    fn may_say_of_allocation(&self, word: AllocationWord) -> bool {
        match word {
            AllocationWord::Prepared | AllocationWord::Refused => !self.is_prepared,
            AllocationWord::Gone => self.is_prepared,
        }
    }

    fn say_of_allocation(&mut self, word: AllocationWord) {
        let allocation = allocation("blue");
        self.is_prepared = word == AllocationWord::Prepared;
        let news = match word {
            AllocationWord::Prepared => AllocationsNews::Changed(prepared("blue")),
            AllocationWord::Refused => AllocationsNews::Refused { allocation, reason: "too many".to_owned() },
            AllocationWord::Gone => AllocationsNews::Gone(allocation),
        };
        self.allocations_inbox.push_back(FeedItem::Change { number: 1, news });
    }

    fn publish(&mut self, news: InstancesNews) {
        self.published += 1;
        self.inbox.push_back(FeedItem::Change { number: self.published, news });
    }

    /// Whether the state of the plugin that was registered before is known.
    fn may_settle(&self) -> bool {
        let health = self.reports.first().and_then(Option::as_ref).map(|report| &report.health);
        !self.is_settled && health != Some(&Health::Starting)
    }

    fn snapshot(&self) -> InstancesItem {
        let expected = (!self.is_settled && matches!(self.reports.first(), Some(None))).then(|| plugin(0));
        let view = InstancesView {
            reports: self.reports.iter().flatten().cloned().collect(),
            standby: self.standby.iter().cloned().collect(),
            expected: expected.into_iter().collect(),
            settled: self.is_settled,
        };
        FeedItem::Snapshot { number: self.published, view }
    }

    fn has_allocations_news(&self) -> bool {
        self.follow_allocations.is_some() && !self.allocations_inbox.is_empty()
    }

    fn lag(&mut self) {
        self.inbox.clear();
        self.inbox.extend([FeedItem::Lagged { missed: 1 }, self.snapshot()]);
    }

    fn return_of_drivers(stage: &mut Stage<Self>, returned: Option<(u64, InventoryOutcome)>) {
        if let Some((call, outcome)) = returned {
            stage.returned(call, outcome);
        }
    }
}

impl Scene for InventoryScene {
    type Machine = Inventory;
    type Disk = NoDisk;
    type Laws = InventoryLaws;
    type Bounds = InventoryBounds;
    type Event = InventoryEvent;

    fn begin(bounds: &InventoryBounds, begun: Timestamp) -> (Self, Actor<Self>) {
        let expected = |names: &[&str]| names.iter().map(|name| (plugin(0), allocation(name))).collect();
        let options = InventoryOptions {
            expected: expected(if bounds.expects { &["red", "blue"] } else { &[] }),
            expected_until: begun + InventoryOptions::default().first_wait,
            ..InventoryOptions::default()
        };
        let laws = InventoryLaws::new(options.clone());
        let known = if bounds.knows_one { expected(&["red"]) } else { options.expected.clone() };
        let options = InventoryOptions { expected: known, ..options };
        let scene = Self {
            reports: vec![None; bounds.plugins],
            standby: None,
            is_prepared: false,
            expects: bounds.expects,
            allocations_inbox: VecDeque::new(),
            follow_allocations: None,
            is_settled: false,
            generations: 0,
            published: 0,
            inbox: VecDeque::new(),
            follow: None,
            drivers: DriversModel::default(),
            has_drivers: bounds.has_drivers,
        };
        let others = [(Source::Allocations, bounds.expects), (Source::Drivers, bounds.has_drivers)];
        let config = InventoryConfig::new(options, others);
        (scene, StandIn::begin(config, NoDisk, laws, Rules::default()))
    }

    fn stops(bounds: &InventoryBounds) -> &'static [StopMode] {
        bounds.stops
    }

    fn bound<'a>(left: &'a mut InventoryBounds, event: &Event<InventoryEvent>) -> Option<&'a mut u8> {
        match event {
            Event::Own(
                InventoryEvent::Say(..)
                | InventoryEvent::Standby(_)
                | InventoryEvent::Allocation(_)
                | InventoryEvent::SayOfDriver(_),
            ) => Some(&mut left.words),
            Event::Own(
                InventoryEvent::Lag
                | InventoryEvent::Lose
                | InventoryEvent::Drivers(false)
                | InventoryEvent::DeliverDrivers(false),
            ) => Some(&mut left.losses),
            Event::Own(InventoryEvent::Take | InventoryEvent::AwaitFirst) => Some(&mut left.asks),
            Event::Pass => Some(&mut left.pauses),
            Event::Crash => Some(&mut left.crashes),
            Event::Own(
                InventoryEvent::Settle
                | InventoryEvent::Deliver
                | InventoryEvent::DeliverAllocations
                | InventoryEvent::Drivers(true)
                | InventoryEvent::DeliverDrivers(true),
            )
            | Event::Stop(_) => None,
        }
    }

    fn verdict(laws: &InventoryLaws) -> &Verdict {
        &laws.verdict
    }

    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<InventoryEvent>>) {
        if stage.actor.has_ended() {
            return;
        }
        for plugin in 0..self.reports.len() {
            let report = self.reports[plugin].as_ref();
            let words = Word::ALL.into_iter().filter(|word| Self::may_say(report, *word));
            events.extend(words.map(|word| Event::Own(InventoryEvent::Say(plugin, word))));
        }
        if self.expects {
            let words = Word::ALL.into_iter().filter(|word| Self::may_say(self.standby.as_ref(), *word));
            events.extend(words.map(|word| Event::Own(InventoryEvent::Standby(word))));
            let words = AllocationWord::ALL.into_iter().filter(|word| self.may_say_of_allocation(*word));
            events.extend(words.map(|word| Event::Own(InventoryEvent::Allocation(word))));
        }
        if self.has_drivers {
            let words = DriverWord::ALL.into_iter().filter(|word| self.drivers.may_say(*word));
            events.extend(words.map(|word| Event::Own(InventoryEvent::SayOfDriver(word))));
        }
        let (is_following, has_news) = (self.follow.is_some(), !self.inbox.is_empty());
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(Event::Own(event)));
        maybe(self.may_settle(), InventoryEvent::Settle);
        maybe(is_following && has_news, InventoryEvent::Deliver);
        maybe(self.has_allocations_news(), InventoryEvent::DeliverAllocations);
        maybe(has_news, InventoryEvent::Lag);
        maybe(is_following, InventoryEvent::Lose);
        maybe(self.drivers.may_answer(stage.now), InventoryEvent::Drivers(true));
        maybe(self.drivers.is_asked(), InventoryEvent::Drivers(false));
        maybe(self.drivers.has_news(), InventoryEvent::DeliverDrivers(true));
        maybe(self.drivers.is_followed(), InventoryEvent::DeliverDrivers(false));
        maybe(true, InventoryEvent::Take);
        maybe(true, InventoryEvent::AwaitFirst);
    }

    fn happens(&mut self, stage: &mut Stage<Self>, event: InventoryEvent) -> Result<(), Violation> {
        match event {
            InventoryEvent::Say(plugin, word) => self.say(plugin, word),
            InventoryEvent::Standby(word) => self.say_of_standby(word),
            InventoryEvent::Allocation(word) => self.say_of_allocation(word),
            InventoryEvent::DeliverAllocations => {
                if let Some(call) = self.follow_allocations.take() {
                    let items = self.allocations_inbox.drain(..).collect();
                    stage.returned(call, InventoryOutcome::Allocations(Ok(items)));
                }
            }
            InventoryEvent::Settle => {
                self.is_settled = true;
                self.publish(InstancesNews::Settled);
            }
            InventoryEvent::Deliver => {
                if let Some(call) = self.follow.take() {
                    stage.returned(call, InventoryOutcome::Instances(Ok(self.inbox.drain(..).collect())));
                }
            }
            InventoryEvent::Lag => self.lag(),
            InventoryEvent::Lose => {
                if let Some(call) = self.follow.take() {
                    let error = AskError::NotRunning { actor: "instances".to_owned() };
                    stage.returned(call, InventoryOutcome::Instances(Err(error)));
                }
            }
            InventoryEvent::SayOfDriver(word) => self.drivers.say(word),
            InventoryEvent::Drivers(is_there) => {
                Self::return_of_drivers(stage, self.drivers.answer(is_there));
            }
            InventoryEvent::DeliverDrivers(is_there) => {
                Self::return_of_drivers(stage, self.drivers.deliver(is_there));
            }
            InventoryEvent::Take => stage.ask(InventoryAsk::TakeInventory(TakeInventory)),
            InventoryEvent::AwaitFirst => stage.ask(InventoryAsk::AwaitFirst(AwaitFirst)),
        }
        Ok(())
    }

    fn loads(&mut self, _: &mut Stage<Self>) -> <Inventory as Machine>::Image {
        (self.follow, self.follow_allocations) = (None, None);
        self.drivers.forget();
    }

    fn called(&mut self, stage: &mut Stage<Self>, number: u64, call: InventoryCall) -> Result<(), Violation> {
        match call {
            InventoryCall::Follow { source: Source::Instances, afresh } => {
                self.follow = Some(number);
                if afresh {
                    self.inbox.clear();
                    self.inbox.push_back(self.snapshot());
                }
            }
            InventoryCall::Follow { source: Source::Allocations, afresh } => {
                self.follow_allocations = Some(number);
                if afresh {
                    self.allocations_inbox.clear();
                    let blue = self.is_prepared.then(|| prepared("blue"));
                    let allocations = [prepared("red")].into_iter().chain(blue).collect();
                    let view = AllocationsView { allocations };
                    self.allocations_inbox.push_back(FeedItem::Snapshot { number: 0, view });
                }
            }
            InventoryCall::AwaitDrivers { within } => self.drivers.ask(number, stage.now + within),
            InventoryCall::Follow { source: Source::Drivers, afresh } => self.drivers.follow(number, afresh),
            InventoryCall::Follow { source: Source::Volumes, .. } => {
                unreachable!("it follows no volumes here")
            }
        }
        Ok(())
    }

    fn due(&self) -> Option<Timestamp> {
        self.drivers.due()
    }

    fn passes(&mut self, stage: &mut Stage<Self>) {
        if self.drivers.due().is_some_and(|until| until <= stage.now) {
            Self::return_of_drivers(stage, self.drivers.answer(true));
        }
    }

    fn next(&self, stage: &Stage<Self>) -> Option<InventoryEvent> {
        if stage.actor.has_ended() {
            None
        } else if self.follow.is_some() && !self.inbox.is_empty() {
            Some(InventoryEvent::Deliver)
        } else if self.has_allocations_news() {
            Some(InventoryEvent::DeliverAllocations)
        } else if self.drivers.may_answer(stage.now) {
            Some(InventoryEvent::Drivers(true))
        } else if self.drivers.has_news() {
            Some(InventoryEvent::DeliverDrivers(true))
        } else {
            self.may_settle().then_some(InventoryEvent::Settle)
        }
    }

    /// Checks the final state of an inventory when no further event happens.
    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        if stage.stopped.is_some() {
            let has_ended = stage.actor.has_ended();
            return if has_ended { Ok(()) } else { violation(Law::S4, "told to stop, it goes on") };
        }
        let Some(machine) = stage.actor.machine() else {
            return violation(Law::Shell4, "the inventory does not live");
        };
        let view = machine.view();
        if view.first.is_none() {
            return violation(Law::N1, "the first fingerprints were never told");
        }
        let serves = |report: &&InstanceReport| report.health != Health::Gone;
        let due: Vec<Offer> = self.reports.iter().flatten().filter(serves).map(Offer::of).collect();
        let due: Vec<Offer> = due.into_iter().chain(self.drivers.due_offer()).collect();
        let is_so = |(offer, due): (&Offer, &Offer)| offer.equals(due) && !offer.restarting;
        if view.offers.len() == due.len() && view.offers.iter().zip(&due).all(is_so) {
            return Ok(());
        }
        violation(Law::Hlt8, format!("when all was calm, {:?} was offered instead of {due:?}", view.offers))
    }
}
