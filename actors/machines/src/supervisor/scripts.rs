//! Runs the message scripts in `scripts/` against the pure machine: time is a number, and the script acts as the children.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use goldenscript::{ArgumentConsumer, Context};

use super::messages::{
    AwaitStarted, DescribeTree, RestartChild, Shutdown, ShutdownReport, StopOutcome, SupervisorAnswer,
    SupervisorAsk, SupervisorNews, TreeNode,
};
use super::spec::{ChildSpec, Plan, Restart, Strategy, SupervisorSpec};
use super::state::{Call, FoundChild, Outcome, Supervisor, Timer};
use crate::kernel::{
    AskId, CallKey, CallLost, Effect, Ending, Input, Machine, StepContext, StopMode, StopStep,
};
use crate::vocabulary::{Backoff, Moment, RestartBudget, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Found,
    Start,
    Watch,
    Stop,
    Describe,
}

/// Commands; each prints the effects of the supervisor:
///
/// - `supervisor [strategy=..] [limit=N] [window=SECONDS]` and `child NAME [restart=..] [stop=SECONDS]` configure it;
/// - `begin [alive=A,B] [absent=..] [ended=A]` builds the machine and reports what is found; without an argument no child exists
///   yet. `resume` builds it and leaves that unreported;
/// - `up NAME...`, `fails NAME REASON`, `hangs NAME` are outcomes of a start, `ends NAME [how]` of a watch and `down NAME
///   [how]` of a stop; with the tag `[late]` they have the key of the call before the last of its kind;
/// - `pass SECONDS` advances the time;
/// - `await-started`, `restart NAME`, `tree`, `shutdown [mode]` are messages, sent `times=N` times; `stop [mode]` is
///   requested by the parent.
struct Stage {
    spec: SupervisorSpec,
    children: Vec<ChildSpec>,
    machine: Option<Supervisor>,
    now: Duration,
    timers: BTreeMap<Timer, Timestamp>,
    keys: BTreeMap<(Kind, usize), Vec<(CallKey, Call)>>,
    asks: u64,
}

impl Stage {
    fn new() -> Self {
        Self {
            spec: SupervisorSpec::default(),
            children: Vec::new(),
            machine: None,
            now: Duration::ZERO,
            timers: BTreeMap::new(),
            keys: BTreeMap::new(),
            asks: 0,
        }
    }

    fn moment(&self) -> Moment {
        Moment { now: Timestamp::from_epoch(self.now), random: 0 }
    }

    fn place(&self, name: &str) -> Result<usize, Box<dyn Error>> {
        let found = self.children.iter().position(|child| child.name == name);
        found.ok_or_else(|| format!("there is no child {name}").into())
    }

    fn step(&mut self, input: &Input<Supervisor>) -> Result<String, Box<dyn Error>> {
        let mut cx = StepContext::new(self.moment());
        let machine = self.machine.as_mut().ok_or("begin first")?;
        machine.step(input, &mut cx);
        let mut said = String::new();
        for effect in cx.drain() {
            self.tell(effect, &mut said)?;
        }
        Ok(said)
    }

    fn tell(&mut self, effect: Effect<Supervisor>, said: &mut String) -> Result<(), Box<dyn Error>> {
        match effect {
            Effect::Persist(_, never) => match never {},
            Effect::Reply(id, answer) => writeln!(said, "{} {}", asker(id), answer_in_words(&answer))?,
            Effect::Publish(news) => writeln!(said, "news: {}", news_in_words(&news))?,
            Effect::Call { key, deadline, call } => self.called(key, deadline, call, said)?,
            Effect::StartTimer(timer, at) => {
                let pause = at.since(self.moment().now);
                writeln!(said, "{} for {pause:?}", pause_of(timer))?;
                self.timers.insert(timer, at);
            }
            Effect::CancelTimer(timer) => {
                if self.timers.remove(&timer).is_some() {
                    writeln!(said, "{} is cut short", pause_of(timer))?;
                }
            }
            Effect::Stop(ending) => {
                writeln!(said, "the supervisor ends: {ending:?}")?;
                let children = &self.children;
                let steps = self.machine.as_ref().map(Supervisor::stop_steps).unwrap_or_default();
                for step in steps.iter().filter(|_| children.iter().any(|child| child.may_leave)) {
                    writeln!(said, "    {}", step_in_words(step))?;
                }
            }
        }
        Ok(())
    }

