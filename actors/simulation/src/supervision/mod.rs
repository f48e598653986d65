//! The supervisor in the simulation: its laws, and a world so small that every order is tried.

mod groups;
mod known;
mod laws;
mod orders;
mod report;

mod environment;
mod model;

mod family;

mod event;
mod world;

pub use environment::Task;
pub use event::{SupervisionBounds, SupervisionEvent, TaskEnd};
pub(super) use family::{Branch, Family, FamilyChange};
pub use laws::SupervisionLaws;
pub use world::SupervisionWorld;
