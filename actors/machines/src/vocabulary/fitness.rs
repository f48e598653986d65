//! Whether work may be routed to a registration.

use std::sync::Arc;

/// Whether work may be routed to a registration, as its instance found out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Fitness {
    /// It has not answered whole and validly yet (R1a).
    #[default]
    Unproven,
    /// It has, and has not failed for longer than is tolerated since.
    Fit,
    /// It has failed for longer than is tolerated (R1b).
    Unfit {
        /// The failed operation and its error.
        reason: Arc<str>,
    },
}
