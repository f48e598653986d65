//! The reasons that the errors of the owner of the volumes have in common.

use std::fmt;

use crate::AskError;
use crate::vocabulary::{AllocationId, PluginName};
use crate::volume::VolumeKey;

/// There is no volume of this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("there is no volume {volume}")]
pub struct UnknownVolume {
    /// The key.
    pub volume: VolumeKey,
}

/// A plugin has one volume of an id, and another name here has it.
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

/// There is no answer of a volume. Unless it says that nothing was begun, the effect of the message may go on: the same message asks for
/// its result (V15).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoAnswer {
    /// Its actor did not answer.
    #[error("the actor of volume {volume} gave no answer: {reason}; ask again")]
    Silent {
        /// The volume.
        volume: VolumeKey,
        /// Why.
        reason: String,
    },
    /// What its answer rests on is not on disk.
    #[error(
        "volume {volume} could not persist this: {error}; {}, ask again",
        if *is_begun { "what was started resumes when the disk accepts writes" } else { "nothing was begun" }
    )]
    NotDurable {
        /// The volume.
        volume: VolumeKey,
        /// What is wrong with the disk.
        error: String,
        /// Whether the volume handled the message, so that its effect goes on when the disk takes writes.
        is_begun: bool,
    },
    /// What its answer rests on is refused by its ledger, and is never on disk. What was begun before that may have had an effect.
    #[error(
        "volume {volume} could not persist this: {error}; it is never written, and the same request fails again: change it"
    )]
    NotWritten {
        /// The volume.
        volume: VolumeKey,
        /// Why the ledger refused it.
        error: String,
    },
}

impl NoAnswer {
    /// What an error of the ask means.
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

    /// Its actor did not answer, for this reason.
    pub(super) fn silent(volume: &VolumeKey, reason: impl Into<String>) -> Self {
        Self::Silent { volume: volume.clone(), reason: reason.into() }
    }

    /// What is wrong, without what becomes of the message.
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
    /// How many wait.
    pub waiting: usize,
}

/// The plugin of a volume is being stopped, and takes nothing new. Nothing was begun.
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
    /// The states of attachment and staging, and what is done or waited for; or why they are unknown.
    pub state: String,
}

impl InUse {
    /// Whether an allocation has a claim. Without one, what remains is being undone.
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
