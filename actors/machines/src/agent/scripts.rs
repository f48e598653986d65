//! Message scripts of the agent: the pure machine under virtual time.
//!
//! Each command is an input of the agent; below it come its effects in order. Calls stay open until the script returns them, the earliest
//! of its kind first. `crash` rebuilds the machine as the shell does.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::allocations::*;
use crate::instances::AwaitHealthyError;
use crate::kernel::{CallLost, Effect, Input, Machine, StopMode, StopStep};
use crate::vocabulary::*;
use crate::{AskError, FeedItem};
use goldenscript::{Command, Context, Runner};

use super::calls::*;
use super::config::{AllocationConfig, AllocationVolume, RestartPolicy};
use super::messages::*;
use super::state::*;
use crate::process::{LaunchError, ProcessExit, ProcessName};
use crate::stage::{parse_span, play_all};
use crate::surroundings::{Surroundings, begun};
use crate::volume::VolumeKey;

#[test]
fn every_story_of_the_agent_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/agent/scripts"), 24, Stage::new);
}

#[test]
fn the_books_and_the_launch_are_told_all_that_is_configured_of_an_allocation() {
    let (mut stage, mut told) = (Stage::new(), String::new());
    let mut options = options(&[("a".to_owned(), true)]);
    options.allocations[0].health_timeout = Duration::from_secs(45);
    stage.agent.options = options;
    stage.rebuild(&mut told);
    let spec = stage.surroundings.calls.iter().find_map(|(_, call)| match call {
        AgentCall::Prepare(spec) => Some(spec.clone()),
        _ => None,
    });
    let [name, task] = ["a", "plugin"];
    let new = AllocationSpec::new(
        AllocationId::new(name).unwrap(),
        TaskName::new(task).unwrap(),
        PluginName::new("zfs").unwrap(),
        Role::Monolith,
    );
    let environment = BTreeMap::from([("POOL".to_owned(), "tank".to_owned())]);
    let expected = AllocationSpec { health_timeout: Duration::from_secs(45), environment, ..new };
    assert_eq!(spec, Some(expected));
}

#[test]
fn a_launch_may_have_started_a_process_unless_its_answer_says_that_it_has_not_v8() {
    let actor = || "processes".to_owned();
    let name = ProcessName::new("a").unwrap();
    let unanswered = [
        (AskError::Busy { actor: actor(), in_flight: 1, limit: 1 }, false),
        (AskError::Crashed { actor: actor(), message: "boom".to_owned() }, false),
        (AskError::NotRunning { actor: actor() }, true),
        (AskError::NotDurable { actor: actor(), error: "no space".to_owned(), is_begun: false }, true),
        (AskError::NotWritten { actor: actor(), error: "too large".to_owned() }, true),
    ];
    for (error, may_live) in unanswered {
        let trouble = LaunchTrouble::from(error.clone());
        assert_eq!(trouble.may_live, may_live, "{error}");
        let waits_for_the_disk = matches!(error, AskError::NotDurable { .. });
        assert_eq!(trouble.is_of_disk, waits_for_the_disk, "{error}");
    }
    let occupied = LaunchError::Occupied { name: name.clone(), pid: Some(7) };
    assert!(LaunchTrouble::from(occupied).may_live);
    assert!(!LaunchTrouble::from(LaunchError::Stopping { name }).may_live);
}

/// An agent, its memory, its processes and a clock.
struct Stage {
    agent: Agent,
    memory: BTreeMap<AllocationId, Memory>,
    processes: BTreeMap<AllocationId, (Attempt, u32)>,
    surroundings: Surroundings<Agent>,
    born: u32,
}

fn allocation(name: &str, start: bool) -> AllocationConfig {
    AllocationConfig {
        name: AllocationId::new(name).unwrap(),
        plugin: PluginName::new("zfs").unwrap(),
        role: Role::Monolith,
        program: PathBuf::from("/bin/zfs-csi"),
        arguments: vec!["--listen=${CSI_ENDPOINT}".to_owned()],
        environment: BTreeMap::from([("POOL".to_owned(), "tank".to_owned())]),
        health_timeout: Duration::from_secs(30),
        restart_when: RestartWhen::Never,
        probing: Probing::default(),
        failover: None,
        volumes: Vec::new(),
        start,
        survives: false,
        stop_grace: Duration::from_secs(5),
    }
}

