//! The supervisor in the simulation: its laws, and a world so small that every order is tried.

mod groups;
mod known;
mod laws;
mod orders;
mod report;

mod ground;
mod model;

mod family;

mod event;
mod world;

pub use event::{SupervisionBounds, SupervisionEvent, TaskEnd};
pub(super) use family::{Branch, Family, Stir};
pub use ground::Task;
pub use laws::SupervisionLaws;
pub use world::SupervisionWorld;
