//! The agent, its two processes, the allocations, volumes, the health of the plugins and time: small enough to try every order of events.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use callboard_actors::agent::{
    Agent, AgentAsk, AgentCall, AgentOptions, AgentOutcome, AllocationConfig, Ended, Living, Memory, Replace,
    RestartPolicy, StartTask, StopTask, TaskPhase, TaskReport,
};
use callboard_actors::allocations::AllocationStopped;
use callboard_actors::instances::AwaitHealthyError;
use callboard_actors::process::ProcessExit;
use callboard_actors::shell::{AskError, Machine, StopMode, Ticket, Written};
use callboard_actors::vocabulary::{AllocationId, Attempt, Timestamp};

use super::event::{AgentBounds, AgentEvent, Who};
use super::laws::AgentLaws;
use super::parts::{Process, Question, allocation, context, restart_requested, violation};
use super::volumes::{Volumes, volume};
use crate::{Actor, Disk, Law, Rules, Scene, SceneEvent as Event, Stage, StandIn, Verdict, Violation};

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

/// Everything around the agent.
#[derive(Debug, Clone, Hash, Default)]
pub struct AgentScene {
    living: BTreeMap<Who, Process>,
    /// The latest process id.
    pid: u32,
    /// The ended processes that were not reported.
    ended: VecDeque<(Who, Attempt)>,
    awaits_endings: Option<u64>,
    /// The call that waits for notifications of the allocations.
    follows: Option<u64>,
    /// The calls that return later.
    pending: BTreeMap<Who, VecDeque<(u64, AgentCall)>>,
    questions: VecDeque<Question>,
    volumes: Volumes,
    /// Whether a process does not end when it is killed.
    has_hung: bool,
    /// Whether time passed before the agent was notified of an end; it may have given up waiting for it.
    is_heard_late: bool,
    /// Whether the stop of an allocation was requested, or its volumes were refused permanently.
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

    fn comes_back(&mut self, who: Who, call: &AgentCall) -> AgentOutcome {
        match call {
            AgentCall::Launch(_) => AgentOutcome::Launched(Ok(self.pid)),
            AgentCall::Claim { volumes, .. } => AgentOutcome::Claimed(Ok(self.volumes.claim(who, volumes))),
            AgentCall::Release { .. } => {
                self.volumes.late_at = None;
                self.volumes.held.remove(&who);
                AgentOutcome::Released(Ok(()))
            }
            _ => {
                AgentOutcome::Withdrawn(Ok(Ok(AllocationStopped { deregistered: true, remarks: Vec::new() })))
            }
        }
    }

    fn may_fail(&self, stage: &Stage<Self>) -> bool {
        self.questions.front().is_some_and(|question| question.until <= stage.now())
    }

    /// The living processes, as a survey finds them.
    fn surveyed(&self) -> Vec<Living> {
        let living = self.living.iter().map(|(who, process)| Living {
            allocation: who.id(),
            attempt: process.attempt,
            pid: process.pid,
            started_at: Timestamp::default(),
        });
        living.collect()
    }

    /// Reports the ended processes to the agent, if it waits for them.
    fn reap(&mut self, stage: &mut Stage<Self>) {
        let Some(number) = self.awaits_endings.take() else { return };
        let ended = self.ended.drain(..).map(|(who, attempt)| Ended {
            allocation: who.id(),
            attempt,
            exit: Some(ProcessExit::Code(0)),
            how: "exit code 0".to_owned(),
        });
        stage.returned(number, AgentOutcome::Endings(ended.collect()));
    }
}

impl Scene for AgentScene {
    type Machine = Agent;
    type Disk = AgentDisk;
    type Laws = AgentLaws;
    type Bounds = AgentBounds;
    type Event = AgentEvent;

