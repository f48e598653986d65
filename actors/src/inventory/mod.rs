//! What this node offers: folds the reports of instances, and publishes changes once.

mod messages;

pub use messages::*;
