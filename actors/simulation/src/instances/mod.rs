//! The instances and their supervisor: their laws, and a model in which they live.

mod child;
mod model;
mod parent;
mod plugins;
mod world;

pub use child::InstanceLaws;
pub(super) use model::SetOut;
pub use model::{InFlight, InstancesModel, NoDisk};
pub use parent::InstancesLaws;
pub use plugins::Behaviour;
pub use world::{InstancesBounds, InstancesEvent, InstancesWorld};
