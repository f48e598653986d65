//! Observes everything that happens to one machine, and checks it against the laws.

use std::fmt;

use callboard_actors::kernel::{Effect, Input, Machine};
use callboard_actors::vocabulary::Moment;

use super::law::Law;
use super::stand_in::Left;

/// Observes every step of one machine and every effect that leaves its actor.
pub trait LawChecker<M: Machine> {
    /// The machine was built from its store. [`Input::Resumed`] follows.
    fn rebuilt(&mut self, moment: Moment, machine: &M);

    /// It took a step, and these are its effects.
    fn stepped(&mut self, moment: Moment, input: &Input<M>, effects: &[Effect<M>], machine: &M);

    /// A step was made to crash: it has no effect.
    fn crashed(&mut self, input: &Input<M>) {
        let _ = input;
    }

    /// A step panicked by itself.
    fn panicked(&mut self, input: &Input<M>);

    /// An effect left. It `is_durable` if every write that was handed over before it is on disk.
    fn left(&mut self, left: &Left<M>, is_durable: bool) {
        let _ = (left, is_durable);
    }
}

/// A law was broken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// The description of the violation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is broken: {}\n  {}: {}", self.law.id(), self.what, self.law.id(), self.law.sentence())
    }
}

/// A law was broken; the present run ends.
pub(super) fn violation(law: Law, what: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { law, what: what.into() })
}

/// The description of an answer to a question that already has one.
pub(super) const NO_CALLER_WAITS: &str = "an answer is sent for a question that has no waiting caller";

/// Ends the present run if a law was broken.
pub(super) fn found(broken: Option<&Violation>) -> Result<(), Violation> {
    broken.cloned().map_or(Ok(()), Err)
}

/// Whether a law was broken. Later violations may only follow from the first one, and are dropped.
#[derive(Debug, Clone, Hash, Default)]
pub struct Verdict(Option<Violation>);

impl Verdict {
    /// No law was broken.
    pub const NONE: Self = Self(None);

    /// The first law that was broken, if any.
    #[must_use]
    pub const fn broken(&self) -> Option<&Violation> {
        self.0.as_ref()
    }

    /// A law was broken.
    pub fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        self.0.get_or_insert_with(|| Violation { law, what: what() });
    }

    /// A violation of another verdict that is merged into this one.
    pub fn heard_of(&mut self, violation: Option<&Violation>) {
        if self.0.is_none() {
            self.0 = violation.cloned();
        }
    }
}
