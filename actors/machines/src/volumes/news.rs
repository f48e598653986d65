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
        /// How it ended.
        reason: String,
    },
    /// It has ended unexpectedly too often. The next message for the volume starts it again.
    GivenUp {
        /// How it ended.
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
    /// Whether it can be claimed. One that cannot is only in the ledger: it is being created, or what is left of it is undone.
    pub is_known: bool,
    /// Its actor.
    pub actor: VolumeActor,
    /// How often its actor was restarted after a fall.
    pub restarts: u64,
    /// The last status that its actor reported. That of an actor that has ended is kept only if the volume is not what was asked for; else
    /// this is `None` without an actor, and until it has reported.
    pub status: Option<Arc<VolumeStatus>>,
}

impl VolumeReport {
    /// Whether it is claimed or set up on this node, or may be: one whose actor has not told how it stands counts. These are the volumes
    /// that a plugin's limit is about (C147), and not one that is only being created.
    #[must_use]
    pub fn is_on_node(&self) -> bool {
        self.actor != VolumeActor::Unneeded && self.status.as_deref().is_none_or(VolumeStatus::is_on_node)
    }
}

/// The news of the owner of the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VolumesNews {
    /// A volume became known, or something about it changed.
    Changed(VolumeReport),
    /// A volume is neither known nor in use any more.
    Forgotten(VolumeKey),
    /// A claim that was held could not be set up again, or for the first time; it is undone.
    ClaimFailed {
        /// The volume.
        volume: VolumeKey,
        /// The allocation.
        allocation: AllocationId,
        /// Why.
        reason: String,
    },
    /// What was ordered of a volume is not done, and not tried again.
    OrderFailed {
        /// The volume.
        volume: VolumeKey,
        /// What was ordered.
        what: String,
        /// Why.
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
