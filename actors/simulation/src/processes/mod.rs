//! The owner of the processes in the simulation: its laws, its surroundings, and a world small enough to try every order of events.

mod disk;
mod environment;

mod laws;

mod model;

mod ending;

mod event;
mod world;

pub use event::{ProcessesBounds, ProcessesEvent};
pub use laws::ProcessesLaws;
pub(super) use model::ProcessesModel;
pub use world::ProcessesWorld;
