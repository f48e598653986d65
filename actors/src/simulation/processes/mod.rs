//! The owner of the processes in the simulation: its laws, what it stands on, and a world so small that every order is tried.

mod disk;
mod ground;

mod laws;

mod estate;

mod ending;

mod event;
mod world;

pub(super) use estate::Estate;
pub use event::{ProcessesBounds, ProcessesEvent};
pub use laws::ProcessesLaws;
pub use world::ProcessesWorld;
