//! Runs the message scripts of a pure machine, under virtual time.
//!
//! It keeps the state that a shell would keep: the time, timers, and calls in flight. The requested effects of the machine are written
//! line by line, and a script records these lines.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use goldenscript::{ArgumentConsumer, Command, Context, Runner};

use crate::kernel::{AskId, CallKey, CallLost, Effect, Input, Machine, StepContext, StopMode};
use crate::vocabulary::{Moment, Timestamp};

/// The error of a verb of a script.
pub type Fault = Box<dyn Error>;

/// Formats an effect as a line; an empty line is left out. The time is for showing how long a timer runs.
pub type Tell<M> = fn(&Effect<M>, Timestamp) -> String;

/// One machine and its environment.
pub struct Stage<M: Machine> {
    /// The machine.
    pub machine: M,
    /// The present time.
    pub now: Timestamp,
    config: M::Config,
    tell: Tell<M>,
    timers: Vec<(Timestamp, M::Timer)>,
    calls: Vec<(CallKey, M::Call)>,
    asked: u64,
    told: String,
    kept: fn() -> M::Image,
    awaited: fn(&M::Call) -> Option<M::Outcome>,
    is_sick: bool,
    refuses: bool,
}

impl<M: Machine> Stage<M>
where
    M::Image: Default,
{
    /// Builds the machine and starts it.
    pub fn begin(config: M::Config, tell: Tell<M>) -> Self {
        Self::begin_from(config, M::Image::default(), tell)
    }

    /// The same, with a state that outlives a crash.
    pub fn keeping(self, kept: fn() -> M::Image) -> Self {
        Self { kept, ..self }
    }

    /// The same, with calls that only wait for the disk, and their outcome: they return at once while it is sound.
    pub fn awaiting(self, awaited: fn(&M::Call) -> Option<M::Outcome>) -> Self {
        Self { awaited, ..self }
    }

    /// Builds the machine from its state on disk, and starts it.
    pub fn begin_from(config: M::Config, image: M::Image, tell: Tell<M>) -> Self {
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let machine = M::restore(&config, image, Moment { now, random: 0 });
        let mut stage = Self {
            machine,
            now,
            config,
            tell,
            timers: vec![],
            calls: vec![],
            asked: 0,
            told: String::new(),
            kept: M::Image::default,
            awaited: |_| None,
            is_sick: false,
            refuses: false,
        };
        stage.step(&Input::Resumed);
        stage
    }

    /// Takes one step, and keeps the calls and timers that it requests.
    pub fn step(&mut self, input: &Input<M>) {
        let mut cx = StepContext::new(Moment { now: self.now, random: 0 });
        self.machine.step(input, &mut cx);
        let effects: Vec<_> = cx.drain().collect();
        for effect in effects {
            let line = (self.tell)(&effect, self.now);
            if !line.is_empty() {
                writeln!(self.told, "{line}").unwrap();
            }
            match effect {
                Effect::Call { key, call, .. } => self.calls.push((key, call)),
                Effect::StartTimer(timer, at) => {
                    self.timers.retain(|(_, other)| *other != timer);
                    self.timers.push((at, timer));
                }
                Effect::CancelTimer(timer) => self.timers.retain(|(_, other)| *other != timer),
                Effect::Persist(..) | Effect::Reply(..) | Effect::Publish(_) | Effect::Stop(_) => {}
            }
        }
        self.bring_back_awaited();
    }

    fn bring_back_awaited(&mut self) {
        let is_awaited = self.awaited;
        while !self.is_sick
            && let Ok(call) = self.take_call(|call| is_awaited(call).is_some())
            && let Some(outcome) = is_awaited(&call.1)
        {
            self.give(call, Ok(outcome));
        }
    }

    /// The disk takes no writes from now on, or takes them again.
    pub fn disk(&mut self, is_sick: bool) {
        self.is_sick = is_sick;
        self.bring_back_awaited();
    }

    /// Refuses new promises while the disk is sick, before the machine receives them, as the kernel does.
    #[must_use]
    pub fn refusing(mut self) -> Self {
        self.refuses = true;
        self
    }

    /// Sends a message to the machine. Questions are numbered from 1.
    pub fn ask(&mut self, ask: M::Ask) {
        self.asked += 1;
        if self.is_sick && self.refuses && self.machine.is_new_promise(&ask) {
            writeln!(self.told, "not begun {}: the disk is sick", self.asked).unwrap();
            return;
        }
        self.step(&Input::Asked { id: AskId::new(self.asked), asked_at: self.now, ask });
    }

    /// Advances the time, and fires every timer that is due.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(at) = self.timers.iter().map(|(at, _)| *at).filter(|at| *at <= until).min() {
            let place = self.timers.iter().position(|(due, _)| *due == at).expect("it was just there");
            let (_, timer) = self.timers.remove(place);
            self.now = self.now.max(at);
            self.step(&Input::Elapsed(timer));
        }
        self.now = until;
    }

    /// Takes out the oldest call in flight that matches.
    pub fn take_call(&mut self, is_it: impl Fn(&M::Call) -> bool) -> Result<(CallKey, M::Call), Fault> {
        let place = self.calls.iter().position(|(_, call)| is_it(call)).ok_or("no such call is under way")?;
        Ok(self.calls.remove(place))
    }

    /// Completes a call.
    pub fn give(&mut self, (key, call): (CallKey, M::Call), outcome: Result<M::Outcome, CallLost>) {
        self.step(&Input::Returned { key, call, outcome });
    }

    /// Rebuilds the machine, as after a crash, with the state that outlives it.
    pub fn crash(&mut self) {
        let moment = Moment { now: self.now, random: 1 << 20 };
        self.machine = M::restore(&self.config, (self.kept)(), moment);
        self.timers.clear();
        self.calls.clear();
        self.step(&Input::Resumed);
    }

    /// Requests a stop.
    pub fn stop(&mut self) {
        self.stop_in(StopMode::Stop);
    }

    /// Requests a detach.
    pub fn detach(&mut self) {
        self.stop_in(StopMode::Detach);
    }

    fn stop_in(&mut self, mode: StopMode) {
        self.step(&Input::StopRequested(mode));
        if let Some(within) = self.machine.stops_within() {
            self.tell(&format!("ends within {within:?}"));
        }
    }

    /// Discards the output of this verb so far.
    pub fn forget_told(&mut self) {
        self.told.clear();
    }

    /// Outputs a line that is not an effect.
    pub fn tell(&mut self, text: &str) {
        self.told.push_str(text);
    }
}

