//! Message scripts of the tasks: they run the pure machine under virtual time.
//!
//! A script lists inputs; the recorded output below each lists the effects, in order. Calls stay open until the script
//! completes them. `crash` rebuilds the machine like the shell, `kill-host` begins another run of the host on its disk.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use goldenscript::{Command, Context, Runner};

use super::calls::*;
use super::config::{DriverProgram, TaskConfig, TaskRestart};
use super::handle::KeptHandle;
use super::identity::TaskIdentities;
use super::kept::KeptDriver;
use super::messages::*;
use super::state::*;
use crate::agent::RestartPolicy;
use crate::driver::{EventPosition, TaskEnd, TaskEvent, TaskEventItem, TaskExit};
use crate::kernel::{CallLost, Effect, Input, Machine, StopMode, StopStep};
use crate::leftovers::{BootClock, Trace, Traces};
use crate::stage::{parse_span, play_all};
use crate::surroundings::{Surroundings, begun};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_tasks_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tasks/scripts"), 10, Stage::new);
}

#[test]
fn a_task_that_has_ended_is_so_since_it_ended_and_not_since_the_host_started() {
    let mut stage = Stage::new();
    let name = AllocationId::new("job").unwrap();
    stage.configure(name.clone(), &BTreeMap::new()).unwrap();
    let ended = Timestamp::from_epoch(Duration::from_secs(500));
    let exit = exit("0").map(|exit| (exit, ended));
    let durable = DurableState { wanted: Some(Wanted::Ended), exit, ..DurableState::default() };
    stage.disk.states.insert(name, durable);
    stage.rebuild(true, &mut String::new());
    let told = stage.tasks.view().tasks.remove(0);
    assert_eq!((told.phase, told.since), (TaskPhase::Ended, ended));
}

#[test]
fn a_handle_that_is_too_long_to_be_kept_ends_the_run_and_the_longest_does_not() {
    let told = |more: usize| {
        let (mut stage, mut told) = (Stage::new(), String::new());
        stage.configure(AllocationId::new("web").unwrap(), &BTreeMap::new()).unwrap();
        stage.rebuild(false, &mut told);
        let web = AllocationId::new("web").unwrap();
        stage.perform_command("brought", "exec", &web, "", &mut told).unwrap();
        stage.answer(&web, TasksOutcome::Watched(Ok(())), &mut told);
        let handle = KeptHandle::new(&vec![7; 512 * 1_024 + more], &[], "");
        told.clear();
        stage.answer(&web, TasksOutcome::Started(Started::Runs(Box::new(handle))), &mut told);
        told
    };
    assert!(told(0).contains("web is running"), "{}", told(0));
    assert!(told(1).contains("a handle of 524289 bytes; at most 524288 are kept"), "{}", told(1));
}

struct Stage {
    tasks: Tasks,
    disk: TasksImage,
    surroundings: Surroundings<Tasks>,
    is_sick: bool,
    sequence: u64,
}

fn identities() -> TaskIdentities {
    TaskIdentities::of_owner("0123456789abcdef")
}

fn options() -> TasksOptions {
    let mut restart = RestartPolicy::new(2, Duration::from_secs(60), Duration::from_secs(1));
    restart.backoff.jitter_percent = 0;
    TasksOptions {
        tasks: vec![],
        drivers: BTreeMap::new(),
        restart,
        identities: identities(),
        boot: Some(BootClock {
            boot: "boot".to_owned(),
            since_boot: Duration::from_secs(1_000),
            now: Timestamp::default(),
        }),
    }
}

fn kept(survives: bool) -> KeptDriver {
    KeptDriver {
        program: DriverProgram::Internal("exec".to_owned()),
        arguments: vec![],
        sha256: None,
        survives,
        stop_grace: Duration::from_secs(5),
        start_timeout: Duration::from_secs(60),
        had_more: false,
    }
}

/// Its bytes are the id of its run.
fn handle(id: &str) -> KeptHandle {
    KeptHandle::new(id.as_bytes(), id.as_bytes(), "")
}

fn handle_id(handle: &KeptHandle) -> String {
    String::from_utf8_lossy(handle.bytes()).into_owned()
}