    fn begin(bounds: &AgentBounds, _: Timestamp) -> (Self, Actor<Self>) {
        let allocation = |who| AllocationConfig {
            survives: bounds.survives,
            volumes: if bounds.volumes && who == Who::Old { vec![volume()] } else { Vec::new() },
            ..allocation(who)
        };
        let options = AgentOptions {
            allocations: vec![allocation(Who::Old), allocation(Who::New)],
            restart: RestartPolicy::new(RESTARTS_MAX, Duration::from_secs(3_600), Duration::from_secs(1)),
            environment: BTreeMap::new(),
        };
        let laws = AgentLaws::of(bounds.survives);
        let volumes = Volumes::used_by(bounds.volumes.then_some(Who::Old), bounds.survives);
        let mut scene = Self { survives: bounds.survives, volumes, ..Self::default() };
        if bounds.survives {
            scene.pid = 1;
            scene.living.insert(Who::Old, Process::new(Attempt::new(1), 1));
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
            Event::Own(AgentEvent::Restart(_)) => Some(&mut left.restarts),
            Event::Own(AgentEvent::Die(_)) => Some(&mut left.deaths),
            Event::Own(AgentEvent::LoseHealth) => Some(&mut left.losses),
            Event::Own(AgentEvent::Refuse { .. }) => Some(&mut left.refusals),
            Event::Own(AgentEvent::Hang(_)) => Some(&mut left.hangs),
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
            maybe(process.is_some_and(|process| process.ends_at().is_some()), AgentEvent::Hang(who));
            maybe(process.is_some(), AgentEvent::Die(who));
            let open = self.pending.get(&who).and_then(VecDeque::front).map(|(_, call)| call);
            let is_claim = matches!(open, Some(AgentCall::Claim { .. }));
            let is_release = matches!(open, Some(AgentCall::Release { .. }));
            maybe(is_claim || is_release, AgentEvent::Refuse { who, is_transient: true });
            maybe(is_claim, AgentEvent::Refuse { who, is_transient: false });
            maybe(self.pending.get(&who).is_some_and(|calls| !calls.is_empty()), AgentEvent::Return(who));
        }
        if stage.actor().has_ended() {
            return;
        }
        for who in Who::ALL {
            maybe(true, AgentEvent::Start(who));
            maybe(true, AgentEvent::Stop(who));
            maybe(self.follows.is_some() && self.living.contains_key(&who), AgentEvent::Restart(who));
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
                stage.ask(AgentAsk::Replace(replace));
            }
            AgentEvent::Start(who) => stage.ask(AgentAsk::StartTask(StartTask { allocation: who.id() })),
            AgentEvent::Stop(who) => {
                self.is_stopped_by_hand = true;
                stage.ask(AgentAsk::StopTask(StopTask { allocation: who.id(), even_if_used: false }));
            }
            AgentEvent::Restart(who) => {
                if let Some(number) = self.follows.take() {
                    stage.returned(number, restart_requested(who));
                }
            }
            AgentEvent::Return(who) => {
                if let Some((number, call)) = self.pending.get_mut(&who).and_then(VecDeque::pop_front) {
                    let outcome = self.comes_back(who, &call);
                    stage.returned(number, outcome);
                }
            }
            AgentEvent::Refuse { who, is_transient } => {
                if let Some((number, call)) = self.pending.get_mut(&who).and_then(VecDeque::pop_front) {
                    self.is_stopped_by_hand |= !is_transient;
                    let outcome = self.volumes.refuse(who, &call, is_transient);
                    stage.returned(number, outcome);
                }
            }
            AgentEvent::Hang(who) => {
                self.has_hung = true;
                self.living.get_mut(&who).into_iter().for_each(|process| process.hangs = true);
            }
            AgentEvent::End(who) | AgentEvent::Die(who) => self.ends(who),
            AgentEvent::Reap => self.reap(stage),
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
            AgentCall::Survey => stage.returned(number, AgentOutcome::Surveyed(self.surveyed())),
            AgentCall::AwaitEndings => self.awaits_endings = Some(number),
            AgentCall::Follow { .. } => self.follows = Some(number),
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
                self.volumes.launch(who)?;
                self.pid += 1;
                self.living.insert(who, Process::new(order.attempt, self.pid));
                self.pending.entry(who).or_default().push_back((number, AgentCall::Launch(order)));
            }
            AgentCall::Withdraw { allocation, even_if_used } => {
                let pending = self.pending.entry(Who::of(&allocation)).or_default();
                pending.push_back((number, AgentCall::Withdraw { allocation, even_if_used }));
            }
            AgentCall::Claim { ref allocation, .. } => {
                self.pending.entry(Who::of(allocation)).or_default().push_back((number, call));
            }
            // The outcome is always the same.
            AgentCall::CallOff(_) => stage.returned(number, AgentOutcome::CalledOff),
            AgentCall::Release { ref allocation, within, .. } => {
                self.volumes.late_at = Some(stage.now() + within);
                let who = Who::of(allocation);
                if self.living.contains_key(&who) {
                    return violation(
                        Law::V8,
                        format!("{allocation} has a process and releases its volumes"),
                    );
                }
                self.pending.entry(who).or_default().push_back((number, call));
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
        self.follows = None;
        self.pending.clear();
        self.volumes.proven.clear();
        self.volumes.late_at = None;
        // An end that the agent gave up waiting for, and that a crashing step then receives, is not reported again.
        self.volumes.may_stay_held |= self.is_heard_late;
        self.questions.clear();
        stage.actor().store.0.clone()
    }

    fn due(&self) -> Option<Timestamp> {
        let questions = self.questions.iter().map(|question| question.until);
        let ends = self.living.values().filter_map(Process::ends_at);
        questions.chain(ends).chain(self.volumes.late_at).min()
    }

    fn passes(&mut self, stage: &mut Stage<Self>) {
        self.is_heard_late |= !self.ended.is_empty();
        self.volumes.late_at.take_if(|at| *at <= stage.now());
        for who in Who::ALL {
            let ends_at = self.living.get(&who).and_then(Process::ends_at);
            if ends_at.is_some_and(|at| at <= stage.now()) {
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

    /// A replacement leaves one of the two running, no process lives that the agent does not know to run, and no volume is held for
    /// an allocation that is not meant to run.
    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        if let Some(mode) = stage.stopped() {
            let (has_ended, lives) = (stage.actor().has_ended(), !self.living.is_empty());
            let may_live = mode == StopMode::Detach && self.survives;
            let wrong = !has_ended || (lives && !may_live && !self.has_hung);
            if wrong {
                return violation(Law::S4, "told to stop, it leaves something");
            }
            let is_kept = mode == StopMode::Detach || self.has_hung || self.is_heard_late;
            let is_kept = is_kept || self.volumes.is_given_up;
            return self.volumes.check_released(Who::ALL.into_iter().filter(|_| !is_kept));
        }
        let Some(machine) = stage.actor().machine() else {
            return violation(Law::Shell4, "the agent does not live");
        };
        let reports = machine.view();
        let has_stopped =
            |report: &&TaskReport| matches!(report.phase, TaskPhase::Stopped | TaskPhase::Failed);
        self.volumes
            .check_released(reports.iter().filter(has_stopped).map(|report| Who::of(&report.allocation)))?;
        for report in reports {
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
