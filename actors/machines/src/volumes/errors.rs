//! Why the owner of the volumes does not do what it is asked for.

use std::fmt;
use std::time::Duration;

use crate::csi::Fault;
use crate::vocabulary::{AllocationId, PluginName, Topology};
use crate::volume::{self, VolumeKey};

/// There is no volume of this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("there is no volume {volume}; register or create it first")]
pub struct UnknownVolume {
    /// The key.
    pub volume: VolumeKey,
}

/// The actor of a volume gave no answer. The message had no effect, or its effect goes on: the same message asks for its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the actor of volume {volume} gave no answer: {reason}; ask again")]
pub struct NoAnswer {
    /// The volume.
    pub volume: VolumeKey,
    /// Why.
    pub reason: String,
}

/// Too many callers wait for volumes of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{waiting} callers wait for volumes of plugin {plugin} already; try again later")]
pub struct TooManyCallers {
    /// The plugin.
    pub plugin: PluginName,
    /// How many wait.
    pub waiting: usize,
}

/// The plugin of a volume is being stopped, and takes nothing new. Nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "plugin {plugin} is being stopped, so nothing new is begun with volume {volume}; try again when the plugin is back"
)]
pub struct PluginLeaving {
    /// The volume.
    pub volume: VolumeKey,
    /// Its plugin.
    pub plugin: PluginName,
}

/// A volume that is in use, or may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InUse {
    /// The volume.
    pub volume: VolumeKey,
    /// The allocations that have claims, held or released.
    pub claims: Vec<AllocationId>,
    /// The states of attachment and staging, and what is done or waited for; or why they are unknown.
    pub state: String,
}

impl InUse {
    /// Whether an allocation has a claim. Without one, what remains is being undone.
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        !self.claims.is_empty()
    }

    const fn remedy(&self) -> &'static str {
        if self.is_claimed() { "release it first" } else { "it is being undone, try again later" }
    }
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} ", self.volume)?;
        for (place, claim) in self.claims.iter().enumerate() {
            write!(f, "{}{claim}", if place == 0 { "of " } else { ", " })?;
        }
        let space = if self.is_claimed() { " " } else { "" };
        write!(f, "{space}({})", self.state)
    }
}

/// Why a volume is not registered. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RegisterVolumeError {
    /// Its contents break a rule.
    #[error("volume {volume} is not valid: {fault}")]
    Invalid {
        /// The volume.
        volume: VolumeKey,
        /// The field, and what is wrong with it.
        fault: Fault,
    },
    /// It is known with other contents, and in use.
    #[error("{in_use} is known with other contents and in use; {}", in_use.remedy())]
    InUse {
        /// By whom.
        in_use: InUse,
    },
    /// It was created here with other contents.
    #[error("volume {volume} was created here with other contents; choose another name, or delete it first")]
    Created {
        /// The volume.
        volume: VolumeKey,
    },
    /// The limit of known volumes is reached.
    #[error("{count} volumes are known already; forget those that are not used any more")]
    TooMany {
        /// How many are known.
        count: usize,
    },
    /// The host stops.
    #[error("volume {volume} is not registered any more, since the host stops")]
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
            Self::Invalid { .. } | Self::Created { .. } | Self::TooMany { .. } => false,
        }
    }
}

/// Why a volume is not forgotten. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForgetVolumeError {
    /// It is in use.
    #[error("{in_use} is in use; {}", in_use.remedy())]
    InUse {
        /// By whom.
        in_use: InUse,
    },
    /// It was created here.
    #[error("volume {volume} was created here; delete it instead")]
    Created {
        /// The volume.
        volume: VolumeKey,
    },
}

/// Why a volume is not created.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CreateError {
    /// There is a volume of this key, of another plugin.
    #[error("volume {volume} is one of plugin {plugin}; choose another name")]
    OtherPlugin {
        /// The volume.
        volume: VolumeKey,
        /// Its plugin.
        plugin: PluginName,
    },
    /// The limit of known volumes is reached.
    #[error("{count} volumes are known already; forget or delete those that are not used any more")]
    TooMany {
        /// How many are known.
        count: usize,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The plugin is being stopped (V13).
    #[error(transparent)]
    PluginLeaving(#[from] PluginLeaving),
    /// The actor of the volume gave no answer. What was begun goes on: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("volume {volume} is not created any more, since the host stops")]
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
            Self::TooManyCallers(_) | Self::PluginLeaving(_) | Self::NoAnswer(_) | Self::Stopping { .. } => {
                true
            }
            Self::OtherPlugin { .. } | Self::TooMany { .. } => false,
            Self::Refused(error) => error.is_transient(),
        }
    }
}

