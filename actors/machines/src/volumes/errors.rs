//! The errors of the owner of the volumes.
//!
//! A refusal because the host stops is transient: this run cannot do it, and the same message to the next run may succeed, since the
//! ledgers outlive the host.

use std::time::Duration;

use super::reasons::{InUse, NoAnswer, PluginLeaving, SameVolume, TooManyCallers, UnknownVolume};
use crate::csi::Fault;
use crate::vocabulary::{PluginName, Topology, told_wait};
use crate::volume::{self, VolumeKey};

/// The reason that a volume is not registered. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RegisterVolumeError {
    /// Its contents break a rule.
    #[error("volume {volume} is not valid: {fault}")]
    Invalid {
        /// The volume.
        volume: VolumeKey,
        /// The field, and its fault.
        fault: Fault,
    },
    /// It is known with other contents, and in use.
    #[error("{in_use} is known with other contents and in use; {}", in_use.remedy())]
    InUse {
        /// The users.
        in_use: InUse,
    },
    /// Another name here has its id.
    #[error("{0}; use {other}, or forget that first if it was not created here", other = .0.other)]
    SameVolume(#[from] SameVolume),
    /// It was created here with other contents.
    #[error("volume {volume} was created here with other contents; choose another name, or delete it first")]
    Created {
        /// The volume.
        volume: VolumeKey,
    },
    /// The limit of known volumes is reached.
    #[error("limit of {count} volumes reached; forget those that are no longer used")]
    TooMany {
        /// The number of known volumes.
        count: usize,
    },
    /// The host stops.
    #[error("cannot register volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

impl RegisterVolumeError {
    /// Whether the same registration may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::InUse { in_use } => !in_use.is_claimed(),
            Self::Stopping { .. } => true,
            Self::Invalid { .. } | Self::SameVolume(_) | Self::Created { .. } | Self::TooMany { .. } => false,
        }
    }
}

/// The reason that a volume is not forgotten. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForgetVolumeError {
    /// It is in use.
    #[error("{in_use} is in use; {}", in_use.remedy())]
    InUse {
        /// The users.
        in_use: InUse,
    },
    /// It was created here.
    #[error(
        "volume {volume} was created here, so it can only be deleted, with its contents; to keep them, use it by this name"
    )]
    Created {
        /// The volume.
        volume: VolumeKey,
    },
    /// The host stops. The claims that it leaves need to know the volume at the next start.
    #[error("cannot forget volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

/// The reason that a volume is not created.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CreateError {
    /// The plugin answered with the id of another volume here. It cannot be used by this name, nor be deleted by it.
    #[error("{0}: the plugin answered with an id that already exists; use {other}", other = .0.other)]
    SameVolume(#[from] SameVolume),
    /// There is a volume of this key that belongs to another plugin.
    #[error("volume {volume} is one of plugin {plugin}; choose another name")]
    OtherPlugin {
        /// The volume.
        volume: VolumeKey,
        /// Its plugin.
        plugin: PluginName,
    },
    /// The limit of known volumes is reached.
    #[error("limit of {count} volumes reached; forget or delete those that are no longer used")]
    TooMany {
        /// The number of known volumes.
        count: usize,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The plugin is being stopped (V13).
    #[error(transparent)]
    PluginLeaving(#[from] PluginLeaving),
    /// The actor of the volume gave no answer. A creation that was begun continues: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("cannot create volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it, or it failed.
    #[error(transparent)]
    Refused(#[from] volume::CreateError),
}

impl CreateError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::TooManyCallers(_) | Self::PluginLeaving(_) | Self::Stopping { .. } => true,
            Self::SameVolume(_) | Self::OtherPlugin { .. } | Self::TooMany { .. } => false,
            Self::NoAnswer(no_answer) => no_answer.is_transient(),
            Self::Refused(error) => error.is_transient(),
        }
    }
}

/// The reason that a volume is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeleteError {
    /// It is the same as another volume here, which would be deleted with it. Nothing was begun.
    #[error("{0}; neither is deleted, forget one of them first")]
    SameVolume(#[from] SameVolume),
    /// A group of snapshots is being taken of it. Nothing was begun.
    #[error(
        "volume {volume} is not deleted, since \"{what}\" of volume {keeper} is not done; wait for that, or force that order first"
    )]
    InGroup {
        /// The volume.
        volume: VolumeKey,
        /// The volume whose ledger has the order.
        keeper: VolumeKey,
        /// The order.
        what: String,
    },
    /// It is not known yet whether a group of snapshots is being taken of it. Nothing was begun.
    #[error(
        "volume {volume} is not deleted yet, since volume {unread} of its plugin has just been started and may be taking a group of snapshots of \
         it; try again"
    )]
    Unread {
        /// The volume.
        volume: VolumeKey,
        /// The volume whose ledger may have such an order.
        unread: VolumeKey,
    },
    /// Too many callers wait. Nothing was begun.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The actor of the volume gave no answer. A deletion that was begun continues: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("cannot delete volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it, or it is not confirmed.
    #[error(transparent)]
    Refused(#[from] volume::DeleteError),
}

