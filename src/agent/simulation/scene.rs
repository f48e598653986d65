//! The agent, its two processes, the allocations, the health of the plugins and time: small enough to try every order.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::agent::{
    Agent, AgentCall, AgentOptions, AgentOutcome, AllocationConfig, Ended, Living, Memory, Replace,
    RestartPolicy, StartTask, StopTask, TaskPhase,
};
use callboard_actors::allocations::{AllocationStopped, RestartWhen, TaskContext};
use callboard_actors::instances::{AwaitHealthy, AwaitHealthyError};
use callboard_actors::process::ProcessExit;
use callboard_actors::shell::{AskError, Machine, Message, StopMode, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, Attempt, PluginName, Probing, Role, SocketPath, Timestamp};
use callboard_simulation::{
    Actor, Disk, Law, Rules, Scene, SceneEvent as Event, Stage, StandIn, Verdict, Violation,
};

use super::event::{AgentBounds, AgentEvent, Who};
use super::laws::AgentLaws;

/// How long `new` must have been healthy.
const HEALTHY_FOR: Duration = Duration::from_secs(1);
/// The timeout for that.
const WITHIN: Duration = Duration::from_secs(5);
/// More restarts than anything here needs.
const RESTARTS_MAX: u32 = 1_000;

/// The memory of the agent: written at once.
#[derive(Debug, Clone, Hash, Default)]
pub struct AgentDisk(BTreeMap<AllocationId, Memory>);

impl Disk<Agent> for AgentDisk {
    fn write(&mut self, _: Ticket, (allocation, memory): (AllocationId, Memory)) -> Written {
        self.0.insert(allocation, memory);
        Written::Now
    }
}

#[derive(Debug, Clone, Hash)]
struct Process {
    attempt: Attempt,
    pid: u32,
    /// When it is killed, if it was asked to end.
    killed_at: Option<Timestamp>,
}

/// A question about health.
#[derive(Debug, Clone, Hash)]
struct Question {
    call: u64,
    awaited: AwaitHealthy,
    until: Timestamp,
}

/// Everything around the agent.
#[derive(Debug, Clone, Hash, Default)]
pub struct AgentScene {
    living: BTreeMap<Who, Process>,
    /// The latest process id.
    pid: u32,
    /// What has ended, and was not reported.
    ended: VecDeque<(Who, Attempt)>,
    awaits_endings: Option<u64>,
    /// The calls that come back later.
    pending: BTreeMap<Who, VecDeque<(u64, AgentCall)>>,
    questions: VecDeque<Question>,
    /// Whether the stop of an allocation was requested.
    is_stopped_by_hand: bool,
    /// Whether processes survive the host.
    survives: bool,
}

impl AgentScene {
    fn ends(&mut self, who: Who) {
        if let Some(process) = self.living.remove(&who) {
            self.ended.push_back((who, process.attempt));
        }
    }

    fn launched(&mut self, call: &AgentCall) -> AgentOutcome {
        match call {
            AgentCall::Launch(_) => AgentOutcome::Launched(Ok(self.pid)),
            _ => {
                AgentOutcome::Withdrawn(Ok(Ok(AllocationStopped { deregistered: true, remarks: Vec::new() })))
            }
        }
    }

    fn may_fail(&self, stage: &Stage<Self>) -> bool {
        self.questions.front().is_some_and(|question| question.until <= stage.now())
    }
}

impl Scene for AgentScene {
    type Machine = Agent;
    type Disk = AgentDisk;
    type Laws = AgentLaws;
    type Bounds = AgentBounds;
    type Event = AgentEvent;

    fn begin(bounds: &AgentBounds, _: Timestamp) -> (Self, Actor<Self>) {
        let allocation = |who| AllocationConfig { survives: bounds.survives, ..allocation(who) };
        let options = AgentOptions {
            allocations: vec![allocation(Who::Old), allocation(Who::New)],
            restart: RestartPolicy::new(RESTARTS_MAX, Duration::from_secs(3_600), Duration::from_secs(1)),
            environment: BTreeMap::new(),
        };
        let laws = AgentLaws::of(bounds.survives);
        let mut scene = Self { survives: bounds.survives, ..Self::default() };
        if bounds.survives {
            scene.pid = 1;
            scene.living.insert(Who::Old, Process { attempt: Attempt::new(1), pid: 1, killed_at: None });
        }
        (scene, StandIn::begin(options, AgentDisk::default(), laws, Rules::default()))
    }