fn options(names: &[(String, bool)]) -> AgentOptions {
    let mut restart = RestartPolicy::new(2, Duration::from_secs(60), Duration::from_secs(1));
    restart.backoff.jitter_percent = 0;
    AgentOptions {
        allocations: names.iter().map(|(name, start)| allocation(name, *start)).collect(),
        restart,
        environment: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
    }
}

impl Stage {
    fn new() -> Self {
        let surroundings = Surroundings::default();
        let agent = Agent::restore(&options(&[]), BTreeMap::new(), surroundings.moment());
        Self { agent, memory: BTreeMap::new(), processes: BTreeMap::new(), surroundings, born: 100 }
    }

    fn step(&mut self, input: &Input<Agent>, told: &mut String) {
        let effects = self.surroundings.step(&mut self.agent, input);
        effects.into_iter().for_each(|effect| self.perform(effect, told));
    }

    fn perform(&mut self, effect: Effect<Agent>, told: &mut String) {
        match effect {
            Effect::Persist(_, (allocation, memory)) => {
                self.memory.insert(allocation, memory);
            }
            Effect::Reply(id, answer) => {
                self.surroundings.answered(id);
                writeln!(told, "answer: {}", tell_answer(answer)).unwrap();
            }
            Effect::Publish(AgentNews::TaskChanged(task)) => writeln!(told, "{}", tell_task(&task)).unwrap(),
            Effect::Call { key, call, .. } => {
                if let Some(line) = tell_call(&call) {
                    writeln!(told, "call: {line}").unwrap();
                }
                self.surroundings.calls.push((key, call));
            }
            Effect::StartTimer(timer, at) => self.surroundings.start_timer(timer, at),
            Effect::CancelTimer(timer) => self.surroundings.cancel_timer(&timer),
            Effect::Stop(ending) => {
                writeln!(told, "the agent ends: {ending:?} {}", tell_steps(&self.agent.stop_steps()))
                    .unwrap();
            }
        }
    }

    fn rebuild(&mut self, told: &mut String) {
        self.restore(told);
        self.survey(told);
    }

    fn restore(&mut self, told: &mut String) {
        let again = self.surroundings.begin_anew();
        let options = self.agent.options.clone();
        self.agent = Agent::restore(&options, self.memory.clone(), self.surroundings.moment());
        self.step(&Input::Resumed, told);
        again.iter().for_each(|asked| self.step(asked, told));
    }

    fn survey(&mut self, told: &mut String) {
        let living = self.processes.iter().map(|(allocation, (attempt, pid))| Living {
            allocation: allocation.clone(),
            attempt: *attempt,
            pid: *pid,
            started_at: begun(),
        });
        let outcome = AgentOutcome::Surveyed(living.collect());
        self.come_back(|call| matches!(call, AgentCall::Survey), outcome, told);
    }

    fn ask(&mut self, ask: AgentAsk, told: &mut String) {
        let asked = self.surroundings.ask(ask);
        self.step(&asked, told);
    }

    /// Returns the earliest such call.
    fn come_back(&mut self, is_meant: impl Fn(&AgentCall) -> bool, outcome: AgentOutcome, told: &mut String) {
        let returned = self.surroundings.returned(is_meant, Ok(outcome));
        self.step(&returned, told);
    }

    /// The earliest such call is lost.
    fn lose(&mut self, is_meant: impl Fn(&AgentCall) -> bool, told: &mut String) {
        let lost = CallLost::DeadlineExceeded(Duration::from_secs(30));
        let returned = self.surroundings.returned(is_meant, Err(lost));
        self.step(&returned, told);
    }

    fn ended(&mut self, name: AllocationId, how: String, told: &mut String) {
        let launched = self.surroundings.calls.iter().find_map(|(key, call)| match call {
            AgentCall::Launch(order) if order.allocation == name => Some(key.attempt),
            _ => None,
        });
        // It may end before the agent has received its launch.
        let born = self.processes.remove(&name).map(|(attempt, _)| attempt);
        let attempt = born.or(launched).expect("it has a process");
        let outcome = AgentOutcome::Endings(vec![Ended {
            allocation: name,
            attempt,
            exit: Some(ProcessExit::Code(1)),
            how,
        }]);
        self.come_back(|call| matches!(call, AgentCall::AwaitEndings), outcome, told);
    }

