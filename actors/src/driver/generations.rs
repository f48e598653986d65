//! Where the generations of drivers come from.

use std::cell::Cell;
use std::rc::Rc;

use crate::vocabulary::Generation;

/// A counter that all drivers of a host share and that outlives their actors: no generation comes twice while the host runs.
/// It does not survive the host; what does is the tag of a driver's process.
#[derive(Debug, Clone, Default)]
pub struct Generations(Rc<Cell<Generation>>);

impl Generations {
    pub(super) fn next(&self) -> Generation {
        let next = self.0.get().next();
        self.0.set(next);
        next
    }
}