    fn stops(bounds: &AgentBounds) -> &'static [StopMode] {
        bounds.stops
    }

    fn bound<'a>(left: &'a mut AgentBounds, event: &Event<AgentEvent>) -> Option<&'a mut u8> {
        match event {
            Event::Own(AgentEvent::Replace) => Some(&mut left.replacements),
            Event::Own(AgentEvent::Start(_)) => Some(&mut left.starts),
            Event::Own(AgentEvent::Stop(_)) => Some(&mut left.stops_asked),
            Event::Own(AgentEvent::Die(_)) => Some(&mut left.deaths),
            Event::Own(AgentEvent::LoseHealth) => Some(&mut left.losses),
            Event::Pass => Some(&mut left.pauses),
            Event::Crash => Some(&mut left.crashes),
            Event::Own(
                AgentEvent::Return(_) | AgentEvent::End(_) | AgentEvent::Reap | AgentEvent::Health(_),
            )
            | Event::Stop(_) => None,
        }
    }

    fn verdict(laws: &AgentLaws) -> &Verdict {
        &laws.verdict
    }

    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<AgentEvent>>) {
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(Event::Own(event)));
        for who in Who::ALL {
            let process = self.living.get(&who);
            maybe(process.is_some_and(|process| process.killed_at.is_some()), AgentEvent::End(who));
            maybe(process.is_some(), AgentEvent::Die(who));
            maybe(self.pending.get(&who).is_some_and(|calls| !calls.is_empty()), AgentEvent::Return(who));
        }
        if stage.actor().has_ended() {
            return;
        }
        for who in Who::ALL {
            maybe(true, AgentEvent::Start(who));
            maybe(true, AgentEvent::Stop(who));
        }
        let has_question = !self.questions.is_empty();
        maybe(true, AgentEvent::Replace);
        maybe(self.awaits_endings.is_some() && !self.ended.is_empty(), AgentEvent::Reap);
        maybe(has_question, AgentEvent::Health(true));
        maybe(self.may_fail(stage), AgentEvent::Health(false));
        maybe(has_question, AgentEvent::LoseHealth);
    }

    fn happens(&mut self, stage: &mut Stage<Self>, event: AgentEvent) -> Result<(), Violation> {
        match event {
            AgentEvent::Replace => {
                let (allocation, with) = (Who::Old.id(), Who::New.id());
                let replace = Replace { allocation, with, healthy_for: HEALTHY_FOR, within: WITHIN };
                stage.ask(replace.into_ask());
            }
            AgentEvent::Start(who) => stage.ask(StartTask { allocation: who.id() }.into_ask()),
            AgentEvent::Stop(who) => {
                self.is_stopped_by_hand = true;
                stage.ask(StopTask { allocation: who.id() }.into_ask());
            }
            AgentEvent::Return(who) => {
                if let Some((number, call)) = self.pending.get_mut(&who).and_then(VecDeque::pop_front) {
                    let outcome = self.launched(&call);
                    stage.returned(number, outcome);
                }
            }
            AgentEvent::End(who) | AgentEvent::Die(who) => self.ends(who),
            AgentEvent::Reap => {
                if let Some(number) = self.awaits_endings.take() {
                    let ended = self.ended.drain(..).map(|(who, attempt)| Ended {
                        allocation: who.id(),
                        attempt,
                        exit: Some(ProcessExit::Code(0)),
                        how: "exit code 0".to_owned(),
                    });
                    stage.returned(number, AgentOutcome::Endings(ended.collect()));
                }
            }
            AgentEvent::Health(is_healthy) => {
                if let Some(Question { call, awaited, .. }) = self.questions.pop_front() {
                    let refusal = || AwaitHealthyError::NotHealthy {
                        allocation: awaited.allocation.clone(),
                        reason: "it fails".to_owned(),
                        waited: awaited.within,
                    };
                    let answer = is_healthy.then_some(()).ok_or_else(refusal);
                    stage.returned(call, AgentOutcome::AwaitedHealthy(Ok(answer)));
                }
            }
            AgentEvent::LoseHealth => {
                if let Some(Question { call, .. }) = self.questions.pop_front() {
                    let error = AskError::NotRunning { actor: "instances".to_owned() };
                    stage.returned(call, AgentOutcome::AwaitedHealthy(Err(error)));
                }
            }
        }
        Ok(())
    }

    fn called(&mut self, stage: &mut Stage<Self>, number: u64, call: AgentCall) -> Result<(), Violation> {
        match call {
            AgentCall::Survey => {
                let living = self.living.iter().map(|(who, process)| Living {
                    allocation: who.id(),
                    attempt: process.attempt,
                    pid: process.pid,
                });
                stage.returned(number, AgentOutcome::Surveyed(living.collect()));
            }
            AgentCall::AwaitEndings => self.awaits_endings = Some(number),
            // The allocations have nothing to say.
            AgentCall::Follow { .. } => {}
            AgentCall::Prepare(spec) => {
                stage.returned(number, AgentOutcome::Prepared(Ok(Ok(context(&spec.allocation)))));
            }
            AgentCall::Adopt(spec) => {
                stage.returned(number, AgentOutcome::Adopted(Ok(Ok(context(&spec.allocation)))));
            }
            AgentCall::Launch(order) => {
                let who = Who::of(&order.allocation);
                if self.living.contains_key(&who) {
                    return violation(Law::Prc3, format!("{} has two processes", order.allocation));
                }
                self.pid += 1;
                let process = Process { attempt: order.attempt, pid: self.pid, killed_at: None };
                self.living.insert(who, process);
                self.pending.entry(who).or_default().push_back((number, AgentCall::Launch(order)));
            }
            AgentCall::Withdraw(allocation) => {
                let pending = self.pending.entry(Who::of(&allocation)).or_default();
                pending.push_back((number, AgentCall::Withdraw(allocation)));
            }
            AgentCall::Announce(_) => stage.returned(number, AgentOutcome::Announced(Ok(Ok(())))),
            AgentCall::Report { .. } => stage.returned(number, AgentOutcome::Reported(Ok(Ok(())))),
            AgentCall::End { allocation, grace } => {
                if let Some(process) = self.living.get_mut(&Who::of(&allocation)) {
                    process.killed_at.get_or_insert(stage.now() + grace);
                }
                stage.returned(number, AgentOutcome::EndAsked);
            }
            AgentCall::AwaitHealthy(awaited) => {
                let until = stage.now() + awaited.within;
                self.questions.push_back(Question { call: number, awaited, until });
            }
        }
        Ok(())
    }

    fn loads(&mut self, stage: &mut Stage<Self>) -> <Agent as Machine>::Image {
        self.awaits_endings = None;
        self.pending.clear();
        self.questions.clear();
        stage.actor().books.0.clone()
    }

    fn due(&self) -> Option<Timestamp> {
        let questions = self.questions.iter().map(|question| question.until);
        questions.chain(self.living.values().filter_map(|process| process.killed_at)).min()
    }

    fn passes(&mut self, stage: &mut Stage<Self>) {
        for who in Who::ALL {
            let killed_at = self.living.get(&who).and_then(|process| process.killed_at);
            if killed_at.is_some_and(|at| at <= stage.now()) {
                self.ends(who);
            }
        }
    }

    /// Every plugin is healthy from now on.
    fn next(&self, stage: &Stage<Self>) -> Option<AgentEvent> {
        let to_end = self.living.iter().find(|(_, process)| process.killed_at.is_some());
        if let Some((who, _)) = to_end {
            return Some(AgentEvent::End(*who));
        }
        if stage.actor().has_ended() {
            return None;
        }
        if self.awaits_endings.is_some() && !self.ended.is_empty() {
            return Some(AgentEvent::Reap);
        }
        let pending = self.pending.iter().find(|(_, calls)| !calls.is_empty());
        let question = || (!self.questions.is_empty()).then_some(AgentEvent::Health(true));
        pending.map(|(who, _)| AgentEvent::Return(*who)).or_else(question)
    }

    /// A replacement leaves one of the two running, and no process lives that the agent does not know to run.
    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        if let Some(mode) = stage.stopped() {
            let (has_ended, lives) = (stage.actor().has_ended(), !self.living.is_empty());
            let may_live = mode == StopMode::Detach && self.survives;
            let wrong = !has_ended || (lives && !may_live);
            return if wrong { violation(Law::S4, "told to stop, it leaves something") } else { Ok(()) };
        }
        let Some(machine) = stage.actor().machine() else {
            return violation(Law::Shell4, "the agent does not live");
        };
        for report in machine.view() {
            let runs = report.phase == TaskPhase::Running;
            if runs != self.living.contains_key(&Who::of(&report.allocation)) {
                return violation(Law::Prc3, format!("{} is {}", report.allocation, report.phase));
            }
        }
        if self.living.is_empty() && !self.is_stopped_by_hand {
            return violation(Law::F16, "both have been stopped, and that was not requested");
        }
        Ok(())
    }
}

/// `old` starts with the host.
fn allocation(who: Who) -> AllocationConfig {
    AllocationConfig {
        name: who.id(),
        plugin: PluginName::new("zfs").expect("it is a name"),
        role: Role::Node,
        program: PathBuf::from("/bin/zfs-csi"),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        health_timeout: Duration::from_secs(30),
        restart_when: RestartWhen::Never,
        probing: Probing::default(),
        failover: None,
        volumes: Vec::new(),
        start: who == Who::Old,
        survives: false,
        stop_grace: Duration::from_secs(5),
    }
}

fn violation(law: Law, what: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { law, what: what.into() })
}

fn context(allocation: &AllocationId) -> TaskContext {
    let socket = SocketPath::new(format!("/{allocation}.sock")).expect("it is short and absolute");
    TaskContext { environment: BTreeMap::new(), mounts: Vec::new(), socket }
}
