//! A random walk through a world with too many possible events for an exhaustive search.

use super::{Counterexample, World, shorten};
use crate::random::Random;

/// The number of steps between checks that everything comes to rest.
const REST_EVERY: u64 = 40;
/// A rare event happens once in this many steps.
const RARE: u64 = 10;

/// Takes this number of steps, each with a random possible event, or fewer if no event is possible: the world comes to rest then too.
/// `is_rare`: a fault or a request, which would otherwise outnumber ordinary progress. `told` is called before each event.
///
/// # Errors
/// The first history that breaks a law, shortened.
pub fn wander<W: World>(
    start: &W,
    steps: u64,
    random: &mut Random,
    is_rare: impl Fn(&W::Event) -> bool,
    told: &mut dyn FnMut(&W::Event),
) -> Result<(), Counterexample<W::Event>> {
    let (mut world, mut history) = (start.clone(), Vec::new());
    for step in 1..=steps {
        let Some(event) = next(&world, random, &is_rare) else {
            let rested = world.settle();
            return rested.map_err(|violation| shorten(start, Counterexample { history, violation }));
        };
        told(&event);
        let taken = world.take(&event);
        history.push(event);
        let taken = match taken {
            Ok(()) if step % REST_EVERY == 0 || step == steps => world.clone().settle(),
            taken => taken,
        };
        taken.map_err(|violation| shorten(start, Counterexample { history: history.clone(), violation }))?;
    }
    Ok(())
}

fn next<W: World>(world: &W, random: &mut Random, is_rare: &impl Fn(&W::Event) -> bool) -> Option<W::Event> {
    let (mut rare, mut usual): (Vec<_>, Vec<_>) = world.events().into_iter().partition(is_rare);
    let from = match (rare.is_empty(), usual.is_empty()) {
        (true, true) => return None,
        (true, false) => &mut usual,
        (false, true) => &mut rare,
        (false, false) if random.once_in(RARE) => &mut rare,
        (false, false) => &mut usual,
    };
    let place = random.below(from.len() as u64);
    Some(from.swap_remove(usize::try_from(place).unwrap_or(0)))
}
