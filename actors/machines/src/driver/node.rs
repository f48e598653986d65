//! The facts about the node that drivers receive.

use std::sync::Arc;

use crate::topology::Topology;

/// The lowest port that drivers may use if the host sets none (T005).
pub const MIN_PORT: u32 = 14_000;
/// The highest port that drivers may use if the host sets none (T005).
pub const MAX_PORT: u32 = 14_512;

/// The facts about its node that a driver receives (TH010). By default the ports of [`MIN_PORT`] to [`MAX_PORT`], and the
/// topology of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeFacts {
    /// The lowest port that it may use; 0 leaves the choice to the driver.
    pub min_port: u32,
    /// The highest port that it may use; 0 leaves the choice to the driver.
    pub max_port: u32,
    /// The processors of the node; `None` for the processors of this machine.
    pub topology: Option<Arc<Topology>>,
}

impl Default for NodeFacts {
    fn default() -> Self {
        Self { min_port: MIN_PORT, max_port: MAX_PORT, topology: None }
    }
}
