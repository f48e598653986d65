//! The supervisor of one allocation, its task and its neighbours: small enough to try every order of events.

use std::time::Duration;

use callboard_actors::allocation::{
    Allocation, AllocationAnswer, AllocationAsk, AllocationCall, AllocationConfig, AllocationNews,
    AllocationOptions, AllocationPhase, AllocationSpec, Layout, Listener, MakeReady, NoteDisk, NoteExit,
    NoteHealth, NoteStart, Plan, RestartWhen, StopSupervision, Task,
};
use callboard_actors::shell::{Machine, StopMode};
use callboard_actors::vocabulary::{AllocationId, Health, PluginName, Role, TaskName, Timestamp};

use super::super::instances::NoDisk;
use super::super::law::Law;
use super::super::law_checker::{Verdict, Violation, violation};
use super::super::search::{Actor, Scene, SceneEvent as Event, Stage};
use super::super::stand_in::{Left, Refusal, Rules, StandIn};
use super::event::{AllocationBounds, AllocationEvent, Receipt, Reply};
use super::laws::AllocationLaws;
use super::neighbours::{Neighbours, Returned};
use super::owner::Owner;
use super::surroundings::Surroundings;

/// The owner of a supervisor, and all neighbours of the supervisor.
#[derive(Debug, Clone, Hash)]
pub struct AllocationScene {
    pub(super) neighbours: Neighbours,
    pub(super) owner: Owner,
    is_signed_off: bool,
    /// Whether a fault or a timeout occurred during the stop.
    pub(super) is_disturbed: bool,
}

impl AllocationScene {
    // === The owner ===

    fn order(&mut self, stage: &mut Stage<Self>, ask: AllocationAsk) {
        stage.ask(ask.clone());
        self.owner.says(stage.askers(), ask);
    }

    /// A registered supervisor receives notifications about its instance, and before that notifications about the disk.
    fn news(stage: &Stage<Self>) -> AllocationAsk {
        match stage.actor.checker.has_rounds() {
            true => AllocationAsk::NoteHealth(NoteHealth),
            false => AllocationAsk::NoteDisk(NoteDisk),
        }
    }

    /// The next supervisor knows what the former one was notified of, and receives all unanswered messages again.
    fn fall(&mut self, stage: &mut Stage<Self>) {
        stage.replace(supervisor(config(self.owner.task, self.owner.health.clone()), stage.now));
        self.neighbours.forget_caller();
        let (again, start) = self.owner.says_again();
        again.into_iter().for_each(|(asker, ask)| stage.ask_again(asker, ask));
        start.into_iter().for_each(|start| self.order(stage, start));
    }

    /// The task may continue to run, and the next start of the host reports it.
    fn kill(&mut self, stage: &mut Stage<Self>) {
        self.owner.forgets();
        self.is_signed_off = false;
        self.neighbours.next_run();
        stage.begin_run(supervisor(config(self.owner.task, self.owner.health.clone()), stage.now));
    }

    // === Possible events ===

    /// A host that ends, or that received the last report of a supervisor, needs no other supervisor.
    fn may_fall(&self, stage: &Stage<Self>) -> bool {
        !self.is_signed_off && stage.stopped.is_none()
    }

    fn is_leaving(&self, stage: &Stage<Self>) -> bool {
        self.owner.task == Task::Leaving || stage.stopped.is_some()
    }

    fn returned(stage: &mut Stage<Self>, returned: Option<Returned>) {
        match returned {
            Some((number, Ok(outcome))) => stage.returned(number, outcome),
            Some((number, Err(lost))) => stage.lost(number, lost),
            None => {}
        }
    }
}

impl Scene for AllocationScene {
    type Machine = Allocation;
    type Disk = NoDisk;
    type Laws = AllocationLaws;
    type Bounds = AllocationBounds;
    type Event = AllocationEvent;

    const CALM_MAX: u32 = 24;
    const MAY_CRASH: bool = false;

    fn begin(_: &AllocationBounds, now: Timestamp) -> (Self, Actor<Self>) {
        let config = config(Task::NotStarted, Health::Starting);
        let (allocation, socket) = (config.spec.allocation.clone(), config.plan.context.socket.clone());
        let scene = Self {
            neighbours: Neighbours::new(Surroundings::new(allocation, socket, "org.example.zfs".into())),
            owner: Owner::new(),
            is_signed_off: false,
            is_disturbed: false,
        };
        (scene, supervisor(config, now))
    }

