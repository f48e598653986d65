//! Who sees everything that happens to one machine, and holds it against the laws.

use std::fmt;

use super::law::Law;
use super::stand_in::Left;
use crate::shell::{Effect, Input, Machine};
use crate::vocabulary::Moment;

/// Sees every step of one machine and everything that leaves its actor.
pub trait Witness<M: Machine> {
    /// The machine was built from its store. [`Input::Resumed`] follows.
    fn rebuilt(&mut self, moment: Moment, machine: &M);

    /// It took a step, and these are its effects.
    fn stepped(&mut self, moment: Moment, input: &Input<M>, effects: &[Effect<M>], machine: &M);

    /// A step was made to crash: it has no effect.
    fn crashed(&mut self, input: &Input<M>);

    /// A step crashed of itself.
    fn panicked(&mut self, input: &Input<M>);

    /// Something left. It `is_durable` if every write that was handed over before it is on disk.
    fn left(&mut self, left: &Left<M>, is_durable: bool);
}

/// A law was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub law: Law,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is broken: {}\n  {}: {}", self.law.id(), self.what, self.law.id(), self.law.sentence())
    }
}
