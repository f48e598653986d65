//! The supervisor of an allocation in the simulation: its laws, and a world so small that every order is tried.

mod laws;
mod saying;

mod event;

mod ending;
mod neighbours;
mod owner;
mod scene;
mod surroundings;

pub use event::{AllocationBounds, AllocationEvent, Receipt, Reply};
pub use laws::AllocationLaws;
pub(super) use surroundings::Surroundings;

/// Everything around the supervisor of one allocation that matters to it.
pub type AllocationWorld = super::search::SceneWorld<scene::AllocationScene>;
