//! The instances and their supervisor: their laws, and a model that contains them.

mod calls;
mod child;
mod event;
mod gates;
mod looks;
mod model;
mod parent;
mod places;
mod plugins;
mod registry;
mod retiring;
mod touched;
mod warm;
mod world;

pub use child::InstanceLaws;
pub use event::{InstancesBounds, InstancesEvent};
pub(super) use model::SetOut;
pub use model::{InFlight, InstancesModel, NoDisk};
pub use parent::InstancesLaws;
pub use plugins::Behaviour;
pub use world::InstancesWorld;
