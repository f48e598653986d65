//! Message scripts of an allocation's supervisor: the pure machine under virtual time.
//!
//! Each command is an input of the supervisor; below it come the effects in order. `world` sets a default answer for calls
//! of a kind, which is not printed; `tally` prints the number of such calls.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use goldenscript::{Command, Context, Runner};

use super::messages::*;
use super::paths::{Layout, Plan};
use super::state::*;
use crate::AskError;
use crate::csi::{Answer, CallError, Cause, Denial, Fault, Problem, Readiness, Rpc, SocketFile, Step};
use crate::instances::AwaitRetiredError;
use crate::kernel::{AskId, CallKey, CallLost, Effect, Ending, Input, Machine, StepContext, StopMode};
use crate::registry::{Deregistered, RegisterError, Registered};
use crate::stage::{number, play_all};
use crate::vocabulary::*;

#[test]
fn every_story_of_an_allocation_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/allocation/scripts"), 17, Stage::new);
}

const START: Duration = Duration::from_secs(1_000);

struct Stage {
    machine: Option<Allocation>,
    now: Timestamp,
    asked: u64,
    timers: Vec<(Timestamp, AllocationTimer)>,
    calls: VecDeque<(CallKey, AllocationCall, Duration)>,
    world: BTreeMap<String, String>,
    tally: BTreeMap<&'static str, u64>,
}

impl Stage {
    fn new() -> Self {
        Self {
            machine: None,
            now: Timestamp::from_epoch(START),
            asked: 0,
            timers: vec![],
            calls: VecDeque::new(),
            world: BTreeMap::new(),
            tally: BTreeMap::new(),
        }
    }

    fn moment(&self) -> Moment {
        // No jitter is used, so the random number does not matter.
        Moment { now: self.now, random: 0 }
    }

    fn step(&mut self, input: Input<Allocation>, told: &mut String) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut cx = StepContext::new(self.moment());
            self.machine.as_mut().expect("a workload comes first").step(&input, &mut cx);
            for effect in cx.drain() {
                inputs.extend(self.perform(effect, told));
            }
        }
    }

    fn perform(&mut self, effect: Effect<Allocation>, told: &mut String) -> Option<Input<Allocation>> {
        match effect {
            Effect::Persist(_, never) => match never {},
            Effect::Reply(id, answer) => {
                let answer = match answer {
                    AllocationAnswer::MakeReady(Ok(context)) if !self.world.contains_key("make") => {
                        tell_context(&context)
                    }
                    answer => tell_answer(answer),
                };
                writeln!(told, "answer {}: {answer}", number(id))
            }
            Effect::Publish(news) => writeln!(told, "news: {}", tell_news(&news)),
            Effect::Call { key, call, deadline } => {
                let word = word(&call);
                if let Some(value) = self.world.get(word).cloned() {
                    *self.tally.entry(word).or_default() += 1;
                    let outcome = self.outcome(&call, &value);
                    return Some(Input::Returned { key, call, outcome });
                }
                self.calls.push_back((key, call.clone(), deadline));
                writeln!(told, "call: {} within {deadline:?}", tell_call(&call))
            }
            Effect::StartTimer(timer, at) => {
                self.timers.retain(|(_, other)| *other != timer);
                self.timers.push((at, timer));
                Ok(())
            }
            Effect::CancelTimer(timer) => {
                self.timers.retain(|(_, other)| *other != timer);
                Ok(())
            }
            Effect::Stop(Ending::Normal) => writeln!(told, "ends"),
            Effect::Stop(other) => writeln!(told, "ends: {other:?}"),
        }
        .unwrap();
        None
    }

    fn ask(&mut self, ask: AllocationAsk, told: &mut String) {
        self.asked += 1;
        let id = AskId::new(self.asked);
        self.step(Input::Asked { id, asked_at: self.now, ask }, told);
    }

    fn answer(&mut self, kind: &str, value: &str, told: &mut String) {
        let at = self.calls.iter().position(|(_, call, _)| word(call) == kind);
        let (key, call, deadline) = self.calls.remove(at.expect("such a call is under way")).unwrap();
        let outcome = match value {
            "lost" => Err(CallLost::DeadlineExceeded(deadline)),
            value => self.outcome(&call, value),
        };
        self.step(Input::Returned { key, call, outcome }, told);
    }

    fn pass(&mut self, time: Duration, told: &mut String) {
        let until = self.now + time;
        while let Some(next) = self.timers.iter().filter(|(at, _)| *at <= until).min().copied() {
            self.timers.retain(|timer| *timer != next);
            self.now = self.now.max(next.0);
            let before = told.len();
            self.step(Input::Elapsed(next.1), told);
            if told.len() > before {
                let passed = self.now.since(Timestamp::from_epoch(START));
                told.insert_str(before, &format!("at {passed:?}:\n"));
            }
        }
        self.now = until;
    }

    fn outcome(&self, call: &AllocationCall, value: &str) -> Result<AllocationOutcome, CallLost> {
        let socket = SocketPath::new("/data/csi/plugins/a1/csi.sock").unwrap();
        Ok(match call {
            AllocationCall::MakeDirectories(_) => AllocationOutcome::Made(match value {
                "ok" => Ok(()),
                "in-use" => Err(PrepareError::SocketInUse { socket }),
                other => panic!("{other}?"),
            }),
            AllocationCall::FindSocket => AllocationOutcome::Found(Self::file(value)),
            AllocationCall::Ask(rpc) => AllocationOutcome::Answered(plugin(*rpc, value, socket)),
            AllocationCall::Register(_) => AllocationOutcome::Registered(match value {
                "new" => Ok(Ok(Registered::New)),
                "unchanged" => Ok(Ok(Registered::Unchanged)),
                "full" => Ok(Err(RegisterError::Full { held: 5 })),
                other => Err(away("registry", other)),
            }),
            AllocationCall::Deregister(message) => AllocationOutcome::Deregistered(match value {
                "removed" => Ok(Deregistered::Removed(message.plugins.clone())),
                "none" => Ok(Deregistered::NotRegistered),
                other => Err(away("registry", other)),
            }),
            AllocationCall::AskHealth => AllocationOutcome::Health(match value {
                "none" => Ok(vec![]),
                "away" | "busy" => Err(away("instances", value)),
                words => Ok(words.split(' ').map(health).collect()),
            }),
            AllocationCall::AwaitRetired => AllocationOutcome::Retired(match value {
                "ok" => Ok(Ok(())),
                "too-many" => Ok(Err(AwaitRetiredError::TooMany { waiting: 9 })),
                other => Err(away("instances", other)),
            }),
            AllocationCall::RemoveDirectory => AllocationOutcome::Removed(match value {
                "ok" => vec![],
                left => vec![left.to_owned()],
            }),
        })
    }

    fn file(value: &str) -> Result<SocketFile, Cause> {
        match value {
            "absent" => Err(Cause::Absent),
            "denied" => Err(denied()),
            "a-file" => Err(Cause::NotASocket { what: "a regular file" }),
            number => Ok(SocketFile::numbered(number.parse().unwrap())),
        }
    }
}

