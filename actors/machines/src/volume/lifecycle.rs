//! The messages that create and delete a volume.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::existence::NewVolume;
use super::record::VolumeKey;
use crate::csi;
use crate::vocabulary::AllocationId;

/// Creates the volume at its plugin. Answered when it exists. Repeating it is harmless: it asks for the result of the creation that was
/// begun, under the same name (C050), and never creates a second volume.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateVolume {
    /// The requested volume.
    pub volume: NewVolume,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// A volume that exists, as its plugin answered (C059).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Created {
    /// The volume.
    pub volume: Arc<csi::Volume>,
}

/// The reason that a volume is not created.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CreateError {
    /// The request breaks a rule.
    #[error("volume {volume} cannot be created like this: {reason}")]
    Invalid {
        /// The volume.
        volume: VolumeKey,
        /// The fault, and the violated rule.
        reason: String,
    },
    /// A volume of this name was made elsewhere.
    #[error(
        "volume {volume} is registered with the id {volume_id:?} and is not created once more; choose another name, or forget it first"
    )]
    Registered {
        /// The volume.
        volume: VolumeKey,
        /// Its id with the plugin.
        volume_id: String,
    },
    /// It was created, or is being created, with other arguments.
    #[error(
        "volume {volume} was to be created with other arguments: {}; repeat those, or choose another name",
        .differences.join(", ")
    )]
    OtherArguments {
        /// The volume.
        volume: VolumeKey,
        /// Each argument that differs, with its first value.
        differences: Vec<String>,
    },
    /// It is being deleted.
    #[error("volume {volume} is being deleted; create it again when that is done")]
    BeingDeleted {
        /// The volume.
        volume: VolumeKey,
    },
    /// The limit of waiting callers is reached.
    #[error("volume {volume} has {waiting} callers waiting, and takes no more; try again later")]
    Full {
        /// The volume.
        volume: VolumeKey,
        /// Its waiting callers.
        waiting: usize,
    },
    /// It was not created in time. The creation continues: ask again, or delete it (C061, V15).
    #[error(
        "volume {volume} was not created in time, {doing}; the creation goes on: ask again, or delete it"
    )]
    Pending {
        /// The volume.
        volume: VolumeKey,
        /// The pending operation, or the condition it waits for.
        doing: String,
    },
    /// The plugin refused it, and nothing was created.
    #[error("volume {volume} is not created: {reason}")]
    Failed {
        /// The volume.
        volume: VolumeKey,
        /// The reason.
        reason: String,
    },
    /// The plugin refuses it after a try whose outcome is unknown (V4). It is kept, so that it can be asked again or deleted.
    #[error(
        "volume {volume} may exist at its plugin under the name {name:?}: {reason}; retry when the plugin is healthy, or delete it"
    )]
    Unclear {
        /// The volume.
        volume: VolumeKey,
        /// The name that the plugin received.
        name: String,
        /// The reason.
        reason: String,
    },
    /// It exists, and differs from the request. It is kept so that it can be deleted, and cannot be claimed.
    #[error(
        "volume {volume} exists with the id {volume_id:?}, and is not what was asked for: {reason}; delete it"
    )]
    Unfit {
        /// The volume.
        volume: VolumeKey,
        /// Its id with the plugin.
        volume_id: String,
        /// The actual property.
        reason: String,
    },
    /// It was deleted while it was created.
    #[error("volume {volume} was deleted while it was created")]
    Deleted {
        /// The volume.
        volume: VolumeKey,
    },
    /// The host stops. What was begun is in the ledger, and the next start resumes it.
    #[error("volume {volume} is not created yet, since the host stops; the next start resumes it")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

impl CreateError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::BeingDeleted { .. }
            | Self::Full { .. }
            | Self::Pending { .. }
            | Self::Unclear { .. }
            | Self::Stopping { .. } => true,
            Self::Invalid { .. }
            | Self::Registered { .. }
            | Self::OtherArguments { .. }
            | Self::Failed { .. }
            | Self::Unfit { .. }
            | Self::Deleted { .. } => false,
        }
    }
}

/// Deletes the volume at its plugin. Answered when that is confirmed. A volume that is claimed, or that has a step set up on this
/// node, is not deleted. Repeating it is harmless.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeleteVolume {
    /// The id that it has with its plugin, if its owner knows it; empty otherwise. With another id it is deleted only when its owner allows
    /// that, by [`AllowDeletion`].
    pub volume_id: String,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// The volume no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deleted {
    /// Whether it existed, or may have.
    pub did_exist: bool,
}