/// Why a volume is not deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DeleteError {
    /// Too many callers wait. Nothing was begun.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The actor of the volume gave no answer. What was begun goes on: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("volume {volume} is not deleted any more, since the host stops")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it, or it is not confirmed.
    #[error(transparent)]
    Refused(#[from] volume::DeleteError),
}

/// Why a volume is not claimed. Unless it says otherwise, nothing is held afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ClaimError {
    /// It is not known.
    #[error(transparent)]
    Unknown(#[from] UnknownVolume),
    /// The volume cannot be reached from this node (V12).
    #[error(
        "volume {volume} cannot be reached from this node, which is at {node:?}; it can be from {volume_at:?}: \
         claim it on a node there"
    )]
    Unreachable {
        /// The volume.
        volume: VolumeKey,
        /// Where this node is, as its plugin says.
        node: Topology,
        /// From where the volume can be reached.
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
        /// How many are claimed or set up.
        used: u64,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The plugin is being stopped, and the allocation has no claim to the volume yet (V13).
    #[error(transparent)]
    PluginLeaving(#[from] PluginLeaving),
    /// The actor of the volume gave no answer. The claim may be held and the operation may go on: ask again, or release it (V15).
    #[error("{0}, or release the claim")]
    NoAnswer(NoAnswer),
    /// The host stops.
    #[error("volume {volume} is not claimed any more, since the host stops")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it.
    #[error(transparent)]
    Refused(#[from] volume::ClaimError),
}

impl ClaimError {
    /// Whether the same claim may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NodeFull { .. }
            | Self::TooManyCallers(_)
            | Self::PluginLeaving(_)
            | Self::NoAnswer(_)
            | Self::Stopping { .. } => true,
            Self::Unknown(_) | Self::Unreachable { .. } => false,
            Self::Refused(error) => error.is_transient(),
        }
    }
}

/// Why a release is not confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReleaseError {
    /// The volume is not known.
    #[error(transparent)]
    Unknown(#[from] UnknownVolume),
    /// Too many callers wait. Nothing was released.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The actor of the volume gave no answer. Nothing was released, or it goes on: ask again.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops, and the release came too late to be recorded.
    #[error(
        "volume {volume} is not released any more, since the host stops; release it after the next start"
    )]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume has recorded it, and it goes on.
    #[error(transparent)]
    Unconfirmed(#[from] volume::ReleaseError),
}

impl ReleaseError {
    /// Whether the same release may be confirmed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Why it is unknown what became of the claims of an earlier run. Nothing of them is undone before a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConfirmError {
    /// The actor of the volume gave no answer.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("the claims to volume {volume} are not confirmed any more, since the host stops")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
}

/// Why nothing is forced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForceError {
    /// The volume is not known.
    #[error(transparent)]
    Unknown(#[from] UnknownVolume),
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The actor of the volume gave no answer. It may be forced: the description of the volume shows it.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The host stops.
    #[error("nothing of volume {volume} is forced any more, since the host stops")]
    Stopping {
        /// The volume.
        volume: VolumeKey,
    },
    /// The volume refuses it.
    #[error(transparent)]
    Refused(#[from] volume::ForceError),
}

/// Why a plugin is not known to be unused (V13).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AwaitUnusedError {
    /// Volumes of it are in use at the end of the timeout.
    #[error(
        "plugin {plugin} is still used (waited {waited:?}): {}; stop what uses them, or release them",
        listed(volumes)
    )]
    InUse {
        /// The plugin.
        plugin: PluginName,
        /// The volumes, by whom they are used, and their states.
        volumes: Vec<InUse>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
}

fn listed(volumes: &[InUse]) -> String {
    volumes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
