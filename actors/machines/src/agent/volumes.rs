//! What is decided about the volumes of a task: claimed before each start of its process, released when its last process has ended.

/// Why the volumes of an allocation are not claimed. Some of them may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{reason}")]
pub struct ClaimTrouble {
    /// The volume that was refused, and why.
    pub reason: String,
    /// Whether the same claim may succeed later.
    pub is_transient: bool,
}