impl Stage {
    fn new() -> Self {
        let surroundings = Surroundings::default();
        let tasks = Tasks::restore(&options(), TasksImage::default(), surroundings.moment());
        Self { tasks, disk: TasksImage::default(), surroundings, is_sick: false, sequence: 0 }
    }

    fn step(&mut self, input: &Input<Tasks>, told: &mut String) {
        let effects = self.surroundings.step(&mut self.tasks, input);
        effects.into_iter().for_each(|effect| self.perform(effect, told));
        self.come_back_from_disk(told);
    }

    /// The earlier writes are on disk, if the disk is sound.
    fn come_back_from_disk(&mut self, told: &mut String) {
        let is_meant = |call: &TasksCall| matches!(call, TasksCall::AwaitDisk { .. });
        if !self.is_sick && self.surroundings.calls.iter().any(|(_, call)| is_meant(call)) {
            self.come_back(is_meant, Ok(TasksOutcome::OnDisk), told);
        }
    }

    fn perform(&mut self, effect: Effect<Tasks>, told: &mut String) {
        match effect {
            Effect::Persist(_, change) => {
                let place = if matches!(change, TasksChange::Returns(_)) { "memory" } else { "disk" };
                writeln!(told, "{place}: {}", tell_change(&change)).unwrap();
                self.write(change);
            }
            Effect::Reply(id, answer) => {
                self.surroundings.answered(id);
                writeln!(told, "answer: {}", tell_answer(answer)).unwrap();
            }
            Effect::Publish(news) => writeln!(told, "{}", tell_news(&news)).unwrap(),
            Effect::Call { key, call, deadline } => {
                if let Some(line) = tell_call(&call) {
                    let stops = matches!(call, TasksCall::Stop { .. });
                    let heard = if stops { format!(", heard within {deadline:?}") } else { String::new() };
                    writeln!(told, "call: {line}{heard}").unwrap();
                }
                self.surroundings.calls.push((key, call));
            }
            Effect::StartTimer(timer, at) => self.surroundings.start_timer(timer, at),
            Effect::CancelTimer(timer) => self.surroundings.cancel_timer(&timer),
            Effect::Stop(ending) => {
                writeln!(told, "the tasks end: {ending:?} {}", tell_steps(&self.tasks.stop_steps())).unwrap();
            }
        }
    }

    fn write(&mut self, change: TasksChange) {
        match change {
            TasksChange::State(name, durable) => drop(self.disk.states.insert(name, *durable)),
            TasksChange::Log(name, log) => drop(self.disk.logs.insert(name, *log)),
            TasksChange::KeepDriver(driver, kept) => drop(self.disk.drivers.insert(driver, *kept)),
            TasksChange::ForgetDriver(driver) => drop(self.disk.drivers.remove(&driver)),
            TasksChange::Returns(name) => drop(self.disk.returning.insert(name)),
            TasksChange::Forget(name) => {
                self.disk.states.remove(&name);
                self.disk.logs.remove(&name);
            }
        }
    }

    fn rebuild(&mut self, is_of_earlier_run: bool, told: &mut String) {
        if is_of_earlier_run {
            self.surroundings.forget_questions();
        }
        let again = self.surroundings.begin_anew();
        let options = self.tasks.options.clone();
        let returning = std::mem::take(&mut self.disk.returning);
        let image = TasksImage { is_of_earlier_run, returning, ..self.disk.clone() };
        self.tasks = Tasks::restore(&options, image, self.surroundings.moment());
        self.step(&Input::Resumed, told);
        again.iter().for_each(|asked| self.step(asked, told));
    }

    fn ask(&mut self, ask: TasksAsk, told: &mut String) {
        let asked = self.surroundings.ask(ask);
        self.step(&asked, told);
    }

    /// Completes the earliest such call.
    fn come_back(
        &mut self,
        is_meant: impl Fn(&TasksCall) -> bool,
        outcome: Result<TasksOutcome, CallLost>,
        told: &mut String,
    ) {
        let returned = self.surroundings.returned(is_meant, outcome);
        self.step(&returned, told);
    }

