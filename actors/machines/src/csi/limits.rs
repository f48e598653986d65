//! The limits of a connection to a CSI plugin.

use std::time::Duration;

/// The limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The connect timeout.
    pub dial_deadline: Duration,
    /// The size limit of an answer, in bytes. A larger one is a fault of the plugin (C011).
    pub answer_bytes_max: usize,
    /// Whether an answer with a harmless deviation from the specification is refused: a name with an underscore (C030), a negative limit
    /// of volumes (C147). False by default: it is accepted with a remark.
    pub strict: bool,
}

impl Default for Limits {
    /// Five seconds, 4 MiB, and not strict.
    fn default() -> Self {
        Self { dial_deadline: Duration::from_secs(5), answer_bytes_max: 4 * 1024 * 1024, strict: false }
    }
}
