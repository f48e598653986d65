//! The inventory in the simulation: its laws, and a world so small that every order is tried.

mod laws;

mod event;
mod world;

pub use event::{InventoryBounds, InventoryEvent, Word};
pub use laws::InventoryLaws;
pub use world::InventoryWorld;
