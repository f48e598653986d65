//! Faults that are put between a machine and its world on purpose, so that one can see which law reports it.

use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};

use callboard_actors::kernel::{Effect, Input, Machine};

use super::stand_in::Left;

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

    /// Whether this leaves only when everything that was written before is on disk, as if it were a promise.
    fn waits_for_disk(&self, left: &Left<M>) -> bool {
        let _ = left;
        false
    }
}

/// A fault never changes, and so is no part of the state of things.
impl<M: Machine> Hash for dyn Tamper<M> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// What becomes of the effects of a step.
pub type AlterEffects<M> = fn(&Input<M>, Vec<Effect<M>>) -> Vec<Effect<M>>;

/// A fault in what a machine does.
pub struct TamperEffects<M: Machine>(pub AlterEffects<M>);

/// A fault in what a machine hears; `None` keeps it from hearing this at all.
pub struct TamperInput<M: Machine>(pub fn(Input<M>) -> Option<Input<M>>);

/// A fault in what a machine is rebuilt from.
pub struct TamperImage<M: Machine>(pub fn(M::Image) -> M::Image);

/// A fault in what waits for the disk.
pub struct TamperGates<M: Machine>(pub fn(&Left<M>) -> bool);

impl<M: Machine> Tamper<M> for TamperEffects<M> {
    fn effects(&self, _: &M, input: &Input<M>, effects: Vec<Effect<M>>) -> Vec<Effect<M>> {
        self.0(input, effects)
    }
}

impl<M: Machine> Tamper<M> for TamperInput<M> {
    fn input(&self, input: Input<M>) -> Option<Input<M>> {
        self.0(input)
    }
}

impl<M: Machine> Tamper<M> for TamperImage<M> {
    fn image(&self, image: M::Image) -> M::Image {
        self.0(image)
    }
}

impl<M: Machine> Tamper<M> for TamperGates<M> {
    fn waits_for_disk(&self, left: &Left<M>) -> bool {
        self.0(left)
    }
}

impl<M: Machine> Debug for TamperEffects<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TamperEffects")
    }
}

impl<M: Machine> Debug for TamperInput<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TamperInput")
    }
}

impl<M: Machine> Debug for TamperImage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TamperImage")
    }
}

impl<M: Machine> Debug for TamperGates<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TamperGates")
    }
}
