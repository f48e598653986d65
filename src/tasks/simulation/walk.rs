//! The same world by chance, with faults of all kinds for as long as one likes.

use callboard_actors::shell::StopMode;
use callboard_actors::simulation::{Chance, Counterexample, Fault, Faults, Play, World, shorten};

use super::event::{Manner, TasksBounds, TasksEvent};
use super::world::TasksWorld;

/// How many steps are taken in one world before another one begins.
const STEPS_OF_A_WORLD: u64 = 400;
/// How often it is looked whether everything comes to rest.
const REST_EVERY: u64 = 40;
/// Something that nobody wants happens once in so many steps.
const RARE: u64 = 10;

/// A walk by chance.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// Seed of the random numbers; the same seed gives the same walk.
    pub seed: u64,
    /// How many steps it takes.
    pub steps: u64,
    /// What may go wrong.
    pub faults: Faults,
}

/// How far a walk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walked {
    /// How many steps were taken.
    pub steps: u64,
    /// In how many worlds.
    pub worlds: u64,
    /// How many steps were faults, ends of tasks, and wishes of people.
    pub faults: u64,
}

/// What there is and may happen in one of its worlds.
fn bounds(chance: &mut Chance, faults: Faults) -> TasksBounds {
    let often = |fault| if faults.has(fault) { u32::MAX } else { 0 };
    let manner =
        Manner { recovers: chance.once_in(2), survives: chance.once_in(2), carries: chance.once_in(4) };
    let ends = match (faults.has(Fault::Shutdown), chance.below(4)) {
        (true, 0) => [StopMode::Stop].as_slice(),
        (true, 1) => [StopMode::Detach].as_slice(),
        (true | false, _) => &[],
    };
    TasksBounds {
        tasks: 1 + u8::try_from(chance.below(3)).unwrap_or(0),
        manner,
        starts: u32::MAX,
        stops: u32::MAX,
        exits: often(Fault::Exit),
        deaths: often(Fault::Die),
        cuts: often(Fault::Slow),
        faults: often(Fault::Fail),
        failures: often(Fault::Disk),
        crashes: often(Fault::Crash),
        kills: often(Fault::KillHost),
        pauses: u32::MAX,
        ends,
    }
}

/// Takes a walk; `told` is told of each event.
///
/// # Errors
/// The first history that breaks a law, shortened, with the world in which it happened.
pub fn walk(walk: &Walk, told: &mut dyn FnMut(&str)) -> Result<Walked, Counterexample<TasksEvent>> {
    let mut chance = Chance::from_seed(walk.seed);
    let mut walked = Walked::default();
    while walked.steps < walk.steps {
        let bounds = bounds(&mut chance, walk.faults);
        told(&format!("tasks: another world, {} tasks, {:?}", bounds.tasks, bounds.manner));
        let steps = STEPS_OF_A_WORLD.min(walk.steps - walked.steps);
        walked.worlds += 1;
        live(&TasksWorld::new(bounds, None), steps, &mut chance, &mut walked, told)?;
    }
    Ok(walked)
}

/// Takes so many steps in one world, or fewer if its host ends.
fn live(
    start: &TasksWorld,
    steps: u64,
    chance: &mut Chance,
    walked: &mut Walked,
    told: &mut dyn FnMut(&str),
) -> Result<(), Counterexample<TasksEvent>> {
    let (mut world, mut history) = (start.clone(), Vec::new());
    for step in 1..=steps {
        walked.steps += 1;
        let Some(event) = next(&world, chance) else { break };
        told(&format!("tasks: {event}"));
        walked.faults += u64::from(event.is_rare());
        history.push(event);
        let taken = match world.take(&event) {
            Ok(()) if step % REST_EVERY == 0 || step == steps => world.clone().settle(),
            taken => taken,
        };
        taken.map_err(|violation| shorten(start, Counterexample { history: history.clone(), violation }))?;
    }
    Ok(())
}

fn next(world: &TasksWorld, chance: &mut Chance) -> Option<TasksEvent> {
    let (rare, usual): (Vec<_>, Vec<_>) = world.events().into_iter().partition(|event| event.is_rare());
    let from = match (rare.is_empty(), usual.is_empty()) {
        (true, true) => return None,
        (true, false) => usual,
        (false, true) => rare,
        (false, false) if chance.once_in(RARE) => rare,
        (false, false) => usual,
    };
    Some(chance.one_of(&from))
}