fn away(actor: &str, how: &str) -> AskError {
    let actor = actor.to_owned();
    match how {
        "away" => AskError::NotRunning { actor },
        "busy" => AskError::Busy { actor, in_flight: 9, limit: 9 },
        "sick" => {
            let error = "the disk is sick: no answer within 3s".to_owned();
            AskError::NotDurable { actor, error, is_begun: false }
        }
        other => panic!("{other}?"),
    }
}

fn denied() -> Cause {
    let path = "/data/csi/plugins/a1/csi.sock".to_owned();
    Cause::Denied(Denial { path, owner_uid: 0, owner_gid: 0, mode: 0o755, our_uid: 1000, our_gid: 1000 })
}

fn health(word: &str) -> Health {
    match word {
        "starting" => Health::Starting,
        "healthy" => Health::Healthy,
        "gone" => Health::Gone,
        reason => Health::Unhealthy { reason: reason.to_owned() },
    }
}

fn plugin(rpc: Rpc, value: &str, socket: SocketPath) -> Result<Answer, CallError> {
    let fault = |field, problem| Cause::Fault(Fault { rule: "C030", field, problem });
    let (step, cause) = match value {
        "ready" => return Ok(Answer::Probe(Readiness::Ready)),
        "not-ready" => return Ok(Answer::Probe(Readiness::NotReady)),
        "refused" => (Step::Dial, Cause::Refused),
        "denied" => (Step::Dial, denied()),
        "vanished" => (Step::Dial, Cause::Absent),
        "slow" => (Step::Call(rpc), Cause::DeadlineExceeded),
        "died" => (Step::Call(rpc), Cause::Disconnected { detail: "broken pipe".to_owned() }),
        "flooded" => (Step::Call(rpc), Cause::CutOff { detail: "it floods".to_owned() }),
        "nameless" => (Step::Call(rpc), fault("name", Problem::Empty)),
        "long-winded" => (Step::Call(rpc), fault("name", Problem::TooLong { bytes: 200, limit: 63 })),
        name => {
            let (provider, version) = name.split_once('/').expect("name/version");
            let (provider, version) = (provider.into(), version.into());
            return Ok(Answer::PluginInfo(Identity { provider, version, manifest: BTreeMap::new() }));
        }
    };
    Err(CallError::new(step, socket, Duration::from_secs(5), cause))
}

