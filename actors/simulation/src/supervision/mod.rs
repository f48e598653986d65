//! The supervisor in the simulation: its laws, and a world small enough to try every order of events.

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
