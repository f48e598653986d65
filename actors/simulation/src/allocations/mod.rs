//! The owner of the supervisors of allocations in the simulation: its laws, and a world small enough to try every order of events.

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

/// The relevant surroundings of the owner of the allocations.
pub type AllocationsWorld = super::search::SceneWorld<scene::AllocationsScene>;