fn word(call: &AllocationCall) -> &'static str {
    match call {
        AllocationCall::MakeDirectories(_) => "make",
        AllocationCall::FindSocket => "find",
        AllocationCall::Ask(Rpc::Probe) => "probe",
        AllocationCall::Ask(_) => "info",
        AllocationCall::Register(_) => "register",
        AllocationCall::Deregister(_) => "deregister",
        AllocationCall::AskHealth => "health",
        AllocationCall::AwaitRetired => "retired",
        AllocationCall::RemoveDirectory => "remove",
    }
}

fn tell_call(call: &AllocationCall) -> String {
    let listed =
        |plugins: &[PluginKey]| plugins.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match call {
        AllocationCall::MakeDirectories(Listener::Refused) => "make directories".to_owned(),
        AllocationCall::MakeDirectories(Listener::Welcome) => {
            "make directories around what listens".to_owned()
        }
        AllocationCall::FindSocket => "find socket".to_owned(),
        AllocationCall::Ask(rpc) => rpc.to_string(),
        AllocationCall::Register(message) => format!("register {}", listed(&message.plugins)),
        AllocationCall::Deregister(message) => format!("deregister {}", listed(&message.plugins)),
        AllocationCall::AskHealth => "ask the instances".to_owned(),
        AllocationCall::AwaitRetired => "await the end of calls".to_owned(),
        AllocationCall::RemoveDirectory => "remove directory".to_owned(),
    }
}

fn tell_answer(answer: AllocationAnswer) -> String {
    match answer {
        AllocationAnswer::MakeReady(Ok(_)) => "prepared".to_owned(),
        AllocationAnswer::MakeReady(Err(error)) => format!("refused: {error}"),
        AllocationAnswer::NoteStart(())
        | AllocationAnswer::NoteExit(())
        | AllocationAnswer::NoteHealth(())
        | AllocationAnswer::NoteDisk(()) => "noted".to_owned(),
        AllocationAnswer::StopSupervision(AllocationStopped { deregistered, remarks }) => {
            format!("stopped, deregistered={deregistered} remarks={remarks:?}")
        }
        AllocationAnswer::DescribeAllocation(status) => format!("{status:?}"),
    }
}

fn tell_context(context: &TaskContext) -> String {
    let mut told = "prepared".to_owned();
    for (name, value) in &context.environment {
        write!(told, "\n  {name}={value}").unwrap();
    }
    for mount in &context.mounts {
        let Mount { host_path, task_path, propagation } = mount;
        write!(told, "\n  {} -> {} {propagation:?}", host_path.display(), task_path.display()).unwrap();
    }
    write!(told, "\n  socket {}", context.socket).unwrap();
    told
}

fn tell_news(news: &AllocationNews) -> String {
    match news {
        AllocationNews::Changed(status) => {
            format!("{}, {}: {}", status.phase.as_str(), status.health.as_str(), status.last_event)
        }
        AllocationNews::Task(event) => format!("event {:?}: {}", event.kind, event.message),
        AllocationNews::RestartRequested { reason } if reason.starts_with("the plugin has been") => {
            format!("restart requested: {reason}")
        }
        AllocationNews::RestartRequested { .. } => "restart requested".to_owned(),
    }
}

fn duration(text: &str) -> Duration {
    let at = text.find(|c: char| !c.is_ascii_digit()).expect("a unit");
    let (count, unit) = (text[..at].parse::<u64>().unwrap(), &text[at..]);
    match unit {
        "ms" => Duration::from_millis(count),
        "s" => Duration::from_secs(count),
        "m" => Duration::from_secs(60 * count),
        other => panic!("{other}?"),
    }
}

fn without_jitter(options: AllocationOptions) -> AllocationOptions {
    let steady = |pauses: Backoff| Backoff { jitter_percent: 0, ..pauses };
    AllocationOptions {
        look_pauses: steady(options.look_pauses),
        probe_pauses: steady(options.probe_pauses),
        registry_pauses: steady(options.registry_pauses),
        round_jitter_percent: 0,
        ..options
    }
}