    /// Completes the earliest call about a run of this task.
    fn answer(&mut self, name: &AllocationId, outcome: TasksOutcome, told: &mut String) {
        let kind = match outcome {
            TasksOutcome::Started(_) => "start",
            TasksOutcome::Inspected(_) => "inspect",
            TasksOutcome::DriverReplaced(_) => "replace the driver of",
            TasksOutcome::Recovered(_) => "recover",
            TasksOutcome::Waited(_) => "wait for",
            TasksOutcome::StopTaken(_) => "stop",
            TasksOutcome::Destroyed(_) => "destroy",
            TasksOutcome::Located(_) => "locate",
            TasksOutcome::Swept(_) => "sweep",
            TasksOutcome::Watched(_) => "watch",
            TasksOutcome::SetUp(_)
            | TasksOutcome::Dismissed(_)
            | TasksOutcome::Events(_)
            | TasksOutcome::Sent(_)
            | TasksOutcome::OnDisk
            | TasksOutcome::Forgotten => "read events",
        };
        let beginning = format!("{kind} {name}");
        self.come_back(|call| tell_any_call(call).starts_with(&beginning), Ok(outcome), told);
    }

    fn wait(&mut self, span: Duration, told: &mut String) {
        let until = self.surroundings.now + span;
        while let Some(timer) = self.surroundings.next_timer(until) {
            // The effects of a further search show that this timer fired.
            if !matches!(timer, TasksTimer::Locate(_)) {
                writeln!(told, "at {:.2} s", self.surroundings.now.since(begun()).as_secs_f64()).unwrap();
            }
            self.step(&Input::Elapsed(timer), told);
        }
        self.surroundings.now = until;
    }
}

fn tell_change(change: &TasksChange) -> String {
    match change {
        TasksChange::State(name, durable) => {
            let run = durable.run.as_ref().map_or_else(
                || "no run".to_owned(),
                |run| {
                    let state = match &run.state {
                        RunState::Intended => "intended".to_owned(),
                        RunState::Started(handle) => format!("started, handle of {}", handle_id(handle)),
                        RunState::Over { exit: None, .. } => "over".to_owned(),
                        RunState::Over { exit: Some(exit), .. } => format!("over, {exit}"),
                    };
                    let located: Vec<_> = run.evidence.traces.processes.keys().map(u32::to_string).collect();
                    let located = match located.is_empty() {
                        true => String::new(),
                        false => format!(", located: {}", located.join(" ")),
                    };
                    format!("{} {state}{located}", run.id)
                },
            );
            format!("{name} wanted {:?}; {run}", durable.wanted)
        }
        TasksChange::Log(name, log) => {
            let position = log.position.as_ref().map_or_else(String::new, ToString::to_string);
            let words: Vec<_> = log.recent.entries().iter().map(ToString::to_string).collect();
            format!("{name} events up to {position}: {}", words.join(", "))
        }
        TasksChange::Returns(name) => format!("{name} is expected back"),
        TasksChange::Forget(name) => format!("{name} forgotten"),
        TasksChange::KeepDriver(driver, _) => format!("how driver {driver} is run"),
        TasksChange::ForgetDriver(driver) => format!("driver {driver} forgotten"),
    }
}

fn tell_task(task: &TaskReport) -> String {
    let exit = task.exit.as_ref().map_or_else(String::new, |(exit, _)| format!(" [{exit}]"));
    let restarts = if task.restarts > 0 { format!(" restarts={}", task.restarts) } else { String::new() };
    let events = if task.events_told > 0 { format!(" events={}", task.events_told) } else { String::new() };
    format!("{} is {}{exit}{restarts}{events}: {}", task.name, task.phase, task.note)
}

/// The limits of its stop, and the result of the stop.
fn tell_stop(task: &TaskReport) -> String {
    let at = |at: Timestamp| at.since(begun());
    let bound = task.stopping.map_or_else(String::new, |bound| {
        let kill = bound.kill.map_or_else(String::new, |kill| format!(", killed at {:?}", at(kill)));
        format!(", by {:?}{kill}", at(bound.by))
    });
    format!("{} is {}{bound} {}", task.name, task.phase, tell_steps(&task.ended)).trim_end().to_owned() + "\n"
}

