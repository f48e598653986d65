//! The owner of the processes in the simulation: its laws, what it stands on, and a world so small that every order is tried.

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
