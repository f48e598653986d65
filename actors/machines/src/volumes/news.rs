//! The news of the owner of the volumes.

use std::sync::Arc;

use super::state::KnownVolume;
use crate::vocabulary::AllocationId;
use crate::volume::{Forced, VolumeKey, VolumeStatus};

/// The state of a volume's actor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumeActor {
    /// There is none: the volume has no claim, and nothing of it is set up on this node.
    Unneeded,
    /// It runs.
    Running,
    /// It was asked to stop, and has not ended yet.
    Stopping,
    /// It has ended unexpectedly, and is restarted after a pause.
    Pausing {
        /// The ending.
        reason: String,
    },
    /// It has ended unexpectedly too often. The next message for the volume starts it again.
    GivenUp {
        /// The ending.
        reason: String,
    },
}

impl VolumeActor {
    /// The state as a word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unneeded => "unneeded",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Pausing { .. } => "pausing",
            Self::GivenUp { .. } => "given-up",
        }
    }
}

/// One volume, as the owner of the volumes knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeReport {
    /// The volume.
    pub volume: Arc<KnownVolume>,
    /// Whether it can be claimed. A volume that cannot is only in the ledger: it is being created, or its remains are undone.
    pub is_known: bool,
    /// Its actor.
    pub actor: VolumeActor,
    /// The number of restarts of its actor after a crash.
    pub restarts: u64,
    /// The last status that its actor reported. The status of an ended actor is kept only if the volume is unfit; else this is `None`
    /// without an actor, and until the actor has reported.
    pub status: Option<Arc<VolumeStatus>>,
}

impl VolumeReport {
    /// Whether it is claimed or set up on this node, or may be: a volume whose actor has not reported its state counts. A plugin's limit
    /// counts these volumes (C147), and not a volume that is only being created.
    #[must_use]
    pub fn is_on_node(&self) -> bool {
        self.actor != VolumeActor::Unneeded && self.status.as_deref().is_none_or(VolumeStatus::is_on_node)
    }
}

/// The news of the owner of the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumesNews {
    /// A volume became known, or changed.
    Changed(VolumeReport),
    /// A volume is neither known nor in use from now on.
    Forgotten(VolumeKey),
    /// A claim that was held could not be set up again, or for the first time; it is undone.
    ClaimFailed {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
        /// The reason.
        reason: String,
    },
    /// An order of a volume is not done, and not retried.
    OrderFailed {
        /// The volume.
        volume: VolumeKey,
        /// The order.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The audit of a forced release (V9).
    Forced(Forced),
}

/// The view that subscribers get as snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VolumesView {
    /// Every volume that is known or in use, ordered by key.
    pub volumes: Vec<VolumeReport>,
}