    fn called(
        &mut self,
        key: CallKey,
        deadline: Duration,
        call: Call,
        said: &mut String,
    ) -> Result<(), Box<dyn Error>> {
        let name = |child: usize| self.children[child].name.as_str();
        let slot = match call {
            Call::FindChildren => {
                writeln!(said, "find children")?;
                (Kind::Found, 0)
            }
            Call::StartChild { child } => {
                writeln!(said, "start {} within {deadline:?}", name(child))?;
                (Kind::Start, child)
            }
            Call::AwaitEnd { child } => {
                writeln!(said, "watch {}", name(child))?;
                (Kind::Watch, child)
            }
            Call::StopChild { child, mode, deadline, is_final } => {
                let ends_rest = is_final && self.children[child].may_leave;
                let rest = if ends_rest { ", and end what it left" } else { "" };
                writeln!(said, "stop {} within {deadline:?} ({mode:?}){rest}", name(child))?;
                (Kind::Stop, child)
            }
            Call::DescribeChildren { within } => {
                writeln!(said, "let the children describe themselves within {within:?}")?;
                (Kind::Describe, 0)
            }
        };
        self.keys.entry(slot).or_default().push((key, call));
        Ok(())
    }

    /// Delivers the outcome of a call: the last of its kind, or, if late, the one before.
    fn bring_back(
        &mut self,
        kind: Kind,
        child: usize,
        is_late: bool,
        outcome: Result<Outcome, CallLost>,
    ) -> Result<String, Box<dyn Error>> {
        let made = self.keys.get(&(kind, child)).map_or(&[][..], Vec::as_slice);
        let call = made.iter().rev().nth(usize::from(is_late));
        let (key, call) = *call.ok_or("no such call was made")?;
        self.step(&Input::Returned { key, call, outcome })
    }

    fn ask(&mut self, ask: SupervisorAsk) -> Result<String, Box<dyn Error>> {
        self.asks += 1;
        let id = AskId::new(self.asks);
        self.step(&Input::Asked { id, asked_at: self.moment().now, ask })
    }

    // === Commands ===

    fn set_manners(&mut self, args: &mut ArgumentConsumer<'_>) -> Result<String, Box<dyn Error>> {
        self.spec.strategy = match args.take_key("strategy") {
            None | Some("one-for-one") => Strategy::OneForOne,
            Some("one-for-all") => Strategy::OneForAll,
            Some("rest-for-one") => Strategy::RestForOne,
            Some(other) => return Err(format!("unknown strategy {other}").into()),
        };
        let limit = number(args.take_key("limit"), 5)?;
        let window = Duration::from_secs(number(args.take_key("window"), 60)?);
        self.spec.budget = RestartBudget { limit, window };
        Ok(String::new())
    }

