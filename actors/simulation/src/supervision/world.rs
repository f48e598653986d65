//! A supervisor, its children, its callers and time: small enough to try every order of events.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::shell::{Ending, Message};
use callboard_actors::supervisor::{
    AwaitStarted, ChildSpec, DescribeTree, Plan, RestartChild, Shutdown, Supervisor, SupervisorSpec,
};
use callboard_actors::vocabulary::{Backoff, Moment, RestartBudget, Timestamp};

use super::super::allocation::Reply;
use super::super::law::Law;
use super::super::law_checker::{NO_CALLER_WAITS, Violation, found, violation};
use super::super::search::{Play, World};
use super::super::tamper::Tamper;
use super::event::{SupervisionBounds, SupervisionEvent, TaskEnd};
use super::model::SupervisionModel;

/// How long restarts count.
const WINDOW: Duration = Duration::from_secs(30);
/// How many events happen at most until the world is at rest.
const CALM_MAX: usize = 200;

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct SupervisionWorld {
    model: SupervisionModel,
    now: Timestamp,
    left: SupervisionBounds,
    askers: u64,
    unanswered: BTreeSet<u64>,
    is_stopping: bool,
}

impl SupervisionWorld {
    /// A world with these bounds, with a fault in the supervisor if one is given.
    #[must_use]
    pub fn new(bounds: SupervisionBounds, tamper: Option<Rc<dyn Tamper<Supervisor>>>) -> Self {
        let mut world = Self {
            model: SupervisionModel::new(plan(&bounds), tamper),
            now: Timestamp::from_epoch(Duration::from_secs(1_000)),
            left: bounds,
            askers: 0,
            unanswered: BTreeSet::new(),
            is_stopping: false,
        };
        // No law can be broken before its first step.
        let _ = world.hear();
        world
    }

    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    fn has_ended(&self) -> bool {
        self.model.ending.is_some()
    }

    fn hear(&mut self) -> Result<(), Violation> {
        let moment = self.moment();
        self.model.hear(moment);
        self.model.set_out.clear();
        for (asker, _) in std::mem::take(&mut self.model.answered) {
            let Some(asker) = asker else { return violation(Law::Shell7, NO_CALLER_WAITS) };
            if !self.unanswered.remove(&asker) {
                return violation(Law::Shell7, format!("question {asker} was answered twice"));
            }
        }
        found(self.model.broken())
    }

    // === Events ===

    fn ask<Q: Message<Supervisor>>(&mut self, message: Q) {
        self.askers += 1;
        self.unanswered.insert(self.askers);
        self.model.ask(self.moment(), self.askers, message.into_ask());
    }

    fn returns(&mut self, place: usize, reply: Reply) {
        if reply != Reply::Good {
            self.left.faults = self.left.faults.saturating_sub(1);
        }
        self.now = self.model.returns(self.moment(), place, reply);
    }

    /// The end of the next pause, unless a call returns earlier.
    fn due(&self) -> Option<Timestamp> {
        let timer = self.model.next_timer()?;
        self.model.next_deadline().is_none_or(|call| timer <= call).then_some(timer)
    }

    fn pass(&mut self) {
        self.now = self.due().unwrap_or(self.now).max(self.now);
        self.model.timers_due(self.moment());
    }

    /// Whether nothing is due while time passes.
    fn may_wait(&self) -> bool {
        self.left.waits > 0 && self.model.next_timer().is_none() && self.model.next_deadline().is_none()
    }

    /// Whether a child may end by itself: at any time within the bounds, or if it was asked to stop and no call waits for its end.
    fn may_end(&self, child: usize) -> bool {
        let environment = &self.model.environment;
        let is_told = environment.told(child).is_some();
        environment.is_alive(child) && !environment.is_being_stopped(child) && (self.left.ends > 0 || is_told)
    }

    fn end(&mut self, child: usize, end: TaskEnd) {
        if self.model.environment.told(child).is_none() {
            self.left.ends = self.left.ends.saturating_sub(1);
        }
        let ending = match end {
            TaskEnd::Finishes => Ending::Normal,
            TaskEnd::Falls => Ending::Killed,
        };
        self.model.environment.ends(child, ending);
    }

    // === Without faults ===

    fn check_end(&mut self) -> Result<(), Violation> {
        if self.has_ended() {
            // Callers that still wait receive the answer that the supervisor is gone.
            return Ok(());
        }
        if !self.unanswered.is_empty() {
            return violation(Law::Shell7, format!("questions {:?} were never answered", self.unanswered));
        }
        if self.is_stopping {
            return violation(Law::S3, "told to stop, it goes on");
        }
        if self.model.machine().is_none() {
            return violation(Law::Shell4, "the supervisor does not live");
        }
        self.model.check_calm();
        found(self.model.broken())
    }
}