fn tell_news(news: &TasksNews) -> String {
    match news {
        TasksNews::TaskChanged(task) => tell_task(task),
        TasksNews::TaskForgotten(name) => format!("{name} is forgotten"),
        TasksNews::DriverForgotten(name) => format!("driver {name} is forgotten"),
        TasksNews::DriverChanged(DriverEntry { name, progress }) => format!("driver {name}: {progress:?}"),
    }
}

fn tell_steps(steps: &[StopStep]) -> String {
    let told = steps.iter().map(|step| {
        let left = if step.is_left { ", and it is left" } else { "" };
        format!("[{}: {} ({:?}){left}]", step.what, step.ending, step.took)
    });
    told.collect::<Vec<_>>().join(" ")
}

fn tell_answer(answer: TasksAnswer) -> String {
    match answer {
        TasksAnswer::StartTask(Ok(())) => "starts".to_owned(),
        TasksAnswer::StopTask(Ok(stopped)) => format!("stopped {}", tell_steps(&stopped.steps)),
        TasksAnswer::StartTask(Err(error)) | TasksAnswer::StopTask(Err(error)) => error.to_string(),
        TasksAnswer::SetUpDriver(Ok(progress)) => format!("{progress:?}"),
        TasksAnswer::SetUpDriver(Err(error)) => error.to_string(),
        TasksAnswer::ListTasks(tasks) => tasks.iter().map(tell_task).collect::<Vec<_>>().join("\n"),
    }
}

/// The id of a run without its allocation id, which is the same in every run.
fn short(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, rest)| rest)
}

fn tell_any_call(call: &TasksCall) -> String {
    match call {
        TasksCall::SetUp(driver) => format!("bring {driver}"),
        TasksCall::SetUpUnconfigured(driver, _) => format!("bring back {driver}"),
        TasksCall::Dismiss { driver, left } => {
            let left: Vec<_> = left.iter().map(ToString::to_string).collect();
            format!("dismiss {driver}, left: [{}]", left.join(", "))
        }
        TasksCall::Watch { name, driver, after, taken } => {
            let after = after.as_ref().map_or_else(|| "the beginning".to_owned(), ToString::to_string);
            format!("watch {name} at {driver} after {after}, {taken} taken")
        }
        TasksCall::ReadEvents { name, taken } => format!("read events {name} beyond {taken}"),
        TasksCall::Forget { name, driver: Some(driver) } => format!("forget {name} at {driver}"),
        TasksCall::Forget { name, driver: None } => format!("forget {name}"),
        TasksCall::Start(run, _) => format!("start {} by {}", short(run.id.as_str()), run.driver),
        TasksCall::AwaitDisk { run, .. } => format!("await the disk for {}", short(run.id.as_str())),
        TasksCall::AwaitSent(run) => format!("hear when the start of {} is sent", short(run.id.as_str())),
        TasksCall::CallOff(run) => format!("call off the start of {}", short(run.id.as_str())),
        TasksCall::Recover(run, handle, _) => {
            format!("recover {} by the handle of {}", short(run.id.as_str()), short(&handle_id(handle)))
        }
        TasksCall::Inspect(run) => format!("inspect {}", short(run.id.as_str())),
        TasksCall::ReplaceDriver(run) => format!("replace the driver of {}", short(run.id.as_str())),
        TasksCall::Wait(run) => format!("wait for {}", short(run.id.as_str())),
        TasksCall::Stop { run, grace, signal } => {
            let by = if signal.is_empty() { String::new() } else { format!(" by {signal}") };
            format!("stop {} within {grace:?}{by}", short(run.id.as_str()))
        }
        TasksCall::Destroy(run) => format!("destroy {}", short(run.id.as_str())),
        TasksCall::Locate { run, .. } => format!("locate {}", short(run.id.as_str())),
        TasksCall::Sweep { run, handle, evidence, driver } => {
            let handle = if handle.is_some() { ", with its handle" } else { "" };
            let handle = match evidence.traces.is_empty() {
                true => handle.to_owned(),
                false => format!("{handle}, where it was located"),
            };
            let driver = match driver {
                Heard::End | Heard::Answer => "",
                Heard::Nothing => ", its driver not heard",
                Heard::NothingOfStart => ", its driver not heard of the start",
            };
            format!("sweep {}{handle}{driver}", short(run.id.as_str()))
        }
    }
}