/// Builds a stage from the arguments of `begin`.
pub type Open<M> = fn(&mut ArgumentConsumer<'_>) -> Result<Stage<M>, Fault>;

/// Runs a script. The commands common to all machines are handled here: `begin`, `pass`, `stop`, `detach`, `crash`,
/// `sick` and `sound`. All other commands are the machine's own.
pub struct Player<M: Machine, V> {
    stage: Option<Stage<M>>,
    open: Open<M>,
    say: V,
}

impl<M: Machine, V> Player<M, V>
where
    V: FnMut(&mut Stage<M>, &str, &mut ArgumentConsumer<'_>) -> Result<(), Fault>,
{
    /// A player whose machine begins with `open`, and whose own verbs are handled by `say`.
    pub fn new(open: Open<M>, say: V) -> Self {
        Self { stage: None, open, say }
    }
}

impl<M: Machine, V> Runner for Player<M, V>
where
    M::Image: Default,
    V: FnMut(&mut Stage<M>, &str, &mut ArgumentConsumer<'_>) -> Result<(), Fault>,
{
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Fault> {
        let mut args = command.consume_args();
        if command.name == "begin" {
            self.stage = Some((self.open)(&mut args)?);
        }
        let stage = self.stage.as_mut().ok_or("it has not begun")?;
        match command.name.as_str() {
            "begin" => {}
            "pass" => stage.pass(span(&mut args)?),
            "stop" => stage.stop(),
            "detach" => stage.detach(),
            "crash" => stage.crash(),
            "sick" => stage.disk(true),
            "sound" => stage.disk(false),
            verb => (self.say)(stage, verb, &mut args)?,
        }
        args.reject_next()?;
        Ok(std::mem::take(&mut stage.told))
    }
}

/// Runs every script of a folder, and checks that there are at least this many.
pub fn play_all<R: Runner>(folder: &str, at_least: usize, open: impl Fn() -> R) {
    let mut stories: Vec<_> =
        std::fs::read_dir(Path::new(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.sort();
    assert!(stories.len() >= at_least, "stories are gone from {folder}: {} are left", stories.len());
    for story in stories {
        println!("{}", story.display());
        goldenscript::run(&mut open(), &story).unwrap();
    }
}

/// The next argument, or an error that it is missing.
pub fn word(args: &mut ArgumentConsumer<'_>, what: &str) -> Result<String, Fault> {
    Ok(args.next_pos().ok_or_else(|| format!("the {what} is missing"))?.to_owned())
}

/// The next argument as a span of time: `500ms`, `30s`, `10min`.
pub fn span(args: &mut ArgumentConsumer<'_>) -> Result<Duration, Fault> {
    parse_span(&word(args, "span of time")?)
}

/// Parses a span of time, as in `500ms`, `30s`, `2m` (also `2min`) or `1h`.
pub fn parse_span(text: &str) -> Result<Duration, Fault> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let number: u64 = digits.parse()?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "min" | "m" => Ok(Duration::from_secs(number * 60)),
        "h" => Ok(Duration::from_secs(number * 3_600)),
        unit => Err(format!("no such unit of time: {unit}").into()),
    }
}

/// The number of a question.
pub fn number(id: AskId) -> String {
    format!("{id:?}").trim_start_matches("AskId(").trim_end_matches(')').to_owned()
}
