//! The supervisor of one allocation, its task and everybody around it: small enough to try every order.

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocation::{
    Allocation, AllocationAnswer, AllocationAsk, AllocationConfig, AllocationNews, AllocationOptions,
    AllocationPhase, AllocationSpec, Layout, Listener, MakeReady, NoteDisk, NoteExit, NoteHealth, NoteStart,
    Plan, RestartWhen, SignOff, Task,
};
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::{AllocationId, Health, Moment, PluginName, Role, TaskName, Timestamp};

use super::super::instances::NoDisk;
use super::super::law::Law;
use super::super::search::{Play, World};
use super::super::stand_in::{Left, Rules, StandIn};
use super::super::tamper::Tamper;
use super::super::witness::{NO_CALLER_WAITS, Violation, found, violation};
use super::event::{AllocationBounds, AllocationEvent, Receipt, Reply};
use super::laws::AllocationLaws;
use super::neighbours::{Neighbours, Returned};
use super::owner::Owner;
use super::surroundings::Surroundings;

type Supervisor = StandIn<Allocation, NoDisk, AllocationLaws>;

/// How often time passes at most while everything calms down.
const CALM_MAX: u32 = 24;

/// The world, with what may still happen.
#[derive(Debug, Clone, Hash)]
pub struct AllocationWorld {
    pub(super) supervisor: Supervisor,
    tamper: Option<Rc<dyn Tamper<Allocation>>>,
    pub(super) neighbours: Neighbours,
    now: Timestamp,
    left: AllocationBounds,
    pub(super) owner: Owner,
    is_signed_off: bool,
    pub(super) stopped: Option<StopMode>,
    /// Whether something went wrong, or took too long, on the way out.
    pub(super) is_disturbed: bool,
}

impl AllocationWorld {
    /// News of its instance concern it when it is registered, and news of the disk before that.
    fn news(&self) -> AllocationAsk {
        match self.supervisor.witness.has_rounds() {
            true => AllocationAsk::NoteHealth(NoteHealth),
            false => AllocationAsk::NoteDisk(NoteDisk),
        }
    }

    /// A world in which so much may happen, with a fault in the supervisor if one is given.
    #[must_use]
    pub fn new(bounds: AllocationBounds, tamper: Option<Rc<dyn Tamper<Allocation>>>) -> Self {
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let config = config(Task::NotStarted, Health::Starting);
        let (allocation, socket) = (config.spec.allocation.clone(), config.plan.context.socket.clone());
        let mut world = Self {
            supervisor: supervisor(config, now, tamper.clone()),
            tamper,
            neighbours: Neighbours::new(Surroundings::new(allocation, socket, "org.example.zfs".into())),
            now,
            left: bounds,
            owner: Owner::new(),
            is_signed_off: false,
            stopped: None,
            is_disturbed: false,
        };
        // Nothing that could be broken has happened before its first step.
        let _ = world.hear();
        world
    }

    const fn moment(&self) -> Moment {
        Moment { now: self.now, random: 0 }
    }

    // === The owner ===

    fn order(&mut self, ask: AllocationAsk) {
        let asker = self.owner.says(&ask);
        self.supervisor.ask(self.moment(), asker, ask);
    }

    /// The next supervisor knows what the former one was told, and hears again what has no answer.
    fn fall(&mut self) -> Result<(), Violation> {
        let config = config(self.owner.task, self.owner.health.clone());
        self.supervisor = supervisor(config, self.now, self.tamper.clone());
        self.neighbours.forget_caller();
        self.hear()?;
        for (asker, ask) in self.owner.says_again() {
            self.supervisor.ask(self.moment(), asker, ask);
        }
        Ok(())
    }

    /// The task may run on, and the next start of the host reports it.
    fn kill(&mut self) {
        self.owner.forgets();
        (self.stopped, self.is_signed_off) = (None, false);
        self.neighbours.next_run();
        let config = config(self.owner.task, self.owner.health.clone());
        self.supervisor = supervisor(config, self.now, self.tamper.clone());
    }

    // === The world ===

    fn returned(&mut self, returned: Option<Returned>) {
        if let Some((number, outcome)) = returned {
            self.supervisor.returned(self.moment(), number, outcome);
        }
    }

    fn pass(&mut self) {
        self.now = self.supervisor.next_timer().unwrap_or(self.now).max(self.now);
        self.supervisor.timers_due(self.moment());
    }

    fn hear(&mut self) -> Result<(), Violation> {
        let left = self.supervisor.leaving(self.moment());
        left.into_iter().try_for_each(|left| self.take_in(left))?;
        if self.supervisor.has_ended() {
            self.neighbours.forget_caller();
            self.owner.unanswered.clear();
        }
        found(self.supervisor.witness.verdict.broken())
    }

    fn take_in(&mut self, left: Left<Allocation>) -> Result<(), Violation> {
        match left {
            Left::Answer(Some(asker), answer) => {
                self.is_signed_off |= matches!(*answer, AllocationAnswer::SignOff(_));
                if self.owner.unanswered.remove(&asker).is_none() {
                    return violation(Law::Shell7, format!("question {asker} was answered twice"));
                }
            }
            Left::Refused(asker, _) => {
                return violation(Law::Shell4, format!("question {asker} was lost"));
            }
            Left::News(_, AllocationNews::Changed(status)) => self.owner.health = status.health,
            Left::Call { number, call, .. } => self.neighbours.called(number, call),
            Left::Answer(None, _) => return violation(Law::Shell7, NO_CALLER_WAITS),
            Left::News(..) | Left::Snapshot(..) | Left::Ended(_) => {}
        }
        Ok(())
    }

