//! Message scripts of the owner of the allocations: the pure machine under virtual time.
//!
//! Each command is an input of the owner: from the host, from a supervisor (`hears`, `reports`, `ended`), or its own crash
//! (`crash`). Below it come the effects in order.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use goldenscript::{ArgumentConsumer, Command, Context, Runner};

use super::messages::*;
use super::state::*;
use crate::AskError;
use crate::allocation::{AllocationNews, Layout};
use crate::kernel::{AskId, CallKey, CallLost, Effect, Ending, Input, Machine, StepContext, StopMode};
use crate::stage::{number, play_all};
use crate::vocabulary::*;
use crate::volume::VolumeKey;
use crate::volumes::{AwaitUnused, AwaitUnusedError, InUse};

#[test]
fn every_story_of_the_owner_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/allocations/scripts"), 8, Stage::new);
}

const START: Duration = Duration::from_secs(1_000);

struct Stage {
    machine: Allocations,
    image: AllocationsImage,
    now: Timestamp,
    asked: u64,
    waiting: BTreeMap<AskId, (Timestamp, AllocationsAsk)>,
    timers: Vec<(Timestamp, AllocationsTimer)>,
    calls: VecDeque<(CallKey, AllocationsCall)>,
}

fn options() -> AllocationsOptions {
    let layout = Layout::new("/data", "/run/callboard").unwrap();
    let restart_pauses = Backoff { jitter_percent: 0, ..Backoff::default() };
    let restart_budget = RestartBudget { limit: 2, window: Duration::from_secs(60) };
    let limits = AllocationsOptions::new(layout);
    AllocationsOptions { allocations_max: 3, orders_max: 2, restart_budget, restart_pauses, ..limits }
}

impl Stage {
    fn new() -> Self {
        let now = Timestamp::from_epoch(START);
        let image = AllocationsImage::default();
        let machine = Allocations::restore(&options(), image.clone(), Moment { now, random: 0 });
        let (waiting, calls) = (BTreeMap::new(), VecDeque::new());
        Self { machine, image, now, asked: 0, waiting, timers: vec![], calls }
    }

    fn step(&mut self, input: &Input<Allocations>, told: &mut String) {
        let mut cx = StepContext::new(Moment { now: self.now, random: 0 });
        self.machine.step(input, &mut cx);
        let effects: Vec<_> = cx.drain().collect();
        effects.into_iter().for_each(|effect| self.perform(effect, told));
    }

