//! The reasons that several errors of the owner of the volumes share.

use std::fmt;

use crate::AskError;
use crate::vocabulary::{AllocationId, PluginName};
use crate::volume::VolumeKey;

/// No volume with this key exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("there is no volume {volume}")]
pub struct UnknownVolume {
    /// The key.
    pub volume: VolumeKey,
}

/// A plugin has one volume with this id, and another name here has the id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("volume {volume} and volume {other} are the same one at plugin {plugin}, with the id {volume_id:?}")]
pub struct SameVolume {
    /// The volume.
    pub volume: VolumeKey,
    /// The other name of it.
    pub other: VolumeKey,
    /// The plugin.
    pub plugin: PluginName,
    /// The id there.
    pub volume_id: String,
}

/// A volume gave no answer. The effect of the message may continue, unless the error states that nothing was begun: the same message asks
/// for its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoAnswer {
    /// Its actor did not answer.
    #[error("the actor of volume {volume} gave no answer: {reason}; ask again")]
    Silent {
        /// The volume.
        volume: VolumeKey,
        /// The reason.
        reason: String,
    },
    /// The state on which its answer depends is not on disk.
    #[error(
        "volume {volume} could not persist this: {error}; {}, ask again",
        if *is_begun { "what was started resumes when the disk accepts writes" } else { "nothing was begun" }
    )]
    NotDurable {
        /// The volume.
        volume: VolumeKey,
        /// The error of the disk.
        error: String,
        /// Whether the volume handled the message, so that its effect continues when the disk takes writes.
        is_begun: bool,
    },
    /// The ledger refused the state on which its answer depends, so it is never on disk. Operations that were begun before may have had an
    /// effect.
    #[error(
        "volume {volume} could not persist this: {error}; it is never written, and the same request fails again: change it"
    )]
    NotWritten {
        /// The volume.
        volume: VolumeKey,
        /// The reason that the ledger refused it.
        error: String,
    },
}

impl NoAnswer {
    /// The meaning of an error of the ask.
    pub(super) fn of(volume: &VolumeKey, error: &AskError) -> Self {
        match error {
            AskError::NotDurable { error, is_begun, .. } => {
                Self::NotDurable { volume: volume.clone(), error: error.clone(), is_begun: *is_begun }
            }
            AskError::NotWritten { error, .. } => {
                Self::NotWritten { volume: volume.clone(), error: error.clone() }
            }
            AskError::Busy { .. } | AskError::NotRunning { .. } | AskError::Crashed { .. } => {
                Self::silent(volume, error.to_string())
            }
        }
    }

    /// The error that its actor did not answer, for this reason.
    pub(super) fn silent(volume: &VolumeKey, reason: impl Into<String>) -> Self {
        Self::Silent { volume: volume.clone(), reason: reason.into() }
    }

    /// The fault, without the fate of the message.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Silent { reason, .. } => format!("its actor gave no answer: {reason}"),
            Self::NotDurable { error, .. } => format!("its ledger takes no writes: {error}"),
            Self::NotWritten { error, .. } => format!("its ledger refuses this write: {error}"),
        }
    }

    /// Whether the message may have had an effect, or may still have one.
    #[must_use]
    pub const fn may_go_on(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::NotWritten { .. } => true,
            Self::NotDurable { is_begun, .. } => *is_begun,
        }
    }

    /// Whether the same message may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::NotDurable { .. } => true,
            Self::NotWritten { .. } => false,
        }
    }
}

/// Too many callers wait for volumes of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{waiting} callers already wait for volumes of plugin {plugin}; try again later")]
pub struct TooManyCallers {
    /// The plugin.
    pub plugin: PluginName,
    /// The number of waiting callers.
    pub waiting: usize,
}

/// The plugin of a volume is being stopped, and accepts nothing new. Nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "plugin {plugin} is being stopped, so no operation is started on volume {volume}; try again when the plugin is back"
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
    /// The states of attachment and staging, and the current operation or the condition it waits for; or the reason that they are unknown.
    pub state: String,
}

impl InUse {
    /// Whether an allocation has a claim. Without a claim, the remaining steps are being undone.
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        !self.claims.is_empty()
    }

    pub(super) const fn remedy(&self) -> &'static str {
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