/// The reason that a volume is not claimed. Nothing is held afterwards, unless the variant states otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ClaimError {
    /// It is not known.
    #[error("{0}; create it first, or register it by a `[[volume]]` of the configuration")]
    Unknown(#[from] UnknownVolume),
    /// The volume cannot be reached from this node (V12).
    #[error(
        "volume {volume} is not accessible from this node, which is at {node:?}, but only from {volume_at:?}; claim it on a node there"
    )]
    Unreachable {
        /// The volume.
        volume: VolumeKey,
        /// The topology of this node, as its plugin reports it.
        node: Topology,
        /// The topologies from which the volume can be reached.
        volume_at: Vec<Topology>,
    },
    /// The plugin takes no more volumes on this node (V12).
    #[error(
        "plugin {plugin} has {used} volumes on this node, and takes no more than {limit}; release one, or use another node"
    )]
    NodeFull {
        /// The plugin.
        plugin: PluginName,
        /// Its limit (C147).
        limit: u64,
        /// The number of volumes that are claimed or set up.
        used: u64,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The plugin is being stopped, and the allocation has no claim to the volume yet (V13).
    #[error(transparent)]
    PluginLeaving(#[from] PluginLeaving),
    /// The actor of the volume gave no answer. The claim may be held and the operation may continue: ask again, or release it (V15).
    #[error("{0}{or_else}", or_else = if .0.may_go_on() { ", or release the claim" } else { "" })]
    NoAnswer(NoAnswer),
    /// The host stops.
    #[error("cannot claim volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it.
    #[error(transparent)]
    Refused(#[from] volume::ClaimError),
}

impl ClaimError {
    /// Whether the same claim may succeed later. If it is refused because the host stops, that is in the next run of the host.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NodeFull { .. }
            | Self::TooManyCallers(_)
            | Self::PluginLeaving(_)
            | Self::Stopping { .. } => true,
            Self::Unknown(_) | Self::Unreachable { .. } => false,
            Self::NoAnswer(no_answer) => no_answer.is_transient(),
            Self::Refused(error) => error.is_transient(),
        }
    }
}

/// The reason that a release is not confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReleaseError {
    /// The volume is not known.
    #[error("{0}, so nothing of it is claimed here; look for its name in the list of the volumes")]
    Unknown(#[from] UnknownVolume),
    /// Too many callers wait. Nothing was released.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The actor of the volume gave no answer. Nothing was released, or the release continues: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops, and the release came too late to be recorded.
    #[error("cannot release volume {volume}: the host is stopping; release it after the next start")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume has recorded it, and the release continues, unless it was given up by force.
    #[error(transparent)]
    Unconfirmed(#[from] volume::ReleaseError),
}

impl ReleaseError {
    /// Whether the same release may be confirmed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        !matches!(self, Self::Unknown(_) | Self::Unconfirmed(volume::ReleaseError::Forced { .. }))
    }
}

/// The reason that the fate of the claims of an earlier run is unknown. They are undone only after a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConfirmError {
    /// The actor of the volume gave no answer.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("cannot confirm the claims to volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

/// The reason that nothing is forced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForceError {
    /// The volume is not known.
    #[error("{0}, so nothing of it is claimed here; look for its name in the list of the volumes")]
    Unknown(#[from] UnknownVolume),
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The ledger of the volume did not take a write in time. Nothing is forced, nor will be.
    #[error("the forced release of volume {volume} was not started: {reason}; retry when that is resolved")]
    NotPrepared {
        /// The volume.
        volume: VolumeKey,
        /// The reason.
        reason: String,
    },
    /// The actor of the volume gave no answer. It may be forced: the description of the volume shows it.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("cannot force volume {volume}: the host is stopping")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it.
    #[error(transparent)]
    Refused(#[from] volume::ForceError),
}

/// The reason that a plugin is not known to be unused (V13).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AwaitUnusedError {
    /// Volumes of it are in use at the end of the timeout.
    #[error(
        "plugin {plugin} is still used{}: {}; stop what uses them, or release them",
        told_wait(*waited),
        listed(volumes)
    )]
    InUse {
        /// The plugin.
        plugin: PluginName,
        /// The volumes, with their users and states.
        volumes: Vec<InUse>,
        /// The time that the caller waited.
        waited: Duration,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
}

fn listed(volumes: &[InUse]) -> String {
    volumes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
