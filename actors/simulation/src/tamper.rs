//! Injects deliberate faults between a machine and its world, to show which law detects them.

use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};

use callboard_actors::kernel::{Effect, Input, Machine};

use super::stand_in::Left;

/// Adds a fault to a machine. Each method passes its value on unchanged unless it is overridden.
pub trait Tamper<M: Machine>: Debug {
    /// The input that the machine receives; `None` drops it.
    fn input(&self, input: Input<M>) -> Option<Input<M>> {
        Some(input)
    }

    /// The effects that a step has instead.
    fn effects(&self, machine: &M, input: &Input<M>, effects: Vec<Effect<M>>) -> Vec<Effect<M>> {
        let _ = (machine, input);
        effects
    }

    /// The image from which the machine is rebuilt.
    fn image(&self, image: M::Image) -> M::Image {
        image
    }

    /// Whether this leaves only when all earlier writes are on disk, as if it were a promise.
    fn waits_for_disk(&self, left: &Left<M>) -> bool {
        let _ = left;
        false
    }
}

/// A fault never changes, and so is not part of the state.
impl<M: Machine> Hash for dyn Tamper<M> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// Replaces the effects of a step.
pub type AlterEffects<M> = fn(&Input<M>, Vec<Effect<M>>) -> Vec<Effect<M>>;

/// A fault in the effects of a machine.
pub struct TamperEffects<M: Machine>(pub AlterEffects<M>);

/// A fault in the inputs of a machine; `None` drops the input.
pub struct TamperInput<M: Machine>(pub fn(Input<M>) -> Option<Input<M>>);

/// A fault in the image from which a machine is rebuilt.
pub struct TamperImage<M: Machine>(pub fn(M::Image) -> M::Image);

/// A fault in the choice of effects that wait for the disk.
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