    fn stops(bounds: &AllocationBounds) -> &'static [StopMode] {
        bounds.stops
    }

    fn bound<'a>(left: &'a mut AllocationBounds, event: &Event<AllocationEvent>) -> Option<&'a mut u8> {
        match event {
            Event::Own(AllocationEvent::Prepare | AllocationEvent::Start | AllocationEvent::Exit) => {
                Some(&mut left.orders)
            }
            Event::Own(AllocationEvent::StopSupervision) => Some(&mut left.leaves),
            Event::Own(AllocationEvent::News) => Some(&mut left.news),
            Event::Own(AllocationEvent::Fall) => Some(&mut left.falls),
            Event::Own(AllocationEvent::Kill) => Some(&mut left.kills),
            Event::Own(
                AllocationEvent::Return(_, Reply::Good) | AllocationEvent::Registry(Receipt::Taken),
            ) => None,
            Event::Own(AllocationEvent::Return(..) | AllocationEvent::Registry(_)) => Some(&mut left.faults),
            Event::Pass => Some(&mut left.pauses),
            Event::Crash | Event::Stop(_) => None,
        }
    }

    fn verdict(laws: &AllocationLaws) -> &Verdict {
        &laws.verdict
    }

    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<AllocationEvent>>) {
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(Event::Own(event)));
        for (place, reply) in self.neighbours.replies() {
            maybe(true, AllocationEvent::Return(place, reply));
        }
        for receipt in self.neighbours.receipts() {
            maybe(true, AllocationEvent::Registry(receipt));
        }
        if stage.actor.has_ended() {
            return;
        }
        let is_up = stage.stopped.is_none();
        maybe(is_up, AllocationEvent::Prepare);
        maybe(is_up, AllocationEvent::Start);
        maybe(is_up && self.owner.task == Task::Running, AllocationEvent::Exit);
        maybe(is_up, AllocationEvent::StopSupervision);
        maybe(is_up, AllocationEvent::News);
        maybe(self.may_fall(stage), AllocationEvent::Fall);
        maybe(true, AllocationEvent::Kill);
    }

    fn happens(&mut self, stage: &mut Stage<Self>, event: AllocationEvent) -> Result<(), Violation> {
        match event {
            AllocationEvent::Prepare => {
                self.order(stage, AllocationAsk::MakeReady(MakeReady { listener: Listener::Welcome }));
            }
            AllocationEvent::Start => {
                self.neighbours.around.process += 1;
                self.order(stage, AllocationAsk::NoteStart(NoteStart));
            }
            AllocationEvent::Exit => {
                self.order(stage, AllocationAsk::NoteExit(NoteExit { how: "signal 9".to_owned() }));
            }
            AllocationEvent::StopSupervision => {
                self.order(stage, AllocationAsk::StopSupervision(StopSupervision))
            }
            AllocationEvent::Return(place, reply) => {
                self.is_disturbed |= reply != Reply::Good && self.is_leaving(stage);
                Self::returned(stage, self.neighbours.reply(place, reply));
            }
            AllocationEvent::Registry(receipt) => Self::returned(stage, self.neighbours.receive(receipt)),
            AllocationEvent::News => self.order(stage, Self::news(stage)),
            AllocationEvent::Fall => self.fall(stage),
            AllocationEvent::Kill => self.kill(stage),
        }
        Ok(())
    }

    fn called(&mut self, _: &mut Stage<Self>, number: u64, call: AllocationCall) -> Result<(), Violation> {
        self.neighbours.called(number, call);
        Ok(())
    }

    fn answered(&mut self, _: &Stage<Self>, asker: u64, answer: &AllocationAnswer) -> Result<(), Violation> {
        self.is_signed_off |= matches!(answer, AllocationAnswer::StopSupervision(_));
        self.owner.unanswered.remove(&asker);
        Ok(())
    }

    fn refused(&mut self, asker: u64, _: Refusal) -> Result<(), Violation> {
        violation(Law::Shell4, format!("question {asker} was lost"))
    }

    fn told(&mut self, _: &mut Stage<Self>, left: Left<Allocation>) {
        if let Left::News(_, AllocationNews::Changed(status)) = left {
            self.owner.health = status.health;
        }
    }

    fn heard(&mut self, stage: &mut Stage<Self>) -> Result<(), Violation> {
        if stage.actor.has_ended() {
            self.neighbours.forget_caller();
            self.owner.unanswered.clear();
        }
        Ok(())
    }

    fn loads(&mut self, _: &mut Stage<Self>) {}

    fn due(&self) -> Option<Timestamp> {
        None
    }

    fn passes(&mut self, stage: &mut Stage<Self>) {
        self.is_disturbed |= self.is_leaving(stage);
    }

    fn next(&self, _: &Stage<Self>) -> Option<AllocationEvent> {
        if self.neighbours.has_in_flight() {
            return Some(AllocationEvent::Registry(Receipt::Taken));
        }
        self.neighbours.has_calls().then_some(AllocationEvent::Return(0, Reply::Good))
    }

    /// From there on all rounds are alike.
    fn is_at_rest(&self, stage: &Stage<Self>) -> bool {
        let status = stage.actor.machine().map(Machine::view);
        status.is_some_and(|status| {
            status.phase == AllocationPhase::Registered && status.health == Health::Healthy
        })
    }

    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        self.check_rest(stage)
    }
}

fn supervisor(config: AllocationConfig, now: Timestamp) -> Actor<AllocationScene> {
    let laws = AllocationLaws::new(config.clone(), now);
    StandIn::begin(config, NoDisk, laws, Rules::default())
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
