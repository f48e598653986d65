//! The owner of the supervisors of allocations in the simulation: its laws, and a world so small that every order is tried.

mod known;
mod laws;
mod needed;

mod event;

mod ending;
mod handler;
mod host;
mod memory;
mod scene;
mod supervisor;
mod volumes;

pub(super) use known::Known;

pub use event::{AllocationsBounds, AllocationsEvent, HostOrder, SupervisorAct, VolumesWord};
pub use laws::AllocationsLaws;
pub use memory::Memory;

/// Everything around the owner of the allocations that matters to it.
pub type AllocationsWorld = super::search::SceneWorld<scene::AllocationsScene>;
