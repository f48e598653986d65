//! The instances and their supervisor: their laws, and a house in which they live.

mod child;
mod company;
mod house;
mod parent;
mod world;

pub use child::InstanceLaws;
pub use company::Behaviour;
pub use house::{Errand, House};
pub(super) use house::{NoBooks, SetOut};
pub use parent::InstancesLaws;
pub use world::{InstancesBounds, InstancesEvent, InstancesWorld};