    fn add_child(&mut self, args: &mut ArgumentConsumer<'_>) -> Result<String, Box<dyn Error>> {
        let mut spec = ChildSpec::new(args.next_pos().ok_or("a child needs a name")?, "actor");
        spec.restart = match args.take_key("restart") {
            None | Some("permanent") => Restart::Permanent,
            Some("transient") => Restart::Transient,
            Some("temporary") => Restart::Temporary,
            Some(other) => return Err(format!("unknown restart type {other}").into()),
        };
        spec.stop_deadline = Duration::from_secs(number(args.take_key("stop"), 5)?);
        spec.may_leave = args.take_key("may-leave") == Some("yes");
        spec.backoff = Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(8),
            jitter_percent: 0,
            reset_after: Duration::from_secs(60),
        };
        self.children.push(spec);
        Ok(String::new())
    }

    fn resume(&mut self) -> Result<String, Box<dyn Error>> {
        let plan = Plan { name: "root".into(), spec: self.spec, children: self.children.clone().into() };
        self.timers.clear();
        self.keys.clear();
        self.machine = Some(Supervisor::restore(&plan, (), self.moment()));
        self.step(&Input::Resumed)
    }

    fn find_children(
        &mut self,
        args: &mut ArgumentConsumer<'_>,
        is_late: bool,
    ) -> Result<String, Box<dyn Error>> {
        if args.next_pos() == Some("lost") {
            let lost = CallLost::DeadlineExceeded(Duration::from_secs(10));
            return self.bring_back(Kind::Found, 0, is_late, Err(lost));
        }
        let mut children = vec![FoundChild::Absent; self.children.len()];
        for (word, found) in [
            ("alive", FoundChild::Alive),
            ("half-started", FoundChild::CutOff { has_run: false }),
            ("half-stopped", FoundChild::CutOff { has_run: true }),
            ("stopped", FoundChild::Stopped { in_order: true }),
            ("cut", FoundChild::Stopped { in_order: false }),
            ("ended", FoundChild::Ended(Ending::Normal)),
            ("failed", FoundChild::Ended(Ending::Failed("no luck".into()))),
        ] {
            for name in args.take_key(word).into_iter().flat_map(|names| names.split(',')) {
                children[self.place(name)?] = found.clone();
            }
        }
        self.bring_back(Kind::Found, 0, is_late, Ok(Outcome::Found(children)))
    }

    fn pass(&mut self, seconds: f64) -> Result<String, Box<dyn Error>> {
        let until = self.now + Duration::from_secs_f64(seconds);
        let mut said = String::new();
        loop {
            let due = self.timers.iter().map(|(timer, at)| (*at, *timer)).min();
            let Some((at, timer)) = due.filter(|(at, _)| at.since_epoch() <= until) else { break };
            self.now = at.since_epoch();
            self.timers.remove(&timer);
            writeln!(said, "at {:?}: {} is over", self.now, pause_of(timer))?;
            said.push_str(&self.step(&Input::Elapsed(timer))?);
        }
        self.now = until;
        Ok(said)
    }

    fn up(&mut self, args: &mut ArgumentConsumer<'_>, is_late: bool) -> Result<String, Box<dyn Error>> {
        let mut said = String::new();
        while let Some(name) = args.next_pos() {
            let child = self.place(name)?;
            let outcome = Outcome::Started { child, result: Ok(()) };
            said.push_str(&self.bring_back(Kind::Start, child, is_late, Ok(outcome))?);
        }
        Ok(said)
    }

    /// The outcome of a call, as the child of the script produces it.
    fn come_of(
        &self,
        command: &str,
        child: usize,
        how: Option<&str>,
    ) -> Result<(Kind, Result<Outcome, CallLost>), Box<dyn Error>> {
        let text = || how.unwrap_or("no luck").to_owned();
        Ok(match (command, how) {
            ("fails", _) => (Kind::Start, Ok(Outcome::Started { child, result: Err(text()) })),
            ("hangs", _) => (Kind::Start, Err(CallLost::DeadlineExceeded(Duration::from_secs(10)))),
            ("ends", Some("unseen")) => (Kind::Watch, Err(CallLost::Crashed("the watch fell over".into()))),
            ("ends", Some("not")) => {
                (Kind::Watch, Err(CallLost::DeadlineExceeded(Duration::from_secs(3_600))))
            }
            ("ends", how) => {
                let ending = match how {
                    None | Some("normal") => Ending::Normal,
                    Some("panicked") => Ending::Panicked("boom".into()),
                    Some("spent") => Ending::BudgetSpent("boom".into()),
                    Some("failed") => Ending::Failed("no luck".into()),
                    Some("killed") => Ending::Killed,
                    Some(other) => return Err(format!("unknown ending {other}").into()),
                };
                (Kind::Watch, Ok(Outcome::Ended { child, ending }))
            }
            ("down", how) => {
                let outcome = match how {
                    None => StopOutcome::Stopped,
                    Some("absent") => StopOutcome::NotStarted,
                    Some("killed") => StopOutcome::Killed { deadline: self.children[child].stop_deadline },
                    Some("crashed") => StopOutcome::Crashed { reason: "it panicked: boom".into() },
                    Some("before") => {
                        StopOutcome::EndedBefore { reason: "it panicked: boom".into(), in_order: false }
                    }
                    Some("stuck") => StopOutcome::Stuck { reason: "it lives on".into() },
                    Some("lost") => {
                        return Ok((Kind::Stop, Err(CallLost::Crashed("the stop fell over".into()))));
                    }
                    Some(other) => return Err(format!("unknown outcome {other}").into()),
                };
                (Kind::Stop, Ok(Outcome::Stopped { child, outcome, below: vec![] }))
            }
            (other, _) => return Err(format!("unknown command {other}").into()),
        })
    }
}