fn tell_call(call: &TasksCall) -> Option<String> {
    let is_usual =
        matches!(call, TasksCall::ReadEvents { .. } | TasksCall::Locate { .. } | TasksCall::AwaitDisk { .. });
    (!is_usual).then(|| tell_any_call(call))
}

fn trouble(rest: &str) -> Trouble {
    match rest.split_once(' ') {
        Some(("never", reason)) => Trouble::lasting(reason),
        Some(("absent", reason)) => Trouble::absent(reason),
        Some(_) | None => Trouble::passing(rest),
    }
}

fn answered(rest: &str) -> Result<(), Trouble> {
    if rest.is_empty() { Ok(()) } else { Err(trouble(rest)) }
}

fn exit(code: &str) -> Option<TaskExit> {
    let end = match code {
        "unknown" => TaskEnd::Unknown("its driver lost it".to_owned()),
        code => TaskEnd::Exited(code.parse().ok()?),
    };
    Some(TaskExit { end, oom_killed: false })
}

impl Runner for Stage {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut told = String::new();
        let mut arguments = command.consume_args();
        let mut words: Vec<String> = std::iter::from_fn(|| arguments.next_pos().map(str::to_owned)).collect();
        let keys: BTreeMap<String, String> =
            std::iter::from_fn(|| arguments.next_key().map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
        let first = if words.is_empty() { String::new() } else { words.remove(0) };
        let name = AllocationId::new(&first).or_else(|_| AllocationId::new("none"))?;
        if command.name == "task" {
            self.configure(name, &keys)?;
        } else if command.name == "no-driver" {
            self.tasks.options.drivers.remove(&DriverName::new(&first)?);
        } else if command.name == "lose-driver" {
            self.disk.drivers.remove(&DriverName::new(&first)?);
        } else {
            self.perform_command(&command.name, &first, &name, &words.join(" "), &mut told)?;
        }
        for task in &self.tasks.tasks {
            told = told.replace(&format!("{}/", identities().of(&task.config.name).allocation), "");
        }
        Ok(told)
    }
}

impl Stage {
    fn configure(
        &mut self,
        name: AllocationId,
        keys: &BTreeMap<String, String>,
    ) -> Result<(), Box<dyn Error>> {
        let is = |key: &str, word: &str| keys.get(key).is_some_and(|value| value == word);
        let options = &mut self.tasks.options;
        options.tasks.retain(|task| task.name != name);
        if keys.contains_key("removed") {
            return Ok(());
        }
        let driver = DriverName::new(keys.get("driver").map_or("exec", String::as_str))?;
        options.drivers.insert(driver.clone(), kept(!is("survives", "no")));
        options.tasks.push(Arc::new(TaskConfig {
            restart: if is("restart", "none") { TaskRestart::None } else { TaskRestart::OnFailure },
            start: !is("start", "no"),
            kill_signal: keys.get("kill-signal").cloned().unwrap_or_default(),
            shutdown_delay: Duration::from_secs(
                keys.get("shutdown-delay").map_or(Ok(0), |seconds| seconds.parse())?,
            ),
            ..TaskConfig::new(name, driver)
        }));
        Ok(())
    }

