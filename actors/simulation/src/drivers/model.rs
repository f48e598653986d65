//! The owner of the drivers with its children, their surroundings, and all messages in flight between them.
//!
//! The model carries out the effects of each of them, and the world decides when they arrive, and with which result.

mod answering;
mod carrying;
mod numbered;
mod parts;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use self::parts::{Actor, Child, DriverChild, EventorChild, Late, Link, Memory, Owner, Stream};
pub use self::parts::{Conduct, DriversTampers};
pub(in super::super) use self::parts::{DriversModelOptions, SetOff};
use callboard_actors::driver::{DriverSpec, process_name};
use callboard_actors::drivers::{
    ChildEnded, ChildKind, DriverReported, Drivers, DriversAnswer, DriversAsk, DriversCall, DriversOutcome,
    EventorReported, RegisterTaskHandler,
};
use callboard_actors::eventor::{Eventor, EventorCall, JournalId};
use callboard_actors::process::Lifetime;
use callboard_actors::shell::{Ending, Message, StopMode};
use callboard_actors::vocabulary::{Attempt, DriverName, Generation, Moment, Timestamp};

use super::super::instances::NoDisk;
use super::super::law::Law;
use super::super::law_checker::Violation;
use super::super::observed::Observed;
use super::super::stand_in::{Constant, Count, Left, Rules, StandIn};
use super::driver::DriverLaws;
use super::environment::Environment;
use super::eventor::EventorLaws;
use super::owner::DriversLaws;
use super::subscribers::Subscribers;

/// The asker of messages that need no answer.
const NO_ASKER: u64 = 0;

/// The owner, the children, their plugins and handlers, and the messages between them.
#[derive(Debug, Clone, Hash)]
pub struct DriversModel {
    options: Constant<DriversModelOptions>,
    owner: Owner,
    children: BTreeMap<Attempt, Child>,
    /// Messages of children that have ended; they still arrive.
    late: BTreeMap<Attempt, Late>,
    environments: BTreeMap<DriverName, Environment>,
    audiences: BTreeMap<DriverName, Subscribers>,
    /// Handlers whose registration is not answered yet.
    coming: BTreeMap<u64, (DriverName, JournalId)>,
    generations: Generation,
    await_endings: Option<u64>,
    endings: VecDeque<ChildEnded>,
    /// The mode in which the host was asked to stop.
    stopped: Option<StopMode>,
    /// Whether a process could not be ended, so that it may remain.
    is_excused: bool,
    pub(in super::super) set_off: Vec<SetOff>,
    /// The callers that the owner answered, with the answers.
    pub(in super::super) answered: Vec<(u64, Option<Rc<DriversAnswer>>)>,
    /// The notifications of the owner, as a trace shows them, if a trace is made.
    pub(in super::super) told: Option<Vec<Observed>>,
    pub(in super::super) has_ended: bool,
    steps_before: Count,
}

impl DriversModel {
    /// A model whose owner has just been started, and nothing runs.
    pub(in super::super) fn new(options: DriversModelOptions) -> Self {
        let environment = |(number, spec): (u32, &DriverSpec)| {
            let process = process_name(&spec.name).ok()?;
            let every = options.unnumbered_every;
            let keeps_positions = every == 0 || number % every != every - 1;
            Some((spec.name.clone(), Environment::new(process, Arc::clone(&options.tasks), keeps_positions)))
        };
        let subscribers =
            |spec: &DriverSpec| (spec.name.clone(), Subscribers::new(options.drivers.eventor.journal_items));
        Self {
            owner: new_owner(&options),
            children: BTreeMap::new(),
            late: BTreeMap::new(),
            environments: (0..).zip(options.specs.iter()).filter_map(environment).collect(),
            audiences: options.specs.iter().map(subscribers).collect(),
            coming: BTreeMap::new(),
            generations: Generation::default(),
            await_endings: None,
            endings: VecDeque::new(),
            stopped: None,
            is_excused: false,
            set_off: Vec::new(),
            answered: Vec::new(),
            told: None,
            has_ended: false,
            steps_before: Count::default(),
            options: Constant(options),
        }
    }

    /// The host is gone in the middle of any work, and another one starts from what is left.
    pub(in super::super) fn next_run(&mut self) {
        self.steps_before = Count(self.steps());
        for (driver, environment) in &mut self.environments {
            let spec = self.options.specs.iter().find(|spec| spec.name == *driver);
            environment.next_run(spec.is_some_and(|spec| spec.process.lifetime == Lifetime::Surviving));
        }
        self.audiences.values_mut().for_each(Subscribers::next_run);
        self.owner = new_owner(&self.options);
        self.children.clear();
        self.late.clear();
        self.coming.clear();
        self.endings.clear();
        self.set_off.clear();
        self.answered.clear();
        (self.await_endings, self.generations, self.stopped) = (None, Generation::default(), None);
        (self.is_excused, self.has_ended) = (false, false);
    }

    /// The first law that was broken by any actor of the model.
    #[must_use]
    pub fn broken(&self) -> Option<&Violation> {
        let audiences = || self.audiences.values().find_map(|subscribers| subscribers.verdict.broken());
        self.owner.checker.verdict.broken().or_else(audiences)
    }

