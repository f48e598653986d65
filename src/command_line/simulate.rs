//! `callboard simulate`: runs many randomly interleaved allocations, and checks every step against the laws.

mod drawn;
mod script;
mod tasks;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use callboard_simulation::{
    Counterexample, Event, Fault, Faults, Observed, Simulation, Summary, Tampers, UnknownFault, Watch,
    replay_watched, simulate,
};
use clap::Args;

use self::drawn::Run;
use super::drawing::{Drawing, drawing};
use super::report_error;
use crate::output::{check_directory, complain, print};
use callboard_simulation::tasks::Walked;

/// What can be said to `simulate`.
#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// Seed of the random numbers; the same seed gives the same run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How many runs, each with the next seed
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// How many plugins
    #[arg(long, value_name = "P", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    plugins: u32,

    /// How many allocations serve them
    #[arg(long, value_name = "A", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    allocations: u32,

    /// How many drivers, with three tasks each
    #[arg(long, value_name = "D", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    drivers: u32,

    /// Number of other processes that are launched and ended
    #[arg(long, value_name = "W", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    processes: u32,

    /// How many volumes, each with a plugin and three allocations of its own
    #[arg(long, value_name = "V", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    volumes: u32,

    /// Store registrations in a real database, on a disk in memory
    #[arg(long)]
    database: bool,

    /// How many messages in each run
    #[arg(long, value_name = "M", default_value_t = 1_000_000)]
    messages: u64,

    /// How many steps the owner of the tasks of `callboard run` takes before each run, in separate worlds; a hundredth of the
    /// messages unless given
    #[arg(long, value_name = "T")]
    task_steps: Option<u64>,

    /// What goes wrong: all, none, or some of slow, hang, lie, die, not-ready, fail, disk, full-disk, read-only-disk, slow-disk,
    /// hanging-disk, crash, exit, stream, mount, kill-host, shutdown with commas between them
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = read_faults)]
    faults: Faults,

    /// Show progress on standard error, also where that is no terminal
    #[arg(long)]
    progress: bool,

    /// Write every event and its outcome to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Draw the last hundred events, or the history that breaks a law, as a sequence diagram, into a file that ends
    /// in .svg or .mmd (Mermaid)
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    diagram: Option<Drawing>,

    /// Where to write a history that breaks a law
    #[arg(long, value_name = "FILE", default_value = "simulate-failure.script")]
    script: PathBuf,
}