    fn hear(&mut self, news: AllocationsNews, told: &mut String) {
        let items = vec![FeedItem::Change { number: 1, news }];
        let outcome = AgentOutcome::Followed(Ok(items));
        self.come_back(|call| matches!(call, AgentCall::Follow { .. }), outcome, told);
    }

    fn wait(&mut self, span: Duration, told: &mut String) {
        let until = self.surroundings.now + span;
        while let Some(timer) = self.surroundings.next_timer(until) {
            writeln!(told, "at {:.1} s", self.surroundings.now.since(begun()).as_secs_f64()).unwrap();
            self.step(&Input::Elapsed(timer), told);
        }
        self.surroundings.now = until;
    }
}

fn tell_task(task: &TaskReport) -> String {
    let pid = task.pid.map_or_else(String::new, |pid| format!(" pid={pid}"));
    format!("{} is {}{pid} restarts={}: {}", task.allocation, task.phase, task.restarts, task.last_event)
}

/// The limits of its stop, and the steps that have ended so far.
fn tell_stop(task: &TaskReport) -> String {
    let at = |at: Timestamp| at.since(begun());
    let bound = task.stopping.map_or_else(String::new, |bound| {
        let kill = bound.kill.map_or_else(String::new, |kill| format!(", killed at {:?}", at(kill)));
        format!(", by {:?}{kill}", at(bound.by))
    });
    format!("{} is {}{bound} {}", task.allocation, task.phase, tell_steps(&task.ended)).trim_end().to_owned()
        + "\n"
}

fn used(allocation: &AllocationId) -> StopAllocationError {
    let reason = "the owner of the volumes does not answer".to_owned();
    StopAllocationError::Unclear { allocation: allocation.clone(), reason }
}

fn tell_steps(steps: &[StopStep]) -> String {
    let step = |step: &StopStep| {
        let left = if step.is_left { ", and it is left" } else { "" };
        format!("[{}: {} ({:?}){left}]", step.what, step.ending, step.took)
    };
    steps.iter().map(step).collect::<Vec<_>>().join(" ")
}

fn tell_answer(answer: AgentAnswer) -> String {
    match answer {
        AgentAnswer::StartTask(Ok(())) => "starts".to_owned(),
        AgentAnswer::StopTask(Ok(stopped)) => format!("stopped {}", tell_steps(&stopped.steps)),
        AgentAnswer::Replace(Ok(stopped)) => format!("replaced {}", tell_steps(&stopped.steps)),
        AgentAnswer::Replace(Err(error)) => error.to_string(),
        AgentAnswer::StartTask(Err(error)) | AgentAnswer::StopTask(Err(error)) => error.to_string(),
        AgentAnswer::ListTasks(tasks) => {
            let since = |task: &TaskReport| task.since.since(begun()).as_secs_f64();
            let tell = |task| format!("since {:.1} s {}", since(task), tell_task(task));
            tasks.iter().map(tell).collect::<Vec<_>>().join(" | ")
        }
    }
}

fn tell_call(call: &AgentCall) -> Option<String> {
    match call {
        AgentCall::Survey | AgentCall::AwaitEndings | AgentCall::Follow { afresh: false } => None,
        AgentCall::Follow { afresh: true } => Some("follow afresh".to_owned()),
        AgentCall::Prepare(spec) => Some(format!("prepare {}", spec.allocation)),
        AgentCall::Adopt(spec) => Some(format!("adopt {}", spec.allocation)),
        AgentCall::Claim { allocation, volumes, within } => {
            let volume = |volume: &AllocationVolume| {
                format!("{}{}", volume.volume, if volume.read_only { ":ro" } else { "" })
            };
            let volumes = volumes.iter().map(volume).collect::<Vec<_>>().join(" ");
            Some(format!("claim {allocation} {volumes} within {within:?}"))
        }
        AgentCall::CallOff(allocation) => Some(format!("call off the claim of {allocation}")),
        AgentCall::Release { allocation, observed, within } => {
            Some(format!("release {allocation} {observed:?} within {within:?}"))
        }
        AgentCall::Launch(order) => Some(format!(
            "launch {} {} {} {:?}",
            order.allocation,
            order.program.display(),
            order.arguments.join(" "),
            order.environment
        )),
        AgentCall::Announce(allocation) => Some(format!("announce {allocation}")),
        AgentCall::Withdraw { allocation, even_if_used } => {
            Some(format!("withdraw {allocation}{}", if *even_if_used { " even if used" } else { "" }))
        }
        AgentCall::End { allocation, grace } => Some(format!("end {allocation} within {grace:?}")),
        AgentCall::AwaitHealthy(awaited) => Some(format!(
            "await-healthy {} for {:?} within {:?}",
            awaited.allocation, awaited.healthy_for, awaited.within
        )),
        AgentCall::Report { allocation, how } => Some(format!("report {allocation} {how}")),
    }
}