fn workload(command: &Command) -> AllocationConfig {
    let mut args = command.consume_args();
    let role = args.take_key("role").unwrap_or("node");
    let role = Role::ALL.into_iter().find(|known| known.as_str() == role).unwrap();
    let name = |text: &str| PluginName::new(text).unwrap();
    let (allocation, task) = (AllocationId::new("a1").unwrap(), TaskName::new("plugin").unwrap());
    let mut spec = AllocationSpec::new(allocation, task, name("zfs"), role);
    if let Some(timeout) = args.take_key("timeout") {
        spec.health_timeout = duration(timeout);
    }
    if let Some(time) = args.take_key("unhealthy-for") {
        spec.restart_when = RestartWhen::UnhealthyFor(duration(time));
    }
    if let Some(endpoint) = args.take_key("endpoint") {
        spec.environment.insert("CSI_ENDPOINT".to_owned(), endpoint.to_owned());
    }
    spec.isolation = match args.take_key("isolation") {
        None | Some("none") => Isolation::None,
        Some("image") => Isolation::Image,
        Some(other) => panic!("{other}?"),
    };
    let (task, health) = match args.take_key("task") {
        None => (Task::NotStarted, Health::Starting),
        Some("was-healthy") => (Task::Running, Health::Healthy),
        Some("exited") => (Task::Exited, Health::Gone),
        Some("leaving") => (Task::Leaving, Health::Healthy),
        Some(other) => panic!("{other}?"),
    };
    args.reject_next().unwrap();
    let layout = Layout::new("/data", "/run/callboard").unwrap();
    let plan = Plan::new(&layout, &spec).unwrap();
    AllocationConfig { spec, plan, options: without_jitter(AllocationOptions::default()), task, health }
}

impl Runner for Stage {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut told = String::new();
        let mut args = command.consume_args();
        match command.name.as_str() {
            "workload" => {
                self.machine = Some(Allocation::restore(&workload(command), (), self.moment()));
                self.step(Input::Resumed, &mut told);
                return Ok(told);
            }
            "world" => {
                for argument in &command.args {
                    if let goldenscript::Argument::KeyValue(key, value) = argument {
                        self.world.insert(key.clone(), value.clone());
                    }
                }
                return Ok(told);
            }
            "prepare" => {
                self.ask(AllocationAsk::MakeReady(MakeReady { listener: Listener::Refused }), &mut told);
            }
            "adopt" => {
                self.ask(AllocationAsk::MakeReady(MakeReady { listener: Listener::Welcome }), &mut told);
            }
            "started" => self.ask(AllocationAsk::NoteStart(NoteStart), &mut told),
            "disk-sound" => self.ask(AllocationAsk::NoteDisk(NoteDisk), &mut told),
            "instance-news" => self.ask(AllocationAsk::NoteHealth(NoteHealth), &mut told),
            "exited" => {
                let how = args.next_pos().ok_or("how?")?.to_owned();
                self.ask(AllocationAsk::NoteExit(NoteExit { how }), &mut told);
            }
            "restart" => {
                let times: u64 = args.next_pos().ok_or("how often?")?.parse()?;
                for _ in 0..times {
                    let mut untold = String::new();
                    let how = "signal 9".to_owned();
                    self.ask(AllocationAsk::NoteExit(NoteExit { how }), &mut untold);
                    self.ask(
                        AllocationAsk::MakeReady(MakeReady { listener: Listener::Refused }),
                        &mut untold,
                    );
                    self.ask(AllocationAsk::NoteStart(NoteStart), &mut untold);
                }
            }
            "stop" => self.ask(AllocationAsk::StopSupervision(StopSupervision), &mut told),
            "shutdown" => self.step(Input::StopRequested(StopMode::Stop), &mut told),
            "detach" => self.step(Input::StopRequested(StopMode::Detach), &mut told),
            "answer" => {
                let kind = args.next_pos().ok_or("which call?")?.to_owned();
                let value = args.next_pos().ok_or("what?")?.to_owned();
                self.answer(&kind, &value, &mut told);
            }
            "pass" => self.pass(duration(args.next_pos().ok_or("how long?")?), &mut told),
            "view" => {
                let status = self.machine.as_ref().ok_or("a workload comes first")?.view();
                writeln!(told, "{} for {:?}", status.phase.as_str(), self.now.since(status.since))?;
            }
            "tally" => {
                for (word, count) in std::mem::take(&mut self.tally) {
                    writeln!(told, "{word}: {count}")?;
                }
            }
            other => return Err(format!("unknown command {other}").into()),
        }
        args.reject_next()?;
        Ok(told)
    }
}
