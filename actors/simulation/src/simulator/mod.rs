//! Simulates many allocations, interleaved at random, in virtual time, with all kinds of faults.
//!
//! ```text
//!   seed ─► plan ── event ──►  model  ── every step ──► laws
//!            ▲                   │
//!            └──── what is ready, called, due ◄──┘
//! ```
//!
//! The plan uses random numbers and no machine; the model of the host uses the machines and no random numbers. So a run is a list of
//! events, which can be replayed, shortened and read.

mod database;
mod disk;
mod dispatching;
mod drivers;
mod event;
mod faults;
mod history_script;
mod host_model;
mod inventory;
mod names;
mod plan;
mod playing;
mod processes;
mod supervision;
mod tampers;
mod volumes;
mod workloads;

pub use database::DatabaseDoing;
pub use disk::DiskTrouble;
pub(super) use event::plugin_text;
pub use event::{DriverDoing, Event, EventKind};
pub use faults::{Fault, Faults, UnknownFault};
pub use history_script::{HistoryScript, ScriptText};
pub(super) use names::Names;
pub use processes::{ProcessDoing, ProcessesDoing};
pub use supervision::FamilyDoing;
pub use tampers::Tampers;
pub use volumes::VolumeDoing;
pub use workloads::{WorkloadDoing, WorkloadOrder, WorkloadsDoing};

use std::time::Duration;

use self::host_model::HostModel;
use self::plan::Plan;
use super::law_checker::Violation;
use super::observed::Observed;
use super::search::{Counterexample, Play, play, shorten};

/// The parameters of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulation {
    /// Seed of the random numbers; the same seed gives the same run.
    pub seed: u64,
    /// How many plugins there are; at least one. Each has a controller and a node half.
    pub plugins: u32,
    /// How many allocations serve them; at least one.
    pub allocations: u32,
    /// How many drivers there are, each with three tasks.
    pub drivers: u32,
    /// Under how many names other processes are launched.
    pub processes: u32,
    /// How many volumes, each with a plugin and three allocations of its own.
    pub volumes: u32,
    /// Whether the registrations are in a real database, on a disk in memory, and not only in rows.
    pub has_database: bool,
    /// How many messages the machines take before it ends.
    pub messages: u64,
    /// The faults that may happen.
    pub faults: Faults,
}

impl Simulation {
    /// A few of everything, with every fault: large enough for all events to occur, and small enough for a test.
    pub const SMALL: Self = Self {
        seed: 1,
        plugins: 4,
        allocations: 24,
        drivers: 3,
        processes: 3,
        volumes: 4,
        has_database: false,
        messages: 6_000,
        faults: Faults::ALL,
    };
}

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// How many messages the machines took.
    pub messages: u64,
    /// How many events there were.
    pub events: u64,
    /// How often an event overtook an event with an earlier start.
    pub overtaken: u64,
    /// How often each fault happened, in the order of [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
    /// How much time passed in the host.
    pub simulated: Duration,
}

/// How often the registry as a whole is compared with the plain list, in events.
const COMPARED_EVERY: u64 = 16_384;
/// The longest time without a step of any actor, in a host that gets a message every few seconds.
const STANDSTILL_MAX: Duration = Duration::from_secs(3_600);

/// Observes a simulation.
pub trait Watch {
    /// This number of messages have been taken; called from time to time.
    fn progress(&mut self, messages: u64) {
        let _ = messages;
    }

    /// Whether [`happened`](Self::happened) is to be called, which takes time.
    fn wants_trace(&self) -> bool {
        false
    }

    /// An event has happened, with these effects.
    fn happened(&mut self, event: &Event, came: &[Observed]) {
        let _ = (event, came);
    }

    /// A replayed history has ended; these are the effects of the time without faults after it.
    fn calmed(&mut self, came: &[Observed]) {
        let _ = came;
    }
}

/// For a simulation without a watcher.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Runs a simulation to its end.
///
/// # Errors
/// A shortened history that breaks a law.
pub fn simulate(simulation: &Simulation, watch: &mut impl Watch) -> Result<Summary, Counterexample<Event>> {
    simulate_tampered(simulation, Tampers::default(), watch)
}

/// Runs a simulation with deliberate faults in its machines.
///
/// # Errors
/// A shortened history that breaks a law.
pub fn simulate_tampered(
    simulation: &Simulation,
    tampers: Tampers,
    watch: &mut impl Watch,
) -> Result<Summary, Counterexample<Event>> {
    let start = HostModel::new(simulation, tampers);
    let (summary, violation) = run(simulation, &start, watch, &mut |_| {});
    let Some(violation) = violation else { return Ok(summary) };
    // It runs again to the same end, and its events are recorded.
    let mut history = Vec::new();
    run(simulation, &start, &mut Unwatched, &mut |event| history.push(event));
    let found = Counterexample { history, violation };
    Err(if play(&start, &found.history).is_some() { shorten(&start, found) } else { found })
}

/// Plays a history from the beginning. Returns the law that it breaks, if any.
#[must_use]
pub fn replay(simulation: &Simulation, tampers: Tampers, history: &[Event]) -> Option<Violation> {
    let start = HostModel::new(simulation, tampers);
    play(&start, history).map(|(_, violation)| violation)
}

/// Plays a history from the beginning while it is watched, up to where it breaks a law if it does.
pub fn replay_watched(simulation: &Simulation, tampers: Tampers, history: &[Event], watch: &mut impl Watch) {
    let mut host_model = HostModel::new(simulation, tampers);
    host_model.begin_trace();
    for event in history {
        let is_broken = host_model.take(event).is_err();
        tell(&mut host_model, event, watch);
        if is_broken {
            return;
        }
    }
    // The law that it breaks is known already.
    let _ = host_model.settle();
    watch.calmed(&host_model.trace.unwrap_or_default());
}

fn run(
    simulation: &Simulation,
    start: &HostModel,
    watch: &mut impl Watch,
    note: &mut dyn FnMut(Event),
) -> (Summary, Option<Violation>) {
    let mut host_model = start.clone();
    if watch.wants_trace() {
        host_model.begin_trace();
    }
    let mut plan = Plan::new(simulation.seed, simulation.faults, &host_model);
    plan.heed(&mut host_model);
    let begun = host_model.now;
    let (mut events, mut last_step) = (0, (0, begun));
    while host_model.steps() < simulation.messages && host_model.verdict.broken().is_none() {
        let Some(event) = plan.next(&host_model) else { break };
        note(event);
        host_model.apply(&event);
        tell(&mut host_model, &event, watch);
        if host_model.is_down() {
            plan.forget_the_host();
        }
        plan.heed(&mut host_model);
        events += 1;
        if events % COMPARED_EVERY == 0 {
            host_model.compare();
            watch.progress(host_model.steps());
            if host_model.steps() != last_step.0 {
                last_step = (host_model.steps(), host_model.now);
            } else if host_model.now.since(last_step.1) > STANDSTILL_MAX {
                host_model.stands_still();
            }
        }
    }
    let (messages, simulated) = (host_model.steps(), host_model.now.since(begun));
    let violation = host_model.verdict.broken().cloned().or_else(|| host_model.settle().err());
    let summary = Summary { messages, events, overtaken: plan.overtaken, faults: plan.done, simulated };
    (summary, violation)
}

fn tell(host_model: &mut HostModel, event: &Event, watch: &mut impl Watch) {
    if let Some(trace) = &mut host_model.trace {
        watch.happened(event, trace);
        trace.clear();
    }
}
