//! The owner of the volumes in the simulation: its laws, and a world small enough to try every order of events.
//!
//! Each volume is a plain model of its actor's contract: a ledger that outlives the actor, answers and notifications that arrive later.
//! The calls of the production machine of a volume to its plugin are searched in the world of one volume.

mod event;

mod child;
mod doing;
mod status;
mod volume;

mod disk;
mod plugin;

mod laws;
mod untold;
mod wants;

mod callers;
mod ending;
mod listing;
mod scene;

pub use event::{PluginWord, VolumeAct, VolumesBounds, VolumesEvent, VolumesRequest};
pub use laws::VolumesLaws;
pub use scene::VolumesScene;

/// The world of the owner of the volumes.
pub type VolumesWorld = super::search::SceneWorld<VolumesScene>;