/// The reason that a volume is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeleteError {
    /// It is claimed, or not undone on this node. Nothing has changed.
    #[error("volume {volume} is not deleted: {}; {remedy}", .held_by.join(", "))]
    InUse {
        /// The volume.
        volume: VolumeKey,
        /// The claims.
        holders: Vec<AllocationId>,
        /// Everything that holds it: claims, and steps that are not down.
        held_by: Vec<String>,
        /// The remedy.
        remedy: &'static str,
    },
    /// The plugin refused it. The volume is as it was.
    #[error("volume {volume} is not deleted, and stays as it is: {reason}")]
    Refused {
        /// The volume.
        volume: VolumeKey,
        /// The reason.
        reason: String,
    },
    /// The plugin refuses it, and whether the volume exists is unknown. It is kept until that is resolved.
    #[error(
        "volume {volume} may still exist: {reason}; retry when the plugin is healthy, or release it by force"
    )]
    Unclear {
        /// The volume.
        volume: VolumeKey,
        /// The reason.
        reason: String,
    },
    /// It was forgotten by force before its deletion was confirmed.
    #[error("volume {volume} was forgotten by force: {left}; look for it at the plugin")]
    Forced {
        /// The volume.
        volume: VolumeKey,
        /// Everything that may be left.
        left: String,
    },
    /// The limit of waiting callers is reached.
    #[error("volume {volume} has {waiting} callers waiting, and takes no more; try again later")]
    Full {
        /// The volume.
        volume: VolumeKey,
        /// Its waiting callers.
        waiting: usize,
    },
    /// It takes longer, and continues.
    #[error("volume {volume} is not deleted yet, {doing}; it goes on, ask again or release it by force")]
    Pending {
        /// The volume.
        volume: VolumeKey,
        /// The pending operation, or the condition it waits for.
        doing: String,
    },
    /// The host stops. What was begun is in the ledger, and the next start resumes it.
    #[error("volume {volume} is not deleted yet, since the host stops; the next start resumes it")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

impl DeleteError {
    /// Whether the deletion continues, or may continue.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        match self {
            Self::InUse { .. } | Self::Refused { .. } => false,
            Self::Unclear { .. }
            | Self::Forced { .. }
            | Self::Full { .. }
            | Self::Pending { .. }
            | Self::Stopping { .. } => true,
        }
    }
}

/// Allows the deletion of a volume that got its id only after its deletion was requested: no other volume here has that id, so no data of
/// another volume is deleted. A volume with another id, or one that is not to be deleted, ignores it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AllowDeletion {
    /// The id.
    pub volume_id: String,
}

/// Forgets that the volume was created, and deletes nothing: its plugin has answered with the id of another volume here, which owns the
/// data. Answered when it is on disk, with whether nothing of the volume is left. A volume with another id, or with anything to be done or
/// undone, stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Disown {
    /// The id, which the other volume has.
    pub volume_id: String,
}

/// Whether a volume exists, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exists {
    /// It was made elsewhere.
    Registered,
    /// It is not created.
    Absent,
    /// Its creation is not confirmed.
    BeingCreated,
    /// It was created.
    Created,
    /// It was created, and differs from the request.
    Unfit,
    /// Its deletion is not confirmed.
    BeingDeleted,
}

impl Exists {
    /// As a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Absent => "absent",
            Self::BeingCreated => "being-created",
            Self::Created => "created",
            Self::Unfit => "unfit",
            Self::BeingDeleted => "being-deleted",
        }
    }

    /// Whether a call about its existence is to be made.
    #[must_use]
    pub const fn is_changing(self) -> bool {
        matches!(self, Self::BeingCreated | Self::BeingDeleted)
    }

    /// Whether it exists, and is not to be deleted.
    #[must_use]
    pub const fn is_there(self) -> bool {
        matches!(self, Self::Registered | Self::Created | Self::Unfit)
    }

    /// The reason that it cannot be claimed, and what to do, if so.
    pub(crate) const fn why_unclaimed(self) -> Option<&'static str> {
        match self {
            Self::Registered | Self::Created => None,
            Self::Absent => Some("it does not exist; create or register it first"),
            Self::BeingCreated => Some("it is being created; claim it when that is done"),
            Self::Unfit => Some("it is not what was asked for; delete it, and create it anew"),
            Self::BeingDeleted => Some("it is being deleted; create it again when that is done"),
        }
    }
}

impl fmt::Display for Exists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