fn context(name: &AllocationId) -> Result<TaskContext, Box<dyn Error>> {
    let socket = SocketPath::new(format!("/{name}.sock"))?;
    let environment = BTreeMap::from([("CSI_ENDPOINT".to_owned(), socket.to_endpoint())]);
    Ok(TaskContext { environment, mounts: vec![], socket })
}

fn status(allocation: AllocationId) -> AllocationStatus {
    AllocationStatus {
        allocation,
        task: TaskName::new("plugin").unwrap(),
        plugin: PluginName::new("zfs").unwrap(),
        role: Role::Monolith,
        phase: AllocationPhase::Prepared,
        health: Health::Starting,
        socket: SocketPath::new("/a.sock").unwrap(),
        since: begun(),
        last_event: "prepared".to_owned(),
    }
}

/// `NAME`, or `NAME:ro`.
fn volume(word: &str) -> AllocationVolume {
    let (name, read_only) = word.strip_suffix(":ro").map_or((word, false), |name| (name, true));
    let volume = VolumeKey {
        namespace: VolumeNamespace::new("default").unwrap(),
        name: VolumeName::new(name).unwrap(),
    };
    AllocationVolume { volume, variable: name.to_uppercase(), read_only }
}

fn not_running() -> AskError {
    AskError::NotRunning { actor: "allocations".to_owned() }
}

impl Runner for Stage {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut told = String::new();
        let mut arguments = command.consume_args();
        let mut words: Vec<String> = std::iter::from_fn(|| arguments.next_pos().map(str::to_owned)).collect();
        let idle: Vec<String> =
            std::iter::from_fn(|| arguments.next_key().map(|(name, _)| name.to_owned())).collect();
        if command.name == "agent" {
            let starting = words.into_iter().map(|name| (name, true));
            let names: Vec<_> = starting.chain(idle.into_iter().map(|name| (name, false))).collect();
            self.agent.options = options(&names);
            self.rebuild(&mut told);
            return Ok(told);
        }
        let first = if words.is_empty() { String::new() } else { words.remove(0) };
        let rest = words.join(" ");
        let name = AllocationId::new(&first).or_else(|_| AllocationId::new("none"))?;
        self.perform_command(&command.name, &first, &name, rest, &mut told)?;
        Ok(told)
    }
}