    fn violation(&mut self, law: Law, what: String) {
        self.owner.checker.verdict.violation(law, || what);
    }

    /// The number of steps taken in the model.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps_before.0 + self.owner.steps()
    }

    /// How many actors live.
    #[must_use]
    pub fn children_count(&self) -> usize {
        self.children.len()
    }

    /// Whether a process of a driver runs.
    pub(in super::super) fn is_process_running(&self, driver: &DriverName) -> bool {
        self.environments.get(driver).is_some_and(Environment::is_running)
    }

    /// Whether a process could not be ended, so that it may remain.
    pub(super) const fn is_excused(&self) -> bool {
        self.is_excused
    }

    /// The specification of a driver.
    pub(in super::super) fn spec(&self, driver: &DriverName) -> DriverSpec {
        let spec = self.options.specs.iter().find(|spec| spec.name == *driver);
        spec.unwrap_or(&self.options.specs[0]).clone()
    }

    // === Messages from outside ===

    /// Builds the machine of the owner, if it waits for that.
    pub(in super::super) fn load(&mut self, moment: Moment) {
        self.carry(moment);
    }

    /// A message reaches the owner.
    pub(in super::super) fn ask<Q: Message<Drivers>>(&mut self, moment: Moment, asker: u64, message: Q) {
        self.owner.ask(moment, asker, message.into_ask());
        self.carry(moment);
    }

    /// A handler for this task registers.
    pub(in super::super) fn handler(&mut self, moment: Moment, asker: u64, driver: &DriverName, task: u8) {
        let (Some(environment), Some(subscribers)) =
            (self.environments.get(driver), self.audiences.get_mut(driver))
        else {
            return;
        };
        let sink = JournalId::Handler(asker);
        subscribers.comes(sink, task, self.options.journal_items, environment);
        self.coming.insert(asker, (driver.clone(), sink));
        self.ask(moment, asker, RegisterTaskHandler { driver: driver.clone(), task: self.task(task), sink });
    }

    /// A handler whose registration was refused waits for nothing.
    fn handler_answered(&mut self, asker: u64, answer: Option<&DriversAnswer>) {
        let Some((driver, sink)) = self.coming.remove(&asker) else { return };
        let is_refused = !matches!(answer, Some(DriversAnswer::RegisterTaskHandler(Ok(()))));
        if is_refused && let Some(subscribers) = self.audiences.get_mut(&driver) {
            subscribers.end(sink);
        }
    }

    /// All handlers of a driver's tasks read their waiting items.
    pub(in super::super) fn handlers_read(&mut self, driver: &DriverName) {
        if let Some(subscribers) = self.audiences.get_mut(driver) {
            subscribers.read();
        }
    }

    /// Whether items wait for handlers.
    pub(in super::super) fn has_unread(&self) -> bool {
        self.audiences.values().any(Subscribers::has_unread)
    }

    /// Whether a handler of this driver's tasks waits.
    pub(super) fn has_handlers(&self, driver: &DriverName) -> bool {
        self.audiences.get(driver).is_some_and(Subscribers::is_waiting)
    }

    /// The owner is requested to stop.
    pub(in super::super) fn request_stop(&mut self, moment: Moment, mode: StopMode) {
        self.stopped = Some(mode);
        // The owner of the processes must end what is left of a driver without an actor.
        self.is_excused |=
            self.environments.keys().any(|driver| self.life_of(driver, ChildKind::Driver).is_none());
        self.owner.request_stop(moment, mode);
        self.carry(moment);
    }

    /// The process of a driver exits by itself.
    pub(in super::super) fn exits(&mut self, driver: &DriverName) {
        if let Some(environment) = self.environments.get_mut(driver) {
            environment.exits();
        }
        self.mark_changed(driver);
    }

    /// A task has an event, and the plugin reports it.
    pub(in super::super) fn happens(&mut self, driver: &DriverName, task: u8) {
        if let Some(environment) = self.environments.get_mut(driver) {
            environment.happens(task);
        }
        self.mark_changed(driver);
    }

    fn mark_changed(&mut self, driver: &DriverName) {
        let theirs = self.children.values().filter(|child| child.name == *driver);
        let changed = theirs.map(|child| SetOff::Changed(child.number, child.kind()));
        self.set_off.extend(changed);
    }

    /// A step of the owner crashes.
    pub(in super::super) const fn crash_owner(&mut self) {
        self.owner.crash_next_step();
    }

    /// A step of this child crashes.
    pub(in super::super) fn crash_child(&mut self, life: Attempt) {
        match self.children.get_mut(&life).map(|child| &mut child.actor) {
            Some(Actor::Driver(child)) => child.actor.crash_next_step(),
            Some(Actor::Eventor(child)) => child.actor.crash_next_step(),
            None => {}
        }
    }

    /// A child crashes for no reason of its own.
    pub(in super::super) fn falls(&mut self, moment: Moment, life: Attempt) {
        self.end_child(life, Ending::Killed);
        self.carry(moment);
    }

    // === Living actors ===

    /// All living actors.
    pub(in super::super) fn lives(&self) -> impl Iterator<Item = Attempt> + '_ {
        self.children.keys().copied()
    }

    /// The latest actor of this kind of a driver.
    pub(in super::super) fn life_of(&self, driver: &DriverName, kind: ChildKind) -> Option<Attempt> {
        let is_meant = |child: &Child| child.name == *driver && child.kind() == kind;
        self.children.iter().rev().find(|(_, child)| is_meant(child)).map(|(life, _)| *life)
    }

    // === Messages in flight ===

    /// The actors whose messages could arrive now.
    pub(in super::super) fn mail(&self) -> Vec<Attempt> {
        let living = self.children.iter().filter(|(_, child)| !child.mail.is_empty()).map(|(life, _)| *life);
        living.chain(self.late.keys().copied()).collect()
    }

    /// The next message in the mailbox reaches the owner. False if there is none.
    pub(in super::super) fn deliver_mail(&mut self, moment: Moment, life: Attempt) -> bool {
        let living = self.children.get_mut(&life).and_then(|child| child.mail.pop_front());
        let said = living.or_else(|| self.late.get_mut(&life)?.mail.pop_front());
        self.late.retain(|_, late| !late.mail.is_empty());
        let Some(said) = said else { return false };
        self.owner.ask(moment, NO_ASKER, said);
        self.carry(moment);
        true
    }

    /// Whether endings could arrive now.
    pub(in super::super) fn has_endings(&self) -> bool {
        self.await_endings.is_some() && !self.endings.is_empty()
    }

    /// The endings reach the owner.
    pub(in super::super) fn deliver_endings(&mut self, moment: Moment) {
        if let Some(call) = self.await_endings.take_if(|_| !self.endings.is_empty()) {
            let endings = self.endings.drain(..).collect();
            self.owner.returned(moment, call, Ok(DriversOutcome::Ended(endings)));
        }
        self.carry(moment);
    }

    // === Time ===

    /// The time at which something is due next.
    pub(in super::super) fn next_timer(&self) -> Option<Timestamp> {
        self.children.values().filter_map(Child::next_timer).chain(self.owner.next_timer()).min()
    }

    /// Runs all timers of the owner that are due by now.
    pub(in super::super) fn owner_timers_due(&mut self, moment: Moment) {
        self.owner.timers_due(moment);
        self.carry(moment);
    }

    /// Runs all timers of this child that are due by now.
    pub(in super::super) fn child_timers_due(&mut self, moment: Moment, life: Attempt) {
        match self.children.get_mut(&life).map(|child| &mut child.actor) {
            Some(Actor::Driver(child)) => child.actor.timers_due(moment),
            Some(Actor::Eventor(child)) => child.actor.timers_due(moment),
            None => return,
        }
        self.carry_child(moment, life);
        self.carry(moment);
    }

    /// Runs all timers that are due by now.
    pub(super) fn timers_due(&mut self, moment: Moment) {
        self.owner_timers_due(moment);
        let lives: Vec<Attempt> = self.lives().collect();
        for life in lives {
            self.child_timers_due(moment, life);
        }
    }

    // === At rest ===

    /// Every handler has received all events; after an orderly end no process runs that should not.
    pub(in super::super) fn check_calm(&mut self) {
        if self.has_ended {
            self.check_end();
            return;
        }
        let tended: Vec<DriverName> = self.audiences.keys().cloned().collect();
        for driver in tended {
            let serves = self.serves(&driver);
            if let (Some(subscribers), Some(environment)) =
                (self.audiences.get_mut(&driver), self.environments.get(&driver))
            {
                subscribers.read();
                if serves {
                    subscribers.check_calm(environment);
                }
            }
        }
    }

    /// Whether a driver is shown as healthy.
    pub(super) fn serves(&self, driver: &DriverName) -> bool {
        let Some(machine) = self.owner.machine() else { return false };
        let view = callboard_actors::shell::Machine::view(machine);
        let health = |report: &callboard_actors::driver::DriverReport| {
            report.name == *driver && report.health == callboard_actors::driver::DriverHealth::Healthy
        };
        view.reports.iter().any(health)
    }

    fn check_end(&mut self) {
        if !self.children.is_empty() {
            let what = format!("{} actors of drivers are left after the end", self.children.len());
            self.violation(Law::S4, what);
        }
        let is_left = |(driver, environment): (&DriverName, &Environment)| {
            let spec = self.options.specs.iter().find(|spec| spec.name == *driver);
            let survives = spec.is_some_and(|spec| spec.process.lifetime == Lifetime::Surviving);
            environment.is_running() && !(survives && self.stopped == Some(StopMode::Detach))
        };
        if !self.is_excused && self.environments.iter().any(is_left) {
            self.violation(Law::Shd6, "the host has stopped, and the process of a driver goes on".to_owned());
        }
    }
}

fn new_owner(options: &DriversModelOptions) -> Owner {
    StandIn::begin(options.drivers.clone(), Memory::default(), DriversLaws::default(), Rules::default())
        .tampered_with(options.tampers.owner.clone())
}