/// Why a simulation has no result.
#[derive(Debug, thiserror::Error)]
enum SimulateError {
    #[error("cannot write the trace {path}: {source}", path = .path.display())]
    Trace { path: PathBuf, source: io::Error },
    #[error("cannot write the history {path}: {source}", path = .path.display())]
    Script { path: PathBuf, source: io::Error },
    #[error("cannot draw {path}: {source}", path = .path.display())]
    Diagram { path: PathBuf, source: io::Error },
    #[error("there are no {seeds} seeds from {seed} on; the last is {last}", last = u64::MAX)]
    Seeds { seed: u64, seeds: u64 },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

fn read_faults(text: &str) -> Result<Faults, UnknownFault> {
    text.parse()
}

/// Runs the simulations.
pub(super) fn run(args: &SimulateArgs) -> ExitCode {
    match run_all(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => report_error(&error, 1),
    }
}

/// False if a law was broken.
fn run_all(args: &SimulateArgs) -> Result<bool, SimulateError> {
    check_outputs(args)?;
    let last = args.seed.checked_add(args.seeds - 1);
    let last = last.ok_or(SimulateError::Seeds { seed: args.seed, seeds: args.seeds })?;
    let mut watcher = Watcher::new(args)?;
    let (mut sum, mut walked) = (Summary::default(), Walked::default());
    for seed in args.seed..=last {
        if !tasks::walk_all(args, seed, &mut walked, &mut watcher)? {
            return Ok(false);
        }
        let SimulateArgs {
            plugins,
            allocations,
            drivers,
            processes,
            volumes,
            database,
            messages,
            faults,
            ..
        } = *args;
        let simulation = Simulation {
            seed,
            plugins,
            allocations,
            drivers,
            processes,
            volumes,
            has_database: database,
            messages,
            faults,
        };
        watcher.begins(seed, sum.messages);
        match simulate(&simulation, &mut watcher) {
            Ok(summary) => sum = added(sum, &summary),
            Err(found) => {
                // Which law was broken is reported even if something cannot be written.
                let finished = watcher.finish();
                tell_failure(&simulation, &found);
                let written = write_script(args, &simulation, &found);
                draw_failure(args, &simulation, &found)?;
                return finished.and(written).map(|()| false);
            }
        }
    }
    let finished = watcher.finish();
    print(&summary_text(args.seed..=last, &sum, &walked, watcher.begun))?;
    let title = format!("simulation with seed {last}: the end of {} messages", args.messages);
    draw(args, watcher.drawn.take(), title, "no law was broken")?;
    finished.map(|()| true)
}

/// Checks before the run that its output files can be written.
fn check_outputs(args: &SimulateArgs) -> Result<(), SimulateError> {
    let history = &args.script;
    check_directory(history).map_err(|source| SimulateError::Script { path: history.clone(), source })?;
    let Some(path) = args.diagram.as_ref().map(Drawing::path) else { return Ok(()) };
    check_directory(&path).map_err(|source| SimulateError::Diagram { path, source })
}

/// Draws the run, if a picture is requested.
fn draw(args: &SimulateArgs, drawn: Option<Run>, title: String, end: &str) -> Result<(), SimulateError> {
    let (Some(drawing), Some(run)) = (&args.diagram, drawn) else { return Ok(()) };
    let path = drawing.path();
    drawing.draw(&run.picture(title, end)).map_err(|source| SimulateError::Diagram { path, source })
}

/// Draws the shortened history that breaks a law.
fn draw_failure(
    args: &SimulateArgs,
    simulation: &Simulation,
    found: &Counterexample<Event>,
) -> Result<(), SimulateError> {
    let mut run = Run::default();
    replay_watched(simulation, Tampers::default(), &found.history, &mut run);
    let law = found.violation.law.id();
    let title = format!("simulation with seed {}: a shortened history that breaks {law}", simulation.seed);
    draw(args, Some(run), title, &found.violation.to_string())
}

fn added(sum: Summary, more: &Summary) -> Summary {
    let mut faults = sum.faults;
    faults.iter_mut().zip(more.faults).for_each(|(sum, more)| *sum += more);
    Summary {
        messages: sum.messages + more.messages,
        events: sum.events + more.events,
        overtaken: sum.overtaken + more.overtaken,
        faults,
        simulated: sum.simulated + more.simulated,
    }
}

fn summary_text(seeds: RangeInclusive<u64>, sum: &Summary, walked: &Walked, begun: Instant) -> String {
    let seconds = begun.elapsed().as_secs_f64();
    let faults: Vec<String> =
        Fault::ALL.iter().zip(sum.faults).map(|(fault, count)| format!("{fault} {count}")).collect();
    let (first, last) = seeds.into_inner();
    let seeds = if first == last { first.to_string() } else { format!("{first} to {last}") };
    format!(
        "no law was broken\n\
         seeds          {seeds}\n\
         messages       {messages}\n\
         interleavings  {overtaken} of {events} events overtook an earlier one\n\
         faults         {faults}\n\
         tasks          {steps} steps in {worlds} worlds, {wishes} of them faults and requests\n\
         simulated      {simulated:.0} s\n\
         took           {seconds:.1} s, {rate:.0} messages per second\n",
        messages = sum.messages,
        overtaken = sum.overtaken,
        events = sum.events,
        faults = faults.join(", "),
        steps = walked.steps,
        worlds = walked.worlds,
        wishes = walked.faults,
        simulated = sum.simulated.as_secs_f64(),
        rate = messages_per_second(sum.messages, seconds),
    )
}

fn messages_per_second(messages: u64, seconds: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate is told to a few digits")]
    let messages = messages as f64;
    if seconds > 0.0 { messages / seconds } else { 0.0 }
}

/// Reports which law was broken, and how to reproduce it.
fn tell_failure(simulation: &Simulation, found: &Counterexample<Event>) {
    complain(&format!("callboard: seed {}: {}", simulation.seed, found.violation));
    complain(&format!("callboard: {} breaks it again", command_of(simulation)));
}

/// Writes the history that breaks a law.
fn write_script(
    args: &SimulateArgs,
    simulation: &Simulation,
    found: &Counterexample<Event>,
) -> Result<(), SimulateError> {
    let path = &args.script;
    std::fs::write(path, script::write(simulation, &command_of(simulation), found))
        .map_err(|source| SimulateError::Script { path: path.clone(), source })?;
    complain(&format!(
        "callboard: {} events that show it are written to {}",
        found.history.len(),
        path.display()
    ));
    Ok(())
}

/// The command that repeats a run.
fn command_of(simulation: &Simulation) -> String {
    let Simulation {
        seed,
        plugins,
        allocations,
        drivers,
        processes,
        volumes,
        has_database,
        messages,
        faults,
    } = simulation;
    let database = if *has_database { " --database" } else { "" };
    format!(
        "callboard simulate --seed {seed} --plugins {plugins} --allocations {allocations} --drivers {drivers} \
         --processes {processes} --volumes {volumes}{database} --messages {messages} --faults {faults}"
    )
}

/// Whether and how progress is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Not,
    /// On a terminal, each time over the previous output.
    Overwritten,
    LineByLine,
}

