//! The inventory in the simulation: its laws, and a world small enough to try every order of events.

mod laws;

mod awaited;
mod drivers;
mod event;
mod reports;
mod scene;

pub use event::{InventoryBounds, InventoryEvent, Word};
pub use laws::InventoryLaws;
pub use scene::InventoryScene;

/// The world of the inventory.
pub type InventoryWorld = super::search::SceneWorld<InventoryScene>;