    fn perform_command(
        &mut self,
        command: &str,
        first: &str,
        name: &AllocationId,
        rest: &str,
        told: &mut String,
    ) -> Result<(), Box<dyn Error>> {
        let task = name.clone();
        match command {
            "sick" => self.is_sick = true,
            "sound" => {
                self.is_sick = false;
                self.come_back_from_disk(told);
            }
            "forever" => self.tasks.options.restart.budget = None,
            "host" => self.rebuild(false, told),
            "kill-host" => self.rebuild(true, told),
            "crash" => self.rebuild(false, told),
            "next-life" => {
                self.surroundings.forget_questions();
                self.rebuild(false, told);
            }
            "bound" => writeln!(told, "stops within {:?}", self.tasks.stops_within())?,
            "stops" => self.tasks.view().tasks.iter().for_each(|task| told.push_str(&tell_stop(task))),
            "start" => self.ask(TasksAsk::StartTask(StartTask { name: task }), told),
            "stop" => self.ask(TasksAsk::StopTask(StopTask { name: task }), told),
            "bring" => self.ask(TasksAsk::SetUpDriver(SetUpDriver { name: DriverName::new(first)? }), told),
            "list" => self.ask(TasksAsk::ListTasks(ListTasks), told),
            "end" if first == "detach" => self.step(&Input::StopRequested(StopMode::Detach), told),
            "end" => self.step(&Input::StopRequested(StopMode::Stop), told),
            "wait" => self.wait(parse_span(first)?, told),
            "brought" => {
                let is_meant = |call: &TasksCall| tell_any_call(call) == format!("bring {first}");
                self.come_back(is_meant, Ok(TasksOutcome::SetUp(answered(rest))), told);
            }
            "brought-back" => {
                let is_meant = |call: &TasksCall| tell_any_call(call) == format!("bring back {first}");
                self.come_back(is_meant, Ok(TasksOutcome::SetUp(answered(rest))), told);
            }
            "dismissed" => {
                let is_meant =
                    |call: &TasksCall| tell_any_call(call).starts_with(&format!("dismiss {first},"));
                self.come_back(is_meant, Ok(TasksOutcome::Dismissed(answered(rest))), told);
            }
            "watched" => self.answer(name, TasksOutcome::Watched(answered(rest)), told),
            "events" => {
                let items = rest.split(' ').map(|words| self.event(&task, words)).collect();
                self.answer(name, TasksOutcome::Events(items), told);
            }
            "events-over" => self.answer(name, TasksOutcome::Events(vec![]), told),
            "started" => self.started(name, rest, told),
            "found" => {
                let found = match rest {
                    "running" => Ok(Found::Running),
                    "nothing" => Ok(Found::Nothing { words: "task not found".to_owned(), is_proof: true }),
                    "unknown" => Ok(Found::Nothing { words: "task not found".to_owned(), is_proof: false }),
                    other => exit(other).map(Found::Exited).ok_or_else(|| trouble(other)),
                };
                self.answer(name, TasksOutcome::Inspected(found), told);
            }
            "replaced" => self.answer(name, TasksOutcome::DriverReplaced(answered(rest)), told),
            "recovered" => self.answer(name, TasksOutcome::Recovered(answered(rest)), told),
            "exited" => {
                // `unknown but 0`: the wait has failed, and the driver has recorded code 0.
                let (waited, recorded) = rest.split_once(" but ").unwrap_or((rest, ""));
                let waited = exit(waited).map(|of| Waited { exit: of, recorded: exit(recorded) });
                self.answer(name, TasksOutcome::Waited(waited.ok_or_else(|| trouble(rest))), told);
            }
            "stop-taken" => self.answer(name, TasksOutcome::StopTaken(answered(rest)), told),
            "destroyed" => self.answer(name, TasksOutcome::Destroyed(answered(rest)), told),
            "located" => {
                let trace = Trace { started_ticks: 1, session: None, group: None };
                let pid = |word: &str| Some((word.parse().ok()?, trace));
                let traces = Traces {
                    boot: "boot".to_owned(),
                    processes: rest.split(' ').filter_map(pid).collect(),
                    ..Traces::default()
                };
                let located = if rest.starts_with("not ") { Err(trouble(rest)) } else { Ok(traces) };
                self.answer(name, TasksOutcome::Located(located), told);
            }
            "swept" => {
                let swept = |has_killed, words: &str, unreleased: Option<&str>| {
                    let (words, unreleased) = (words.to_owned(), unreleased.map(str::to_owned));
                    Ok(Swept { has_killed, words, unreleased })
                };
                let swept = match rest.split_once(' ') {
                    None => swept(false, "no process of it was left", None),
                    Some(("killed", _)) => swept(true, rest, None),
                    Some(("unreleased", why)) => swept(false, "no process of it was left", Some(why)),
                    Some(_) => Err(trouble(rest)),
                };
                self.answer(name, TasksOutcome::Swept(swept), told);
            }
            "crashed" => {
                let beginning = format!("{rest} {name}");
                let lost = CallLost::Crashed("a drill".to_owned());
                self.come_back(|call| tell_any_call(call).starts_with(&beginning), Err(lost), told);
            }
            "lost" => {
                let beginning = format!("{rest} {name}");
                let lost = CallLost::DeadlineExceeded(Duration::from_secs(90));
                self.come_back(|call| tell_any_call(call).starts_with(&beginning), Err(lost), told);
            }
            other => return Err(format!("the stories of the tasks have no {other}").into()),
        }
        Ok(())
    }

