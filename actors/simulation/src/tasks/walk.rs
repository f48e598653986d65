//! A random walk through the same world, with faults of all kinds, of any length.

use callboard_actors::shell::StopMode;

use super::event::{Manner, TasksBounds, TasksEvent};
use super::world::TasksWorld;
use crate::{Counterexample, Fault, Faults, Random, wander};

/// The number of steps in one world.
const STEPS_OF_A_WORLD: u64 = 400;

/// A random walk.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// The seed of the random numbers; the same seed gives the same walk.
    pub seed: u64,
    /// The number of steps.
    pub steps: u64,
    /// The faults that may happen.
    pub faults: Faults,
}

/// The progress of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walked {
    /// The number of steps taken.
    pub steps: u64,
    /// The number of worlds.
    pub worlds: u64,
    /// The number of steps that were faults, ends of tasks, or requests of operators.
    pub faults: u64,
}

fn bounds(random: &mut Random, faults: Faults) -> TasksBounds {
    let often = |fault| if faults.has(fault) { u32::MAX } else { 0 };
    let manner =
        Manner { recovers: random.once_in(2), survives: random.once_in(2), carries: random.once_in(4) };
    let ends = match (faults.has(Fault::Shutdown), random.below(5)) {
        (true, 0) => [StopMode::Stop].as_slice(),
        (true, 1) => [StopMode::Detach].as_slice(),
        (true, 2) => [StopMode::Stop, StopMode::Detach].as_slice(),
        (true | false, _) => &[],
    };
    TasksBounds {
        tasks: 1 + u8::try_from(random.below(3)).unwrap_or(0),
        manner,
        starts: u32::MAX,
        stops: u32::MAX,
        exits: often(Fault::Exit),
        deaths: often(Fault::Die),
        refusals: often(Fault::Die),
        cuts: often(Fault::Slow),
        faults: often(Fault::Fail),
        failures: often(Fault::Disk),
        sicknesses: often(Fault::Disk),
        crashes: often(Fault::Crash),
        kills: often(Fault::KillHost),
        pauses: u32::MAX,
        ends,
    }
}

/// Walks; `told` receives each event.
///
/// # Errors
/// The first history that breaks a law, shortened, with the world in which it happened.
pub fn walk(walk: &Walk, told: &mut dyn FnMut(&str)) -> Result<Walked, Counterexample<TasksEvent>> {
    let mut random = Random::from_seed(walk.seed);
    let mut walked = Walked::default();
    while walked.steps < walk.steps {
        let bounds = bounds(&mut random, walk.faults);
        told(&format!("tasks: another world, {} tasks, {:?}", bounds.tasks, bounds.manner));
        let steps = STEPS_OF_A_WORLD.min(walk.steps - walked.steps);
        walked.worlds += 1;
        let mut taken = |event: &TasksEvent| {
            told(&format!("tasks: {event}"));
            walked.steps += 1;
            walked.faults += u64::from(event.is_rare());
        };
        wander(&TasksWorld::new(bounds, None), steps, &mut random, |event| event.is_rare(), &mut taken)?;
    }
    Ok(walked)
}
