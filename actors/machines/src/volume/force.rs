//! The messages by which an operator gives up what is not confirmed down.

use super::record::VolumeKey;
use crate::vocabulary::{AllocationId, Timestamp};

/// Gives up waiting for a confirmation, and forgets what may still be set up (V9). No call is cancelled and no directory removed; the
/// audit says what may be left. Only what is released can be forced, and orders that are not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForceRelease {
    /// The claim to forget; `None` for all of them, the staging, the attachment, a deletion and the orders.
    pub allocation: Option<AllocationId>,
    /// Who wants it and why, for the audit.
    pub reason: String,
}

impl ForceRelease {
    /// Whether the claim of this allocation is to be forgotten.
    pub(super) fn is_for(&self, allocation: &AllocationId) -> bool {
        self.allocation.as_ref().is_none_or(|meant| meant == allocation)
    }
}

/// Has the ledger take a write before something is forced, which changes nothing. Answered when it is on disk: only then is the release
/// forced, so that one that was refused is never forced later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PrepareForce {
    /// What is to be forced then.
    pub force: ForceRelease,
}

/// What a forced release may have left behind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Forced {
    /// The volume.
    pub volume: VolumeKey,
    /// Who wanted it and why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
    /// Each step that was not confirmed down: the step, its state and its path. Each order that was not done, and its state.
    pub left: Vec<String>,
}

/// Why nothing is forced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForceError {
    /// An allocation holds the volume. Force does not replace the end of its processes (V8).
    #[error("allocation {holder} holds volume {volume}; release that claim first, then force what remains")]
    Held {
        /// The volume.
        volume: VolumeKey,
        /// The holder.
        holder: AllocationId,
    },
    /// Nothing waits to be undone.
    #[error("nothing of volume {volume} waits to be undone; there is nothing to force")]
    Nothing {
        /// The volume.
        volume: VolumeKey,
    },
}
