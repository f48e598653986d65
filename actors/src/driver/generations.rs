//! The source of the generations of drivers.

use std::cell::Cell;
use std::rc::Rc;

use crate::vocabulary::{Generation, RunNumber};

/// The number of generations reserved for each run of the host: more connections than can be made in one. So the digits before
/// the last nine show in which run a connection was made.
const PER_RUN: u64 = 1_000_000_000;

/// A counter that all drivers of a host share and that outlives their actors. Each run of the host has numbers of its own, since
/// the number of the run is on disk before anything starts: no generation is ever reused, and a later one is always greater.
#[derive(Debug, Clone, Default)]
pub struct Generations(Rc<Cell<Generation>>);

impl Generations {
    /// The generations of this run of the host.
    #[must_use]
    pub fn of_run(run: RunNumber) -> Self {
        let before = run.get().saturating_sub(1).saturating_mul(PER_RUN);
        Self(Rc::new(Cell::new(Generation::new(before))))
    }

    pub(super) fn next(&self) -> Generation {
        let next = self.0.get().next();
        self.0.set(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_has_greater_generations_than_every_earlier_one() {
        let (first, second) =
            (Generations::of_run(RunNumber::new(1)), Generations::of_run(RunNumber::new(2)));
        assert_eq!([first.next(), first.next()], [Generation::new(1), Generation::new(2)]);
        assert_eq!(second.next(), Generation::new(1_000_000_001));
    }
}
