//! The owner of the supervisors of allocations in the simulation: its laws, and a world so small that every order is tried.

mod known;
mod laws;
mod needed;

mod event;

mod ending;
mod handler;
mod host;
mod memory;
mod supervisor;
mod volumes;
mod world;

pub(super) use known::Known;

pub use event::{AllocationsBounds, AllocationsEvent, HostOrder, SupervisorAct, VolumesWord};
pub use laws::AllocationsLaws;
pub use memory::Memory;
pub use world::AllocationsWorld;