    fn perform(&mut self, effect: Effect<Allocations>, told: &mut String) {
        match effect {
            Effect::Persist(_, change) => {
                let line = match &change {
                    AllocationsChange::Keep(allocation, record) => {
                        let prepared = if record.is_prepared { ", prepared" } else { "" };
                        writeln!(told, "on disk: {allocation} life {}{prepared}", record.life)
                    }
                    AllocationsChange::Forget(allocation) => {
                        writeln!(told, "on disk: {allocation} no more")
                    }
                };
                self.image.take(change);
                line
            }
            Effect::Reply(id, AllocationsAnswer::AllocationReported(())) => {
                self.waiting.remove(&id);
                Ok(())
            }
            Effect::Reply(id, answer) => {
                self.waiting.remove(&id);
                writeln!(told, "answer {}: {}", number(id), tell_answer(answer))
            }
            Effect::Publish(news) => writeln!(told, "news: {}", tell_news(&news)),
            Effect::Call { call: AllocationsCall::AwaitEndings, .. } => Ok(()),
            Effect::Call { key, call, .. } => {
                let line = writeln!(told, "{}", tell_call(&call));
                self.calls.push_back((key, call));
                line
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
            Effect::Stop(ending) => writeln!(told, "ends: {ending:?}"),
        }
        .unwrap();
    }

    fn ask(&mut self, ask: AllocationsAsk, told: &mut String) {
        self.asked += 1;
        let id = AskId::new(self.asked);
        self.waiting.insert(id, (self.now, again(&ask)));
        self.step(&Input::Asked { id, asked_at: self.now, ask }, told);
    }

    /// A supervisor answers its oldest order, or the last one if the answer begins with `last-`.
    fn hears(&mut self, allocation: &AllocationId, answer: &str, told: &mut String) {
        let is_told = |call: &AllocationsCall| matches!(call, AllocationsCall::Tell { allocation: of, .. } if of == allocation);
        let mut told_calls =
            self.calls.iter().enumerate().filter(|(_, (_, call))| is_told(call)).map(|(at, _)| at);
        let (at, answer) = match answer.strip_prefix("last-") {
            Some(answer) => (told_calls.next_back(), answer),
            None => (told_calls.next(), answer),
        };
        let at = at.expect("it was told something");
        let (key, call) = self.calls.remove(at).unwrap();
        let AllocationsCall::Tell { order, .. } = &call else { panic!("it was told something") };
        let actor = format!("allocation {allocation}");
        let outcome = match answer {
            "ok" => Ok(AllocationsOutcome::Told(Ok(self.consent(allocation, order)))),
            "in-use" => {
                let socket = SocketPath::new("/data/csi/plugins/a1/csi.sock").unwrap();
                let error = PrepareError::SocketInUse { socket };
                Ok(AllocationsOutcome::Told(Ok(OrderAnswer::Prepared(Err(error)))))
            }
            "stopping" => {
                let error = PrepareError::Stopping { allocation: allocation.clone() };
                Ok(AllocationsOutcome::Told(Ok(OrderAnswer::Prepared(Err(error)))))
            }
            "away" => Ok(AllocationsOutcome::Told(Err(AskError::NotRunning { actor }))),
            "crash" => {
                Ok(AllocationsOutcome::Told(Err(AskError::Crashed { actor, message: "boom".to_owned() })))
            }
            "lost" => Err(CallLost::DeadlineExceeded(Duration::from_secs(30))),
            other => panic!("{other}?"),
        };
        self.step(&Input::Returned { key, call, outcome }, told);
    }

    /// The owner of the volumes answers the oldest question.
    fn volumes(&mut self, answer: &str, told: &mut String) {
        let is_question = |call: &AllocationsCall| matches!(call, AllocationsCall::AwaitUnused { .. });
        let at = self.calls.iter().position(|(_, call)| is_question(call)).expect("it was asked");
        let (key, call) = self.calls.remove(at).unwrap();
        let AllocationsCall::AwaitUnused { asked: AwaitUnused { plugin, within }, .. } = &call else {
            panic!("it was asked")
        };
        let outcome = match answer {
            "unused" => Ok(AllocationsOutcome::Unused(Ok(Ok(())))),
            "used" => {
                let volumes = vec![in_use()];
                let error = AwaitUnusedError::InUse { plugin: plugin.clone(), volumes, waited: *within };
                Ok(AllocationsOutcome::Unused(Ok(Err(error))))
            }
            "away" => {
                let actor = "volumes".to_owned();
                Ok(AllocationsOutcome::Unused(Err(AskError::NotRunning { actor })))
            }
            "lost" => Err(CallLost::DeadlineExceeded(Duration::from_secs(15))),
            other => panic!("{other}?"),
        };
        self.step(&Input::Returned { key, call, outcome }, told);
    }

    fn consent(&self, allocation: &AllocationId, order: &Order) -> OrderAnswer {
        match order {
            Order::Prepare | Order::Adopt => {
                let context = self.image.records[allocation].plan.context.clone();
                OrderAnswer::Prepared(Ok(context))
            }
            Order::Start | Order::Exit(_) => OrderAnswer::Noted,
            Order::Stop => OrderAnswer::Stopped(AllocationStopped { deregistered: true, remarks: vec![] }),
        }
    }

    fn ended(&mut self, allocation: &AllocationId, life: Attempt, ending: Ending, told: &mut String) {
        let ended = SupervisorEnded { allocation: allocation.clone(), life, ending };
        let outcome = Ok(AllocationsOutcome::Ended(vec![ended]));
        let call = AllocationsCall::AwaitEndings;
        self.step(&Input::Returned { key: CallKey::default(), call, outcome }, told);
    }

    /// The owner crashes and is rebuilt from its memory; unanswered orders are sent again.
    fn crash(&mut self, told: &mut String) {
        self.timers.clear();
        self.calls.clear();
        let moment = Moment { now: self.now, random: 0 };
        self.machine = Allocations::restore(&options(), self.image.clone(), moment);
        self.step(&Input::Resumed, told);
        let waiting: Vec<_> = self.waiting.iter().map(|(id, (at, ask))| (*id, *at, again(ask))).collect();
        for (id, asked_at, ask) in waiting {
            self.step(&Input::Asked { id, asked_at, ask }, told);
        }
    }

    fn pass(&mut self, time: Duration, told: &mut String) {
        let until = self.now + time;
        while let Some(next) = self.timers.iter().filter(|(at, _)| *at <= until).min().cloned() {
            self.timers.retain(|timer| *timer != next);
            self.now = self.now.max(next.0);
            writeln!(told, "at {:?}:", self.now.since(Timestamp::from_epoch(START))).unwrap();
            self.step(&Input::Elapsed(next.1), told);
        }
        self.now = until;
    }

    fn life(&self, allocation: &AllocationId, args: &mut ArgumentConsumer<'_>) -> Attempt {
        match args.take_key("life") {
            Some(life) => Attempt::new(life.parse().unwrap()),
            None => self.image.records.get(allocation).map_or(Attempt::default(), |record| record.life),
        }
    }
}

fn in_use() -> InUse {
    let namespace = VolumeNamespace::new("default").unwrap();
    let volume = VolumeKey { namespace, name: VolumeName::new("data").unwrap() };
    let claims = vec![AllocationId::new("web").unwrap()];
    InUse { volume, claims, state: "staged".to_owned() }
}

fn again(ask: &AllocationsAsk) -> AllocationsAsk {
    match ask {
        AllocationsAsk::PrepareAllocation(ask) => AllocationsAsk::PrepareAllocation(ask.clone()),
        AllocationsAsk::AdoptAllocation(ask) => AllocationsAsk::AdoptAllocation(ask.clone()),
        AllocationsAsk::TaskStarted(ask) => AllocationsAsk::TaskStarted(ask.clone()),
        AllocationsAsk::TaskExited(ask) => AllocationsAsk::TaskExited(ask.clone()),
        AllocationsAsk::StopAllocation(ask) => AllocationsAsk::StopAllocation(ask.clone()),
        AllocationsAsk::ListAllocations(ask) => AllocationsAsk::ListAllocations(*ask),
        AllocationsAsk::DescribeAllocations(ask) => AllocationsAsk::DescribeAllocations(*ask),
        AllocationsAsk::AllocationReported(ask) => AllocationsAsk::AllocationReported(ask.clone()),
    }
}

fn tell_call(call: &AllocationsCall) -> String {
    match call {
        AllocationsCall::Start { life, config } => {
            format!("start {} life {life}: {:?}, {}", config.spec.allocation, config.task, config.health)
        }
        AllocationsCall::Tell { allocation, life, order, .. } => {
            format!("tell {allocation} life {life}: {order:?}")
        }
        AllocationsCall::Look { allocation, life } => format!("look at {allocation} life {life}"),
        AllocationsCall::End { allocation, life, mode } => format!("end {allocation} life {life}: {mode:?}"),
        AllocationsCall::Kill { allocation, life } => format!("kill {allocation} life {life}"),
        AllocationsCall::AwaitEndings => "await endings".to_owned(),
        AllocationsCall::AwaitUnused { asked: AwaitUnused { plugin, within }, .. } => {
            format!("await that the volumes of {plugin} are unused, within {within:?}")
        }
        AllocationsCall::Describe(_) => "look at all actors".to_owned(),
    }
}

fn tell_status(status: &AllocationStatus) -> String {
    let AllocationStatus { allocation, phase, health, .. } = status;
    format!("{allocation} {}, {health}", phase.as_str())
}

fn tell_answer(answer: AllocationsAnswer) -> String {
    match answer {
        AllocationsAnswer::PrepareAllocation(Ok(context)) => format!("prepared, {}", context.socket),
        AllocationsAnswer::AdoptAllocation(Ok(context)) => format!("adopted, {}", context.socket),
        AllocationsAnswer::PrepareAllocation(Err(error)) | AllocationsAnswer::AdoptAllocation(Err(error)) => {
            format!("refused: {error}")
        }
        AllocationsAnswer::TaskStarted(Ok(())) | AllocationsAnswer::TaskExited(Ok(())) => "noted".to_owned(),
        AllocationsAnswer::TaskStarted(Err(error)) | AllocationsAnswer::TaskExited(Err(error)) => {
            error.to_string()
        }
        AllocationsAnswer::StopAllocation(Ok(AllocationStopped { deregistered, remarks })) => {
            format!("stopped, deregistered={deregistered} remarks={remarks:?}")
        }
        AllocationsAnswer::StopAllocation(Err(error)) => error.to_string(),
        AllocationsAnswer::ListAllocations(list) => {
            list.iter().map(tell_status).collect::<Vec<_>>().join("; ")
        }
        AllocationsAnswer::DescribeAllocations(list) => {
            let told = list.iter().map(|one| {
                let given_up = one.given_up.as_deref().unwrap_or("no");
                format!("{}, crashes={} given-up={given_up}", tell_status(&one.status), one.crashes)
            });
            told.collect::<Vec<_>>().join("; ")
        }
        AllocationsAnswer::AllocationReported(()) => "heard".to_owned(),
    }
}

fn tell_news(news: &AllocationsNews) -> String {
    match news {
        AllocationsNews::Changed(status) => tell_status(status),
        AllocationsNews::Gone(allocation) => format!("{allocation} gone"),
        AllocationsNews::Refused { allocation, reason } => format!("{allocation} refused: {reason}"),
        AllocationsNews::Task(event) => format!("event {:?} of {}", event.kind, event.allocation),
        AllocationsNews::RestartRequested { allocation, task, reason } => {
            format!("restart of {task} of {allocation} requested: {reason}")
        }
    }
}

fn spec(allocation: &AllocationId, args: &mut ArgumentConsumer<'_>) -> AllocationSpec {
    let task = TaskName::new("plugin").unwrap();
    let plugin = PluginName::new(args.take_key("plugin").unwrap_or("zfs")).unwrap();
    let mut spec = AllocationSpec::new(allocation.clone(), task, plugin, Role::Node);
    if let Some(endpoint) = args.take_key("endpoint") {
        spec.environment.insert("CSI_ENDPOINT".to_owned(), endpoint.to_owned());
    }
    spec
}

fn status_of(stage: &Stage, allocation: &AllocationId, phase: &str, health: &str) -> AllocationStatus {
    let mut status =
        stage.machine.entries.get(allocation).map(|entry| entry.status.clone()).expect("it is known");
    status.phase = match phase {
        "awaiting-socket" => AllocationPhase::AwaitingSocket,
        "registered" => AllocationPhase::Registered,
        "stopping" => AllocationPhase::Stopping,
        other => panic!("{other}?"),
    };
    status.health = match health {
        "starting" => Health::Starting,
        "healthy" => Health::Healthy,
        "gone" => Health::Gone,
        other => panic!("{other}?"),
    };
    status
}

impl Runner for Stage {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut told = String::new();
        let mut args = command.consume_args();
        match command.name.as_str() {
            "view" => writeln!(told, "view of {}", self.machine.view().allocations.len()).unwrap(),
            "list" => self.ask(AllocationsAsk::ListAllocations(ListAllocations), &mut told),
            "describe" => {
                self.ask(AllocationsAsk::DescribeAllocations(DescribeAllocations), &mut told);
                let (key, call) = self.calls.pop_back().expect("it looks at the actors");
                let outcome = Ok(AllocationsOutcome::Described(BTreeMap::new()));
                self.step(&Input::Returned { key, call, outcome }, &mut told);
            }
            "shutdown" => self.step(&Input::StopRequested(StopMode::Stop), &mut told),
            "detach" => self.step(&Input::StopRequested(StopMode::Detach), &mut told),
            "crash" => self.crash(&mut told),
            "volumes" => self.volumes(args.next_pos().ok_or("what do they answer?")?, &mut told),
            "pass" => {
                let milliseconds: u64 = args.next_pos().ok_or("how long?")?.trim_end_matches("ms").parse()?;
                self.pass(Duration::from_millis(milliseconds), &mut told);
            }
            _ => self.run_for_one(command, &mut args, &mut told)?,
        }
        args.reject_next()?;
        Ok(told)
    }
}