    fn started(&mut self, name: &AllocationId, rest: &str, told: &mut String) {
        let started = match rest.split_once(' ') {
            None => {
                let run = self.tasks.tasks.iter().find(|task| task.config.name == *name);
                let id = run.and_then(|task| task.durable.run.as_ref()).expect("it starts").id.clone();
                Started::Runs(Box::new(handle(id.as_str())))
            }
            Some(("retry", reason)) => Started::Retry(reason.to_owned()),
            Some(("refused", reason)) => Started::Refused(reason.to_owned()),
            Some(("fatal", reason)) => Started::Fatal(reason.to_owned()),
            Some(("unclear", reason)) => Started::Unclear(trouble(reason)),
            Some(("unreleased", reason)) => Started::Unreleased(trouble(reason)),
            Some((_, reason)) => Started::NotAsked(trouble(reason)),
        };
        self.answer(name, TasksOutcome::Started(started), told);
    }

    fn event(&mut self, name: &AllocationId, words: &str) -> TaskEventItem {
        self.sequence += 1;
        let event = TaskEvent {
            task_id: name.as_str().into(),
            task: identities().of(name).key(),
            at: None,
            message: words.to_owned(),
            annotations: BTreeMap::new(),
        };
        TaskEventItem::Event {
            event: Arc::new(event),
            position: EventPosition::new("journal", self.sequence).ok(),
        }
    }
}

#[test]
fn the_start_of_a_task_is_waited_for_for_a_day() {
    let (mut stage, web) = (Stage::new(), AllocationId::new("web").unwrap());
    stage.configure(web.clone(), &BTreeMap::new()).unwrap();
    stage.rebuild(false, &mut String::new());
    stage.perform_command("brought", "exec", &web, "", &mut String::new()).unwrap();
    let is_watch = |call: &TasksCall| matches!(call, TasksCall::Watch { .. });
    let watched = stage.surroundings.returned(is_watch, Ok(TasksOutcome::Watched(Ok(()))));
    let effects = stage.surroundings.step(&mut stage.tasks, &watched);
    let timeout = effects.into_iter().find_map(|effect| match effect {
        Effect::Call { call: TasksCall::Start(..), deadline, .. } => Some(deadline),
        _ => None,
    });
    assert_eq!(timeout, Some(Duration::from_secs(24 * 60 * 60)));
}

#[test]
fn a_driver_that_may_take_long_to_start_is_waited_for_as_long() {
    let name = DriverName::new("slow").unwrap();
    let kept = KeptDriver { start_timeout: Duration::from_secs(600), ..kept(true) };
    let options = TasksOptions { drivers: [(name.clone(), kept)].into(), ..options() };
    let mut stage = Stage::new();
    stage.tasks = Tasks::restore(&options, TasksImage::default(), stage.surroundings.moment());
    let effects = stage.surroundings.step(&mut stage.tasks, &Input::Resumed);
    let timeout = effects.into_iter().find_map(|effect| match effect {
        Effect::Call { call: TasksCall::SetUp(driver), deadline, .. } if driver == name => Some(deadline),
        _ => None,
    });
    // In addition to the time that every plugin has: the start timeout, and twice the grace.
    assert_eq!(timeout, Some(Duration::from_secs(150 + 600 + 2 * 5)));
}
