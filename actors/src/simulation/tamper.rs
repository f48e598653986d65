//! Faults that are put between a machine and its world on purpose, so that one can see which law cries.

use std::fmt::Debug;

use crate::shell::{Effect, Input, Machine};

/// Makes a machine wrong. Each method passes on what it gets unless it is overridden.
pub trait Tamper<M: Machine>: Debug {
    /// What the machine hears; `None` keeps it from hearing this at all.
    fn input(&self, input: Input<M>) -> Option<Input<M>> {
        Some(input)
    }

    /// What becomes of the effects of a step.
    fn effects(&self, machine: &M, input: &Input<M>, effects: Vec<Effect<M>>) -> Vec<Effect<M>> {
        let _ = (machine, input);
        effects
    }

    /// What a machine is rebuilt from.
    fn image(&self, image: M::Image) -> M::Image {
        image
    }
}
