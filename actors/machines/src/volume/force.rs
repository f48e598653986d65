//! The messages by which an operator gives up what is not confirmed down.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::record::VolumeKey;
use crate::vocabulary::{AllocationId, Timestamp};

/// What a forced release forgets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForceScope {
    /// All of it: every claim, the staging, the attachment, a deletion and the orders.
    Everything,
    /// The claim of this allocation. What it shared with others stays, and is undone when nothing is mounted at its target any more (C131).
    Claim(AllocationId),
    /// What was ordered and is not done. The volume may be in use meanwhile.
    Orders,
}

/// Gives up waiting for a confirmation, and forgets what may still be set up (V9). No call is cancelled, and for what is forgotten as a whole
/// none is made and no directory removed; the audit says what may be left. The target of a claim that is forgotten alone is still undone.
/// Only what is released can be forced, and orders that are not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForceRelease {
    /// What is to be forgotten.
    pub scope: ForceScope,
    /// Who wants it and why, for the audit.
    pub reason: String,
}

impl ForceRelease {
    /// Whether the claim of this allocation is to be forgotten.
    pub(crate) fn is_for(&self, allocation: &AllocationId) -> bool {
        match &self.scope {
            ForceScope::Everything => true,
            ForceScope::Claim(meant) => meant == allocation,
            ForceScope::Orders => false,
        }
    }

    /// Whether the orders that are not done are to be forgotten.
    pub(super) const fn is_for_orders(&self) -> bool {
        matches!(self.scope, ForceScope::Everything | ForceScope::Orders)
    }

    /// Whether what the claims share is to be forgotten, and a deletion.
    pub(super) const fn is_for_shared(&self) -> bool {
        matches!(self.scope, ForceScope::Everything)
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

/// The target of a claim that was given up by force, or whose row was damaged. What the claims of the volume share is not undone before the
/// kernel shows nothing there (C131).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Abandoned {
    /// The path.
    pub path: PathBuf,
    /// The allocation that had the claim.
    pub allocation: AllocationId,
    /// Whether the claim was released, so that its publication may be undone although something is mounted (V8).
    pub is_released: bool,
}

impl Abandoned {
    /// Puts it in the place of what is there of its path.
    pub(super) fn replace_in(self, all: &mut BTreeSet<Self>) {
        all.retain(|other| other.path != self.path);
        all.insert(self);
    }
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
    /// The claim was given up already, and what it shared is not undone before nothing is mounted at its target (C131).
    #[error(
        "the claim of allocation {allocation} to volume {volume} was already given up, and its remains at {path} are being \
        undone: the status of the volume shows the progress; the whole volume can be forced once no claim holds it",
        path = path.display()
    )]
    Abandoned {
        /// The volume.
        volume: VolumeKey,
        /// The allocation that had the claim.
        allocation: AllocationId,
        /// Where something may be mounted.
        path: PathBuf,
    },
    /// Nothing of what was meant waits to be undone, or to be done.
    #[error("volume {volume} has no pending step or order; there is nothing to force")]
    Nothing {
        /// The volume.
        volume: VolumeKey,
    },
}