    /// Whether nothing more is to be expected: from here on one round is like the other.
    fn is_content(&self) -> bool {
        let status = self.supervisor.machine().map(Machine::view);
        status.is_some_and(|status| {
            status.phase == AllocationPhase::Registered && status.health == Health::Healthy
        })
    }

    /// A host that ends, or that got the last report of a supervisor, needs no other supervisor.
    fn may_fall(&self) -> bool {
        self.left.falls > 0 && !self.is_signed_off && self.stopped.is_none()
    }

    fn is_leaving(&self) -> bool {
        self.owner.task == Task::Leaving || self.stopped.is_some()
    }
}

impl World for AllocationWorld {
    fn events(&self) -> Vec<AllocationEvent> {
        if self.supervisor.has_ended() && !self.neighbours.has_in_flight() {
            return Vec::new();
        }
        let has_faults = self.left.faults > 0;
        let is_free = |reply: Reply| has_faults || reply == Reply::Good;
        let replies = self.neighbours.replies().filter(|(_, reply)| is_free(*reply));
        let mut events: Vec<_> =
            replies.map(|(place, reply)| AllocationEvent::Return(place, reply)).collect();
        let receipts = self.neighbours.receipts().filter(|receipt| has_faults || *receipt == Receipt::Taken);
        events.extend(receipts.map(AllocationEvent::Registry));
        if self.supervisor.has_ended() {
            return events;
        }
        let has_orders = self.left.orders > 0 && self.stopped.is_none();
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(has_orders, AllocationEvent::Prepare);
        maybe(has_orders, AllocationEvent::Start);
        maybe(has_orders && self.owner.task == Task::Running, AllocationEvent::Exit);
        maybe(self.left.leaves && self.stopped.is_none(), AllocationEvent::SignOff);
        maybe(self.left.pauses > 0 && self.supervisor.next_timer().is_some(), AllocationEvent::Pass);
        maybe(self.left.news > 0 && self.stopped.is_none(), AllocationEvent::News);
        maybe(self.may_fall(), AllocationEvent::Fall);
        maybe(self.left.kills > 0, AllocationEvent::Kill);
        events.extend(self.left.stops.iter().map(|mode| AllocationEvent::Stop(*mode)));
        events
    }
}

impl Play for AllocationWorld {
    type Event = AllocationEvent;

    fn can(&self, event: &AllocationEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &AllocationEvent) -> Result<(), Violation> {
        let left = &mut self.left;
        match *event {
            AllocationEvent::Prepare => {
                left.orders -= 1;
                self.order(AllocationAsk::MakeReady(MakeReady { listener: Listener::Welcome }));
            }
            AllocationEvent::Start => {
                left.orders -= 1;
                self.neighbours.around.process += 1;
                self.order(AllocationAsk::NoteStart(NoteStart));
            }
            AllocationEvent::Exit => {
                left.orders -= 1;
                self.order(AllocationAsk::NoteExit(NoteExit { how: "signal 9".to_owned() }));
            }
            AllocationEvent::SignOff => {
                left.leaves = false;
                self.order(AllocationAsk::SignOff(SignOff));
            }
            AllocationEvent::Return(place, reply) => {
                left.faults = left.faults.saturating_sub(u8::from(reply != Reply::Good));
                self.is_disturbed |= reply != Reply::Good && self.is_leaving();
                let returned = self.neighbours.reply(place, reply);
                self.returned(returned);
            }
            AllocationEvent::Registry(receipt) => {
                left.faults = left.faults.saturating_sub(u8::from(receipt != Receipt::Taken));
                let returned = self.neighbours.receive(receipt);
                self.returned(returned);
            }
            AllocationEvent::Pass => {
                left.pauses = left.pauses.saturating_sub(1);
                self.is_disturbed |= self.is_leaving();
                self.pass();
            }
            AllocationEvent::News => {
                left.news -= 1;
                self.order(self.news());
            }
            AllocationEvent::Fall => {
                left.falls -= 1;
                self.fall()?;
            }
            AllocationEvent::Kill => {
                left.kills -= 1;
                self.kill();
            }
            AllocationEvent::Stop(mode) => {
                left.stops = &[];
                self.stopped = Some(mode);
                self.supervisor.request_stop(self.moment(), mode);
            }
        }
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        let mut calm = 0;
        loop {
            let event = if self.neighbours.has_in_flight() {
                AllocationEvent::Registry(Receipt::Taken)
            } else if self.neighbours.has_calls() {
                AllocationEvent::Return(0, Reply::Good)
            } else if calm < CALM_MAX && self.supervisor.next_timer().is_some() && !self.is_content() {
                calm += 1;
                AllocationEvent::Pass
            } else {
                return self.check_end();
            };
            self.take(&event)?;
        }
    }
}

fn supervisor(
    config: AllocationConfig,
    now: Timestamp,
    tamper: Option<Rc<dyn Tamper<Allocation>>>,
) -> Supervisor {
    let laws = AllocationLaws::new(config.clone(), now);
    StandIn::begin(config, NoDisk, laws, Rules::default()).tampered_with(tamper)
}

fn config(task: Task, health: Health) -> AllocationConfig {
    let allocation = AllocationId::new("red").expect("it is a name");
    let workload = TaskName::new("plugin").expect("it is a name");
    let plugin = PluginName::new("zfs").expect("it is a name");
    let mut spec = AllocationSpec::new(allocation, workload, plugin, Role::Monolith);
    // Shorter than a round.
    spec.restart_when = RestartWhen::UnhealthyFor(Duration::from_secs(20));
    let layout = Layout::new("/data", "/run/callboard").expect("they are short and absolute");
    let plan = Plan::new(&layout, &spec).expect("the paths are short");
    AllocationConfig { spec, plan, options: AllocationOptions::default(), task, health }
}
