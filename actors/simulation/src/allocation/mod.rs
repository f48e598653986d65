//! The supervisor of an allocation in the simulation: its laws, and a world small enough to try every order of events.

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

/// The relevant surroundings of the supervisor of one allocation.
pub type AllocationWorld = super::search::SceneWorld<scene::AllocationScene>;
