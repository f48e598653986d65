//! A volume in the simulation: its laws, its ledger, a plugin and a kernel, and a world small enough to try every order of events.

mod disk;
mod groups;
mod node;
mod storage;

mod laws;

mod model;

mod event;
mod world;

pub use event::{Answered, VolumeBounds, VolumeEvent};
pub use laws::VolumeLaws;
pub(crate) use model::VolumeModel;
pub use world::VolumeWorld;