impl Stage {
    /// Sends a message once or `times` times; only the last one is printed.
    fn ask_often(
        &mut self,
        args: &mut ArgumentConsumer<'_>,
        ask: impl Fn() -> SupervisorAsk,
    ) -> Result<String, Box<dyn Error>> {
        let times = number(args.take_key("times"), 1)?;
        let mut said = String::new();
        for _ in 0..times {
            said = self.ask(ask())?;
        }
        Ok(said)
    }
}

impl goldenscript::Runner for Stage {
    type Command = goldenscript::Command;

    fn run(&mut self, command: &goldenscript::Command, context: &Context) -> Result<String, Box<dyn Error>> {
        let is_late = context.tags.contains("late");
        let mut args = command.consume_args();
        let said = match command.name.as_str() {
            "supervisor" => self.set_manners(&mut args)?,
            "child" => self.add_child(&mut args)?,
            "resume" => self.resume()?,
            "found" => self.find_children(&mut args, is_late)?,
            "begin" => {
                let resumed = self.resume()?;
                resumed + &self.find_children(&mut args, is_late)?
            }
            "pass" => self.pass(args.next_pos().ok_or("how long?")?.parse()?)?,
            "up" => self.up(&mut args, is_late)?,
            "await-started" => self.ask_often(&mut args, || SupervisorAsk::AwaitStarted(AwaitStarted))?,
            "tree" => self.ask_often(&mut args, || SupervisorAsk::DescribeTree(DescribeTree))?,
            "described" => {
                let outcome = Outcome::Described { own: Default::default(), children: Vec::new() };
                self.bring_back(Kind::Describe, 0, is_late, Ok(outcome))?
            }
            "restart" => {
                let name = args.next_pos().ok_or("whom?")?.to_owned();
                self.ask_often(&mut args, || {
                    SupervisorAsk::RestartChild(RestartChild { name: name.clone() })
                })?
            }
            "shutdown" => {
                let mode = mode(args.next_pos())?;
                self.ask_often(&mut args, || SupervisorAsk::Shutdown(Shutdown { mode }))?
            }
            "stop" => {
                let mode = mode(args.next_pos())?;
                self.step(&Input::StopRequested(mode))?
            }
            "fails" | "hangs" | "ends" | "down" => {
                let child = self.place(args.next_pos().ok_or("who?")?)?;
                let how = args.next_pos();
                let (kind, mut outcome) = self.come_of(&command.name, child, how)?;
                if let Ok(Outcome::Stopped { below, .. }) = &mut outcome {
                    for (key, is_left) in [("ended", false), ("left", true)] {
                        below.extend(args.take_key(key).map(|what| step(what, is_left)));
                    }
                }
                self.bring_back(kind, child, is_late, outcome)?
            }
            other => return Err(format!("unknown command {other}").into()),
        };
        args.reject_next()?;
        Ok(said)
    }
}

fn number<N: std::str::FromStr<Err: Error + 'static>>(
    text: Option<&str>,
    otherwise: N,
) -> Result<N, Box<dyn Error>> {
    Ok(text.map_or(Ok(otherwise), str::parse)?)
}

