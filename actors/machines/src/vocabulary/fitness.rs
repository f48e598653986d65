//! Whether work may be routed to a registration.

use std::sync::Arc;

/// Whether work may be routed to a registration, as determined by its instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Fitness {
    /// It has not given a complete and valid answer yet (R1a).
    #[default]
    Unproven,
    /// It has given one, and has not failed for longer than is tolerated since.
    Fit,
    /// It has failed for longer than is tolerated (R1b).
    Unfit {
        /// The failed operation and its error.
        reason: Arc<str>,
    },
}
