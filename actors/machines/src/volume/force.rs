//! The messages by which an operator gives up steps that are not confirmed down.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::record::VolumeKey;
use crate::vocabulary::{AllocationId, Timestamp};

/// The scope of a forced release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ForceScope {
    /// All of it: every claim, the staging, the attachment, a deletion and the orders.
    Everything,
    /// The claim of this allocation. The steps that it shared with others stay, and are undone only after nothing is mounted at its target
    /// (C131).
    Claim(AllocationId),
    /// The orders that are not done. The volume may be in use meanwhile.
    Orders,
}

/// Gives up waiting for a confirmation, and forgets steps that may still be up (V9). No call is cancelled. For a volume that is forgotten
/// as a whole, no call is made and no directory removed; the audit names what may be left. The target of a claim that is forgotten alone is
/// still undone. Only released claims can be forced, and orders that are not done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForceRelease {
    /// The claims, steps or orders to forget.
    pub scope: ForceScope,
    /// The operator and the reason, for the audit.
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

    /// Whether the steps that the claims share are to be forgotten, and a deletion.
    pub(super) const fn is_for_shared(&self) -> bool {
        matches!(self.scope, ForceScope::Everything)
    }
}

/// Makes the ledger take a write, which changes nothing, before something is forced. Answered when it is on disk: only then is the release
/// forced, so that a refused force is never done later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PrepareForce {
    /// The forced release that follows.
    pub force: ForceRelease,
}

/// The remains that a forced release may have left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Forced {
    /// The volume.
    pub volume: VolumeKey,
    /// The operator and the reason.
    pub reason: String,
    /// The time.
    pub at: Timestamp,
    /// Each step that was not confirmed down: the step, its state and its path. Each order that was not done, and its state.
    pub left: Vec<String>,
}

/// The target of a claim that was given up by force, or whose row was damaged. The steps that the claims of the volume share are undone
/// only after the kernel shows nothing there (C131).
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
    /// Inserts it, in place of the entry with the same path.
    pub(super) fn replace_in(self, all: &mut BTreeSet<Self>) {
        all.retain(|other| other.path != self.path);
        all.insert(self);
    }
}

/// The reason that nothing is forced.
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
    /// The claim was given up already, and the steps that it shared are undone only after nothing is mounted at its target (C131).
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
        /// The path where something may be mounted.
        path: PathBuf,
    },
    /// Nothing in that scope waits to be undone, or to be done.
    #[error("volume {volume} has no pending step or order; there is nothing to force")]
    Nothing {
        /// The volume.
        volume: VolumeKey,
    },
}
