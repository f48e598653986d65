//! The owner of the volumes in the simulation: its laws, and a world so small that every order is tried.
//!
//! Each volume is a plain model of what its actor promises: a ledger that outlives the actor, answers and news that arrive later. What
//! the production machine of a volume does with its plugin is searched in the world of one volume.

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
