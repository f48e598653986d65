//! Tries all possible events of a small world, and detects broken machines.

use std::rc::Rc;
use std::time::Instant;

use callboard_actors::shell::Machine;
use callboard_simulation::{Law, Tamper, World, play, search};

/// The number of states at which a search that has become too large is aborted.
const STATES_MAX: u64 = 20_000_000;

/// Whether the larger bounds are to be tried.
pub(crate) fn is_full() -> bool {
    std::env::var("CALLBOARD_INTERLEAVINGS").is_ok_and(|which| which == "all")
}

/// Tries everything, and prints the number of states and steps.
pub(crate) fn try_all(what: &str, world: &impl World) {
    let begun = Instant::now();
    match search(world, STATES_MAX) {
        Ok(searched) => {
            println!(
                "{what}: {} states, {} steps, histories of up to {} events, {:.1?}",
                searched.states,
                searched.steps,
                searched.longest,
                begun.elapsed()
            );
            assert!(!searched.is_cut_short, "{what}: too much to try");
        }
        Err(found) => panic!("{what}: {found}"),
    }
}

pub(crate) fn without<E>(effects: Vec<E>, is_lost: impl Fn(&E) -> bool) -> Vec<E> {
    effects.into_iter().filter(|effect| !is_lost(effect)).collect()
}

/// The effects, each changed in this way.
pub(crate) fn changed<E>(mut effects: Vec<E>, change: impl FnMut(&mut E)) -> Vec<E> {
    effects.iter_mut().for_each(change);
    effects
}

/// The search finds the fault under this law, and its history reproduces the fault in the broken machine only.
pub(crate) fn is_found_out<W: World>(law: Law, broken: &W, sound: &W) {
    let found = search(broken, 100_000).expect_err("a broken machine was not found out");
    println!("{found}");
    assert_eq!(found.violation.law, law, "{found}");
    assert_eq!(play(broken, &found.history).expect("it shows again").1.law, law);
    assert!(play(sound, &found.history).is_none(), "the sound machines break it too");
}

/// An optional fault between a machine and its world.
type Fault<M> = Option<Rc<dyn Tamper<M>>>;

/// The search finds the fault in a machine of this world.
pub(crate) fn tampered_is_found_out<M: Machine, B: Copy, W: World>(
    law: Law,
    bounds: B,
    world: fn(B, Fault<M>) -> W,
    tamper: impl Tamper<M> + 'static,
) {
    is_found_out(law, &world(bounds, Some(Rc::new(tamper))), &world(bounds, None));
}
