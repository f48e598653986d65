//! The inventory, the news of the instances, the owner of the drivers and time: small enough to try every order.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::drivers::DriverSummary;
use callboard_actors::instances::{InstanceReport, InstancesNews, InstancesView};
use callboard_actors::inventory::{
    AwaitFirst, InstancesItem, Inventory, InventoryCall, InventoryOptions, InventoryOutcome, Offer,
    TakeInventory,
};
use callboard_actors::shell::{AskError, FeedItem, Machine, Message, StopMode};
use callboard_actors::vocabulary::{
    AllocationId, DriverName, Generation, Health, Moment, SocketPath, Timestamp,
};

use super::super::instances::NoDisk;
use super::super::law::Law;
use super::super::search::{Play, World, digest};
use super::super::stand_in::{Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::witness::{NOBODY_WAITS, Violation, cry, found};
use super::event::{InventoryBounds, InventoryEvent, Word, plugin};
use super::laws::InventoryLaws;

/// The world, with what may still happen.
#[derive(Debug, Clone, Hash)]
pub struct InventoryWorld {
    inventory: StandIn<Inventory, NoDisk, InventoryLaws>,
    now: Timestamp,
    left: InventoryBounds,
    /// What the instances know, and have said.
    reports: Vec<Option<InstanceReport>>,
    is_settled: bool,
    generations: u64,
    published: u64,
    inbox: VecDeque<InstancesItem>,
    follow: Option<u64>,
    /// The question to the owner of the drivers, and until when it answers.
    drivers: Option<(u64, Timestamp)>,
    askers: u64,
    unanswered: BTreeSet<u64>,
    is_stopping: bool,
}

impl InventoryWorld {
    /// A world in which so much may happen, with a fault in the inventory if one is given.
    #[must_use]
    pub fn new(bounds: InventoryBounds, tamper: Option<Rc<dyn Tamper<Inventory>>>) -> Self {
        let options = InventoryOptions { awaits_drivers: bounds.has_drivers, ..InventoryOptions::default() };
        let inventory = StandIn::begin(options, NoDisk, InventoryLaws::new(options), Rules::default());
        let mut world = Self {
            inventory: inventory.tampered_with(tamper),
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
            reports: vec![None; bounds.plugins],
            is_settled: false,
            generations: 0,
            published: 0,
            inbox: VecDeque::new(),
            follow: None,
            drivers: None,
            askers: 0,
            unanswered: BTreeSet::new(),
            is_stopping: false,
        };
        // Nothing that could be broken has happened before its first step.
        let _ = world.hear();
        world
    }

    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    // === The instances ===

    fn may_say(&self, plugin: usize, word: Word) -> bool {
        let health = self.reports[plugin].as_ref().map(|report| &report.health);
        match (word, health) {
            (Word::Starts, None | Some(Health::Gone)) => true,
            (Word::Serves, Some(Health::Starting | Health::Unhealthy { .. }))
            | (Word::Ails, Some(Health::Starting | Health::Healthy))
            | (Word::Retires, Some(Health::Starting | Health::Healthy | Health::Unhealthy { .. }))
            | (Word::Leaves, Some(Health::Gone)) => true,
            (Word::Starts | Word::Serves | Word::Ails | Word::Retires | Word::Leaves, _) => false,
        }
    }

    fn say(&mut self, plugin: usize, word: Word) {
        let health = match word {
            Word::Starts => Health::Starting,
            Word::Serves => Health::Healthy,
            Word::Ails => Health::Unhealthy { reason: "it fails".to_owned() },
            Word::Retires | Word::Leaves => Health::Gone,
        };
        if word == Word::Starts {
            self.generations += 1;
            self.reports[plugin] = Some(report(plugin, self.generations));
        }
        let Some(report) = &mut self.reports[plugin] else { return };
        report.health = health;
        let report = report.clone();
        if word == Word::Leaves {
            self.reports[plugin] = None;
            self.publish(InstancesNews::Left(report));
        } else {
            self.publish(InstancesNews::Reported(report));
        }
    }

    fn publish(&mut self, news: InstancesNews) {
        self.published += 1;
        self.inbox.push_back(FeedItem::Change { number: self.published, news });
    }

    /// Whether it is known what became of the plugin that was registered before.
    fn may_settle(&self) -> bool {
        let health = self.reports[0].as_ref().map(|report| &report.health);
        !self.is_settled && health != Some(&Health::Starting)
    }

    fn snapshot(&self) -> InstancesItem {
        let expected = (!self.is_settled && self.reports[0].is_none()).then(|| plugin(0));
        let view = InstancesView {
            reports: self.reports.iter().flatten().cloned().collect(),
            expected: expected.into_iter().collect(),
            settled: self.is_settled,
        };
        FeedItem::Snapshot { number: self.published, view }
    }

    fn lag(&mut self) {
        self.inbox.clear();
        self.inbox.extend([FeedItem::Lagged { missed: 1 }, self.snapshot()]);
    }

    // === The inventory ===

    fn returned(&mut self, call: u64, outcome: InventoryOutcome) {
        self.inventory.returned(self.moment(), call, Ok(outcome));
    }

    fn deliver(&mut self) {
        if let Some(call) = self.follow.take() {
            let items = self.inbox.drain(..).collect();
            self.returned(call, InventoryOutcome::Heard(Ok(items)));
        }
    }

    fn lose(&mut self) {
        if let Some(call) = self.follow.take() {
            let error = AskError::NotRunning { actor: "instances".to_owned() };
            self.returned(call, InventoryOutcome::Heard(Err(error)));
        }
    }

    fn drivers_answer(&mut self, is_there: bool) {
        let Some((call, until)) = self.drivers.take() else { return };
        let names = vec![DriverName::new("exec").expect("it is a name")];
        let summary = if self.now < until {
            DriverSummary { healthy: names, ..DriverSummary::default() }
        } else {
            DriverSummary { no_answer: names, ..DriverSummary::default() }
        };
        let error = || AskError::NotRunning { actor: "drivers".to_owned() };
        self.returned(call, InventoryOutcome::Drivers(is_there.then_some(summary).ok_or_else(error)));
    }

    fn ask<Q: Message<Inventory>>(&mut self, message: Q) {
        self.left.asks -= 1;
        self.askers += 1;
        self.unanswered.insert(self.askers);
        self.inventory.ask(self.moment(), self.askers, message.into_ask());
    }

    /// When something is due next.
    fn due(&self) -> Option<Timestamp> {
        let drivers = self.drivers.map(|(_, until)| until);
        self.inventory.next_timer().into_iter().chain(drivers).min()
    }

    fn pass(&mut self) {
        self.now = self.due().unwrap_or(self.now).max(self.now);
        self.inventory.timers_due(self.moment());
        if self.drivers.is_some_and(|(_, until)| until <= self.now) {
            self.drivers_answer(true);
        }
    }

    fn hear(&mut self) -> Result<(), Violation> {
        if self.inventory.is_loading() {
            (self.follow, self.drivers) = (None, None);
        }
        let left = self.inventory.leaving(self.moment());
        left.into_iter().try_for_each(|left| self.take_in(left))?;
        if self.inventory.has_ended() {
            self.unanswered.clear();
        }
        found(self.inventory.witness.verdict.broken())
    }

    fn take_in(&mut self, left: Left<Inventory>) -> Result<(), Violation> {
        match left {
            Left::Answer(Some(asker), _) | Left::Refused(asker, _) => {
                if !self.unanswered.remove(&asker) {
                    return cry(Law::Shell7, format!("question {asker} was answered twice"));
                }
            }
            Left::Call { number, call: InventoryCall::Follow { afresh }, .. } => {
                self.follow = Some(number);
                if afresh {
                    self.inbox.clear();
                    self.inbox.push_back(self.snapshot());
                }
            }
            Left::Call { number, call: InventoryCall::AwaitDrivers { within }, .. } => {
                self.drivers = Some((number, self.now + within));
            }
            Left::Answer(None, _) => return cry(Law::Shell7, NOBODY_WAITS),
            Left::News(..) | Left::Snapshot(..) | Left::Ended(_) => {}
        }
        Ok(())
    }

    /// What an inventory comes to when nothing happens any more.
    fn check_end(&self) -> Result<(), Violation> {
        if !self.unanswered.is_empty() {
            return cry(Law::Shell7, format!("questions {:?} were never answered", self.unanswered));
        }
        if self.is_stopping {
            let has_ended = self.inventory.has_ended();
            return if has_ended { Ok(()) } else { cry(Law::S4, "told to stop, it goes on") };
        }
        let Some(machine) = self.inventory.machine() else {
            return cry(Law::Shell4, "the inventory does not live");
        };
        let view = machine.view();
        if view.first.is_none() {
            return cry(Law::N1, "the first fingerprints were never told");
        }
        let serves = |report: &&InstanceReport| report.health != Health::Gone;
        let due: Vec<Offer> = self.reports.iter().flatten().filter(serves).map(Offer::of).collect();
        let is_so = |(offer, due): (&Offer, &Offer)| offer.equals(due) && !offer.restarting;
        if view.offers.len() == due.len() && view.offers.iter().zip(&due).all(is_so) {
            return Ok(());
        }
        cry(Law::Hlt8, format!("when all was calm, {:?} was offered instead of {due:?}", view.offers))
    }
}

impl World for InventoryWorld {
    fn digest(&self) -> u128 {
        digest(self)
    }

    fn events(&self) -> Vec<InventoryEvent> {
        if self.inventory.has_ended() {
            return Vec::new();
        }
        let mut events = Vec::new();
        if self.left.words > 0 {
            for plugin in 0..self.reports.len() {
                let words = Word::ALL.into_iter().filter(|word| self.may_say(plugin, *word));
                events.extend(words.map(|word| InventoryEvent::Say(plugin, word)));
            }
        }
        let is_following = self.follow.is_some();
        let has_drivers = self.drivers.is_some();
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(self.may_settle(), InventoryEvent::Settle);
        maybe(is_following && !self.inbox.is_empty(), InventoryEvent::Deliver);
        maybe(self.left.losses > 0 && !self.inbox.is_empty(), InventoryEvent::Lag);
        maybe(self.left.losses > 0 && is_following, InventoryEvent::Lose);
        maybe(has_drivers, InventoryEvent::Drivers(true));
        maybe(self.left.losses > 0 && has_drivers, InventoryEvent::Drivers(false));
        maybe(self.left.asks > 0, InventoryEvent::Take);
        maybe(self.left.asks > 0, InventoryEvent::AwaitFirst);
        maybe(self.left.pauses > 0 && self.due().is_some(), InventoryEvent::Pass);
        maybe(self.left.crashes > 0 && !self.inventory.is_fuse_lit(), InventoryEvent::Crash);
        maybe(self.left.stops, InventoryEvent::Stop);
        events
    }
}

impl Play for InventoryWorld {
    type Event = InventoryEvent;

    fn can(&self, event: &InventoryEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &InventoryEvent) -> Result<(), Violation> {
        match *event {
            InventoryEvent::Say(plugin, word) => {
                self.left.words = self.left.words.saturating_sub(1);
                self.say(plugin, word);
            }
            InventoryEvent::Settle => {
                self.is_settled = true;
                self.publish(InstancesNews::Settled);
            }
            InventoryEvent::Deliver => self.deliver(),
            InventoryEvent::Lag => {
                self.left.losses -= 1;
                self.lag();
            }
            InventoryEvent::Lose => {
                self.left.losses -= 1;
                self.lose();
            }
            InventoryEvent::Drivers(is_there) => {
                self.left.losses -= u8::from(!is_there);
                self.drivers_answer(is_there);
            }
            InventoryEvent::Take => self.ask(TakeInventory),
            InventoryEvent::AwaitFirst => self.ask(AwaitFirst),
            InventoryEvent::Pass => {
                self.left.pauses = self.left.pauses.saturating_sub(1);
                self.pass();
            }
            InventoryEvent::Crash => {
                self.left.crashes -= 1;
                self.inventory.light_fuse();
            }
            InventoryEvent::Stop => {
                (self.left.stops, self.is_stopping) = (false, true);
                self.inventory.request_stop(self.moment(), StopMode::Stop);
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        while calm < 12 && !self.inventory.has_ended() {
            if self.follow.is_some() && !self.inbox.is_empty() {
                self.take(&InventoryEvent::Deliver)?;
            } else if self.drivers.is_some() {
                self.take(&InventoryEvent::Drivers(true))?;
            } else if self.may_settle() {
                self.take(&InventoryEvent::Settle)?;
            } else if self.due().is_some() {
                calm += 1;
                self.take(&InventoryEvent::Pass)?;
            } else {
                break;
            }
        }
        self.check_end()
    }
}

/// A new instance, which begins.
fn report(place: usize, generation: u64) -> InstanceReport {
    InstanceReport {
        plugin: plugin(place),
        allocation: AllocationId::new("red").expect("it is a name"),
        socket: SocketPath::new("/run/red.sock").expect("it is short and absolute"),
        generation: Generation::new(generation),
        health: Health::Starting,
        since: Timestamp::from_epoch(Duration::ZERO),
        fingerprint: None,
        remarks: Vec::new(),
    }
}
