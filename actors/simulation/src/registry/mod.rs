//! A plain model of the registry, and the laws that its machine is checked against.

mod board;
mod disk;
mod event;
mod laws;
mod model;
mod questions;
mod reading;
mod rebuilt;
mod sick;
mod world;

pub use disk::{RegistryDisk, Rows};
pub use event::{RegistryBounds, RegistryEvent};
pub use laws::RegistryLaws;
pub use questions::Question;
pub(super) use questions::may_wait;
pub use world::RegistryWorld;