impl Stage {
    fn run_for_one(
        &mut self,
        command: &Command,
        args: &mut ArgumentConsumer<'_>,
        told: &mut String,
    ) -> Result<(), Box<dyn Error>> {
        let allocation = AllocationId::new(args.next_pos().ok_or("which allocation?")?)?;
        match command.name.as_str() {
            "prepare" => {
                let spec = spec(&allocation, args);
                self.ask(AllocationsAsk::PrepareAllocation(PrepareAllocation { spec }), told);
            }
            "adopt" => {
                let spec = spec(&allocation, args);
                self.ask(AllocationsAsk::AdoptAllocation(AdoptAllocation { spec }), told);
            }
            "started" => self.ask(AllocationsAsk::TaskStarted(TaskStarted { allocation }), told),
            "exited" => {
                let how = "signal 9".to_owned();
                self.ask(AllocationsAsk::TaskExited(TaskExited { allocation, how }), told);
            }
            "stop" => {
                let even_if_used = args.next_pos().is_some_and(|how| how == "even-if-used");
                let asked = StopAllocation { allocation, even_if_used };
                self.ask(AllocationsAsk::StopAllocation(asked), told);
            }
            "hears" => {
                let answer = args.next_pos().ok_or("what does it answer?")?;
                self.hears(&allocation, answer, told);
            }
            "reports" => {
                let life = self.life(&allocation, args);
                let news = match args.next_pos().ok_or("what?")? {
                    "restart" => AllocationNews::RestartRequested { reason: "it is late".to_owned() },
                    phase => {
                        let health = args.next_pos().ok_or("how is it?")?;
                        AllocationNews::Changed(status_of(self, &allocation, phase, health))
                    }
                };
                let reported = AllocationReported { allocation, life, news };
                self.ask(AllocationsAsk::AllocationReported(reported), told);
            }
            "endings-lost" => {
                let outcome = Err(CallLost::Crashed("boom".to_owned()));
                let call = AllocationsCall::AwaitEndings;
                self.step(&Input::Returned { key: CallKey::default(), call, outcome }, told);
                let at = self.timers.iter().find(|(_, timer)| *timer == AllocationsTimer::AwaitEndings);
                let (at, _) = at.ok_or("endings are waited for at once")?;
                writeln!(told, "endings are waited for again in {:?}", at.since(self.now))?;
            }
            "ended" => {
                let life = self.life(&allocation, args);
                let ending = match args.next_pos().ok_or("how?")? {
                    "normal" => Ending::Normal,
                    "killed" => Ending::Killed,
                    "crash" => Ending::BudgetSpent("boom".to_owned()),
                    other => return Err(format!("ended {other}?").into()),
                };
                self.ended(&allocation, life, ending, told);
            }
            other => return Err(format!("unknown command {other}").into()),
        }
        Ok(())
    }
}