impl World for SupervisionWorld {
    fn events(&self) -> Vec<SupervisionEvent> {
        let mut events = Vec::new();
        if self.has_ended() {
            return events;
        }
        let children = 0..self.left.children.len();
        for place in 0..self.model.calls() {
            let replies = [Reply::Good, Reply::Bad, Reply::Odd, Reply::Late];
            let possible = replies.into_iter().filter(|reply| {
                (*reply == Reply::Good || self.left.faults > 0) && self.model.can_return(place, *reply)
            });
            events.extend(possible.map(|reply| SupervisionEvent::Return(place, reply)));
        }
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        for child in children {
            let is_being_made = self.left.is_slow && self.model.environment.is_being_made(child);
            maybe(is_being_made, SupervisionEvent::Make(child));
            for end in TaskEnd::ALL {
                maybe(self.may_end(child), SupervisionEvent::End(child, end));
            }
            maybe(self.left.asks > 0, SupervisionEvent::Restart(child));
        }
        maybe(self.left.asks > 0, SupervisionEvent::Await);
        maybe(self.left.asks > 0, SupervisionEvent::Describe);
        maybe(self.due().is_some(), SupervisionEvent::Pass);
        maybe(self.may_wait(), SupervisionEvent::Wait);
        maybe(self.left.crashes > 0 && !self.model.crashes_next(), SupervisionEvent::Crash);
        for mode in self.left.stops.iter().filter(|_| self.left.stops_max > 0) {
            maybe(true, SupervisionEvent::Shutdown(*mode));
            maybe(!self.is_stopping, SupervisionEvent::Stop(*mode));
        }
        events
    }
}

impl Play for SupervisionWorld {
    type Event = SupervisionEvent;

    fn can(&self, event: &SupervisionEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &SupervisionEvent) -> Result<(), Violation> {
        match *event {
            SupervisionEvent::Make(child) => self.model.environment.make(child),
            SupervisionEvent::Return(place, reply) => self.returns(place, reply),
            SupervisionEvent::End(child, end) => self.end(child, end),
            SupervisionEvent::Restart(child) => {
                self.left.asks -= 1;
                self.ask(RestartChild { name: name(child) });
            }
            SupervisionEvent::Await => {
                self.left.asks -= 1;
                self.ask(AwaitStarted);
            }
            SupervisionEvent::Describe => {
                self.left.asks -= 1;
                self.ask(DescribeTree);
            }
            SupervisionEvent::Pass => self.pass(),
            SupervisionEvent::Wait => {
                self.left.waits -= 1;
                self.now = self.now + WINDOW + Duration::from_secs(1);
            }
            SupervisionEvent::Crash => {
                self.left.crashes -= 1;
                self.model.crash_next_step();
            }
            SupervisionEvent::Shutdown(mode) => {
                self.left.stops_max -= 1;
                // A crash loses the message.
                self.is_stopping |= !self.model.crashes_next();
                self.ask(Shutdown { mode });
            }
            SupervisionEvent::Stop(mode) => {
                self.left.stops_max -= 1;
                self.is_stopping = true;
                self.model.request_stop(self.moment(), mode);
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        for _ in 0..CALM_MAX {
            if self.has_ended() {
                break;
            }
            let next = (0..self.model.calls()).find(|place| self.model.can_return(*place, Reply::Good));
            match next {
                Some(place) => self.take(&SupervisionEvent::Return(place, Reply::Good))?,
                None if self.due().is_some() => self.take(&SupervisionEvent::Pass)?,
                None => break,
            }
        }
        self.check_end()
    }
}

fn name(child: usize) -> String {
    format!("c{child}")
}

fn plan(bounds: &SupervisionBounds) -> Plan {
    let backoff = Backoff {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(2),
        jitter_percent: 0,
        reset_after: Duration::from_secs(20),
    };
    let specs = bounds.children.iter().enumerate().map(|(child, restart)| {
        let spec = ChildSpec::new(name(child), "actor");
        ChildSpec { restart: *restart, backoff, may_leave: bounds.may_leave, ..spec }
    });
    let budget = RestartBudget { limit: bounds.limit, window: WINDOW };
    let spec = SupervisorSpec { strategy: bounds.strategy, budget, ..SupervisorSpec::default() };
    Plan { name: "root".to_owned(), spec, children: specs.collect() }
}
