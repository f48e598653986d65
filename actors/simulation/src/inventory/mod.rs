//! The inventory in the simulation: its laws, and a world so small that every order is tried.

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