/// Messages are numbered in the order of the script.
fn asker(id: AskId) -> String {
    format!("{id:?}").replace("AskId(", "question ").replace(')', ":")
}

fn pause_of(Timer::Pause(number): Timer) -> String {
    format!("pause of restart {}", number.0)
}

fn mode(word: Option<&str>) -> Result<StopMode, Box<dyn Error>> {
    match word {
        None | Some("stop") => Ok(StopMode::Stop),
        Some("detach") => Ok(StopMode::Detach),
        Some(other) => Err(format!("unknown mode {other}").into()),
    }
}

fn news_in_words(news: &SupervisorNews) -> String {
    match news {
        SupervisorNews::ChildStarted { name, restarts: 0 } => format!("{name} runs"),
        SupervisorNews::ChildStarted { name, restarts } => format!("{name} runs again ({restarts})"),
        SupervisorNews::ChildStartFailed { name, reason } => format!("{name} did not start: {reason}"),
        SupervisorNews::ChildEnded { name, ending } => format!("{name} ended: {ending}"),
        SupervisorNews::ChildRestarting { name, pause } => format!("{name} fell, pause {pause:?}"),
        SupervisorNews::ChildStopped(ending) => format!("{}: {}", ending.name, ending.ending),
        SupervisorNews::Escalated { reason } => format!("escalated: {reason}"),
    }
}

fn answer_in_words(answer: &SupervisorAnswer) -> String {
    match answer {
        SupervisorAnswer::AwaitStarted(Ok(())) => "started".to_owned(),
        SupervisorAnswer::AwaitStarted(Err(error)) => format!("not started: {error}"),
        SupervisorAnswer::RestartChild(Ok(())) => "restarted".to_owned(),
        SupervisorAnswer::RestartChild(Err(error)) => format!("not restarted: {error}"),
        SupervisorAnswer::DescribeTree(tree) => tree_in_words(tree, 0),
        SupervisorAnswer::Shutdown(Ok(report)) => report_in_words(report),
        SupervisorAnswer::Shutdown(Err(error)) => format!("no report: {error}"),
    }
}

fn tree_in_words(node: &TreeNode, depth: usize) -> String {
    let mut said = format!("{} is {}", node.name, node.state);
    if node.restarts > 0 {
        said.push_str(&format!(", restarts {}", node.restarts));
    }
    if !node.message.is_empty() {
        said.push_str(&format!(": {}", node.message));
    }
    for child in &node.children {
        said.push_str(&format!(
            "\n{:indent$}{}",
            "",
            tree_in_words(child, depth + 1),
            indent = 4 * (depth + 1)
        ));
    }
    said
}

fn report_in_words(report: &ShutdownReport) -> String {
    let mut said = format!("all ended after {:?}", report.took);
    for child in &report.children {
        for step in &child.below {
            said.push_str(&format!("\n    {}", step_in_words(step)));
        }
        said.push_str(&format!("\n    {}: {} ({:?})", child.name, child.ending, child.took));
    }
    said
}

fn step(what: &str, is_left: bool) -> StopStep {
    let ending = if is_left { "it may still run" } else { "ended" }.to_owned();
    StopStep { what: what.to_owned(), ending, took: Duration::ZERO, is_left }
}

fn step_in_words(step: &StopStep) -> String {
    let left = if step.is_left { ", left" } else { "" };
    format!("{}: {}{left}", step.what, step.ending)
}

#[test]
fn every_story_is_told_as_it_was_recorded() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/supervisor/scripts"));
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of the stories is here")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    scripts.sort();
    let differing: Vec<&PathBuf> = scripts.iter().filter(|script| !plays(script)).collect();
    assert!(!scripts.is_empty() && differing.is_empty(), "these differ, see above: {differing:?}");
}

fn plays(script: &std::path::Path) -> bool {
    let played = std::panic::catch_unwind(|| goldenscript::run(&mut Stage::new(), script));
    matches!(played, Ok(Ok(())))
}