/// Shows progress, and writes the trace.
struct Watcher {
    begun: Instant,
    before: u64,
    seed: u64,
    how: Shown,
    trace: Option<(PathBuf, BufWriter<File>)>,
    failed: Option<SimulateError>,
    drawn: Option<Run>,
}

impl Watcher {
    fn new(args: &SimulateArgs) -> Result<Self, SimulateError> {
        let trace = match &args.trace {
            Some(path) => {
                let file = File::create(path)
                    .map_err(|source| SimulateError::Trace { path: path.clone(), source })?;
                Some((path.clone(), BufWriter::new(file)))
            }
            None => None,
        };
        let how = match (args.progress, io::stderr().is_terminal()) {
            (_, true) => Shown::Overwritten,
            (true, false) => Shown::LineByLine,
            (false, false) => Shown::Not,
        };
        Ok(Self {
            begun: Instant::now(),
            before: 0,
            seed: args.seed,
            how,
            trace,
            failed: None,
            drawn: args.diagram.as_ref().map(|_| Run::default()),
        })
    }

    fn begins(&mut self, seed: u64, before: u64) {
        (self.seed, self.before) = (seed, before);
        if self.how != Shown::Not && before > 0 {
            self.tell(before);
        }
    }

    fn tell(&self, messages: u64) {
        let rate = messages_per_second(messages, self.begun.elapsed().as_secs_f64());
        let text = format!("seed {}: {messages} messages, {rate:.0} per second", self.seed);
        let _ = match self.how {
            Shown::Not => Ok(()),
            Shown::Overwritten => write!(io::stderr(), "\r\u{1b}[K{text}"),
            Shown::LineByLine => writeln!(io::stderr(), "{text}"),
        };
    }

    /// Writes a line of the trace.
    fn write(&mut self, line: &str) {
        if let Some((path, trace)) = &mut self.trace
            && self.failed.is_none()
            && let Err(source) = writeln!(trace, "{line}")
        {
            self.failed = Some(SimulateError::Trace { path: path.clone(), source });
        }
    }

    fn finish(&mut self) -> Result<(), SimulateError> {
        if self.how == Shown::Overwritten {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
        if let Some((path, trace)) = &mut self.trace
            && let Err(source) = trace.flush()
        {
            return Err(SimulateError::Trace { path: path.clone(), source });
        }
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Watch for Watcher {
    fn progress(&mut self, messages: u64) {
        self.tell(self.before + messages);
    }

    fn wants_trace(&self) -> bool {
        self.trace.is_some() || self.drawn.is_some()
    }

    fn happened(&mut self, event: &Event, came: &[Observed]) {
        if let Some(drawn) = &mut self.drawn {
            drawn.happened(event, came);
        }
        if self.trace.is_some() {
            self.write(&event.to_string());
            came.iter().filter_map(Observed::line).for_each(|line| self.write(&format!("  {line}")));
        }
    }
}