impl Stage {
    fn perform_command(
        &mut self,
        command: &str,
        first: &str,
        name: &AllocationId,
        rest: String,
        told: &mut String,
    ) -> Result<(), Box<dyn Error>> {
        let allocation = name.clone();
        let is_of = |call: &AgentCall, kind: &str| {
            tell_call(call).is_some_and(|line| {
                line == format!("{kind} {name}") || line.starts_with(&format!("{kind} {name} "))
            })
        };
        let unknown = || UnknownAllocation { allocation: name.clone() };
        match command {
            "forever" => self.agent.options.restart.budget = None,
            "surviving" => {
                self.agent.options.allocations.iter_mut().for_each(|config| config.survives = true);
                self.agent.tasks.iter_mut().for_each(|task| task.config.survives = true);
            }
            "volumes" => {
                let volumes: Vec<_> = rest.split_whitespace().map(volume).collect();
                let options = self.agent.options.allocations.iter_mut();
                let configs = options.chain(self.agent.tasks.iter_mut().map(|task| &mut task.config));
                for config in configs.filter(|config| config.name == allocation) {
                    config.arguments = volumes.iter().map(|v| format!("--at=${{{}}}", v.variable)).collect();
                    config.volumes = volumes.clone();
                }
            }
            "start" => self.ask(AgentAsk::StartTask(StartTask { allocation }), told),
            "stop" => {
                let even_if_used = rest == "even-if-used";
                self.ask(AgentAsk::StopTask(StopTask { allocation, even_if_used }), told);
            }
            "replace" => {
                let with = AllocationId::new(rest)?;
                let (healthy_for, within) = (Duration::from_secs(10), Duration::from_secs(60));
                self.ask(AgentAsk::Replace(Replace { allocation, with, healthy_for, within }), told);
            }
            "healthy" => {
                let waited = Duration::from_secs(60);
                let not_healthy = |reason| AwaitHealthyError::NotHealthy { allocation, reason, waited };
                let answer = match &*rest {
                    "not-running" => Err(not_running()),
                    "" => Ok(Ok(())),
                    _ => Ok(Err(not_healthy(rest))),
                };
                let outcome = AgentOutcome::AwaitedHealthy(answer);
                self.come_back(|call| is_of(call, "await-healthy"), outcome, told);
            }
            "list" => self.ask(AgentAsk::ListTasks(ListTasks), told),
            "leave" if first == "detach" => self.step(&Input::StopRequested(StopMode::Detach), told),
            "leave" => self.step(&Input::StopRequested(StopMode::Stop), told),
            "crash" if first == "unsurveyed" => self.restore(told),
            "crash" => self.rebuild(told),
            "next-run" => {
                self.surroundings.forget_questions();
                self.memory.clear();
                self.rebuild(told);
            }
            "next-life" => {
                self.surroundings.forget_questions();
                self.memory.values_mut().for_each(Memory::begin_life);
                self.rebuild(told);
            }
            "bound" => writeln!(told, "stops within {:?}", self.agent.stops_within())?,
            "stops" => self.agent.view().iter().for_each(|task| told.push_str(&tell_stop(task))),
            "wait" => self.wait(parse_span(first)?, told),
            "prepared" => {
                let outcome = AgentOutcome::Prepared(Ok(Ok(context(name)?)));
                self.come_back(|call| is_of(call, "prepare"), outcome, told);
            }
            "adopted" if rest.is_empty() => {
                let outcome = AgentOutcome::Adopted(Ok(Ok(context(name)?)));
                self.come_back(|call| is_of(call, "adopt"), outcome, told);
            }
            "adopted" => {
                let outcome = AgentOutcome::Adopted(Ok(Err(PrepareError::Full { held: 10_000 })));
                self.come_back(|call| is_of(call, "adopt"), outcome, told);
            }
            "refused" => {
                let refusal = PrepareError::Endpoint { allocation, reason: rest };
                let outcome = AgentOutcome::Prepared(Ok(Err(refusal)));
                self.come_back(|call| is_of(call, "prepare"), outcome, told);
            }
            "sick-disk" => {
                let refusal = PrepareError::Disk { allocation, path: "/data/csi".into(), reason: rest };
                let outcome = AgentOutcome::Prepared(Ok(Err(refusal)));
                self.come_back(|call| is_of(call, "prepare"), outcome, told);
            }
            "claimed" => {
                // All of them, or only the named ones.
                let task = self.agent.task(name).ok_or("there is no such allocation")?;
                let volumes = task.config.volumes.iter().map(|volume| volume.volume.clone());
                let is_meant = |key: &VolumeKey| rest.is_empty() || rest == key.name.as_str();
                let path =
                    |key: VolumeKey| (key.clone(), PathBuf::from(format!("/claims/{name}/{}", key.name)));
                let outcome = AgentOutcome::Claimed(Ok(volumes.filter(is_meant).map(path).collect()));
                self.come_back(|call| is_of(call, "claim"), outcome, told);
            }
            "claim-refused" | "claim-impossible" => {
                let trouble = ClaimTrouble { reason: rest, is_transient: command == "claim-refused" };
                self.come_back(|call| is_of(call, "claim"), AgentOutcome::Claimed(Err(trouble)), told);
            }
            "released" | "release-goes-on" => {
                let goes_on = command == "release-goes-on";
                let answer = if rest.is_empty() { Ok(()) } else { Err(Unreleased { reason: rest, goes_on }) };
                self.come_back(|call| is_of(call, "release"), AgentOutcome::Released(answer), told);
            }
            "born" => {
                self.born += 1;
                let pid = self.born;
                let mut attempt = Attempt::default();
                let at = self
                    .surroundings
                    .calls
                    .iter()
                    .find(|(_, call)| is_of(call, "launch"))
                    .ok_or("nothing is launched")?;
                if let AgentCall::Launch(order) = &at.1 {
                    attempt = order.attempt;
                }
                self.processes.insert(allocation, (attempt, pid));
                self.come_back(|call| is_of(call, "launch"), AgentOutcome::Launched(Ok(pid)), told);
            }
            "not-born" => {
                let outcome = AgentOutcome::Launched(Err(LaunchTrouble::not_started(rest)));
                self.come_back(|call| is_of(call, "launch"), outcome, told);
            }
            "not-recorded" => {
                let trouble = LaunchTrouble { is_of_disk: true, ..LaunchTrouble::not_started(rest) };
                let outcome = AgentOutcome::Launched(Err(trouble));
                self.come_back(|call| is_of(call, "launch"), outcome, told);
            }
            "perhaps-born" => {
                let trouble = LaunchTrouble { may_live: true, ..LaunchTrouble::not_started(rest) };
                let outcome = AgentOutcome::Launched(Err(trouble));
                self.come_back(|call| is_of(call, "launch"), outcome, told);
            }
            "announced" => {
                let answer = match &*rest {
                    "" => Ok(Ok(())),
                    "unknown" => Ok(Err(unknown())),
                    _ => Err(not_running()),
                };
                self.come_back(|call| is_of(call, "announce"), AgentOutcome::Announced(answer), told);
            }
            "withdrawn" => {
                let answer = match &*rest {
                    "unknown" => Ok(Err(unknown().into())),
                    "used" => Ok(Err(used(&allocation))),
                    "not-running" => Err(not_running()),
                    "" => Ok(Ok(AllocationStopped { deregistered: true, remarks: vec![] })),
                    remark => {
                        Ok(Ok(AllocationStopped { deregistered: true, remarks: vec![remark.to_owned()] }))
                    }
                };
                self.come_back(|call| is_of(call, "withdraw"), AgentOutcome::Withdrawn(answer), told);
            }
            "reported" => {
                let answer = if rest.is_empty() { Ok(Ok(())) } else { Err(not_running()) };
                self.come_back(|call| is_of(call, "report"), AgentOutcome::Reported(answer), told);
            }
            "ended" => self.ended(allocation, rest, told),
            "lost" => self.lose(|call| is_of(call, &rest), told),
            "deaf" if first == "processes" => {
                self.lose(|call| matches!(call, AgentCall::AwaitEndings), told);
            }
            "deaf" => self.lose(|call| matches!(call, AgentCall::Follow { .. }), told),
            "restart-requested" => {
                let task = TaskName::new("plugin")?;
                self.hear(AllocationsNews::RestartRequested { allocation, task, reason: rest }, told);
            }
            "task-event" => {
                let task = TaskName::new("plugin")?;
                let event = TaskEvent { allocation, task, kind: TaskEventKind::Healthy, message: rest };
                self.hear(AllocationsNews::Task(event), told);
            }
            "books-lost" => {
                let outcome = AgentOutcome::Followed(Err(not_running()));
                self.come_back(|call| matches!(call, AgentCall::Follow { .. }), outcome, told);
            }
            "books-new" => {
                // The allocations know this allocation, or none.
                let known = if first.is_empty() { vec![] } else { vec![status(allocation)] };
                let item = FeedItem::Snapshot { number: 0, view: AllocationsView { allocations: known } };
                let outcome = AgentOutcome::Followed(Ok(vec![item]));
                self.come_back(|call| matches!(call, AgentCall::Follow { .. }), outcome, told);
            }
            other => return Err(format!("the agent's stories have no {other}").into()),
        }
        Ok(())
    }
}
