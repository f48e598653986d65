//! What only reads: it goes to the plugin by its present route, leaves nothing in any ledger, and is bounded in time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::reasons::{TooManyCallers, UnknownVolume};
use crate::csi::{FailedCall, Reaction, VolumeCondition, VolumeUsage};
use crate::vocabulary::{Generation, PluginName};
use crate::volume::{VolumeKey, VolumeSpec};

/// Asks how full a volume is where it is published on this node, and in what condition its plugin sees it. It changes nothing. It takes the
/// turn of the volume, as every call does, for ten seconds at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeStats {
    /// The volume.
    pub volume: VolumeKey,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// How full a volume is, and its condition. What a plugin does not offer is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct VolumeStatistics {
    /// Where it is published, which the figures are of; `None` if it is not, or the plugin does not tell any.
    pub path: Option<PathBuf>,
    /// How full it is, one entry for each unit.
    pub usage: Vec<VolumeUsage>,
    /// Its condition as the node half of the plugin sees it.
    pub on_node: Option<VolumeCondition>,
    /// Its condition as the controller sees it.
    pub at_controller: Option<VolumeCondition>,
}

/// Where a volume is on this node (C144).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Published {
    /// The target path of a claim.
    pub path: PathBuf,
    /// The staging path; `None` if the plugin does not stage.
    pub staged_at: Option<PathBuf>,
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Read {
    /// How full a volume is, and its condition.
    Stats {
        /// The volume.
        spec: Arc<VolumeSpec>,
        /// Where it is published, and the generation of the node half; `None` if nothing is asked there.
        node: Option<(Generation, Published)>,
        /// The generation of the controller half; `None` if nothing is asked there.
        controller: Option<Generation>,
    },
}

impl Read {
    /// The plugin that is asked.
    #[must_use]
    pub fn plugin(&self) -> &PluginName {
        match self {
            Self::Stats { spec, .. } => &spec.plugin,
        }
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// How full a volume is, and its condition.
    Stats(VolumeStatistics),
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReadError {
    /// The volume is not known.
    #[error("{0}; register or create it first")]
    Unknown(#[from] UnknownVolume),
    /// There is nothing to ask.
    #[error("volume {volume} has no statistics now: {reason}")]
    Nothing {
        /// The volume.
        volume: VolumeKey,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// Too many callers wait.
    #[error(transparent)]
    TooManyCallers(#[from] TooManyCallers),
    /// The plugin did not answer in time.
    #[error("plugin {plugin} did not answer in time; try again later, or wait longer")]
    Overdue {
        /// The plugin.
        plugin: PluginName,
    },
    /// The plugin does not have the call.
    #[error("plugin {plugin} cannot tell that: {reason}")]
    Unsupported {
        /// The plugin.
        plugin: PluginName,
        /// What it lacks.
        reason: String,
    },
    /// The plugin refused it, or could not be asked.
    #[error("plugin {plugin} was asked in vain: {reason}")]
    Failed {
        /// The plugin.
        plugin: PluginName,
        /// Why.
        reason: String,
        /// Whether the same question may be answered later.
        is_transient: bool,
    },
    /// The host stops.
    #[error("plugin {plugin} is not asked any more, since the host stops")]
    Stopping {
        /// The plugin.
        plugin: PluginName,
    },
}

impl ReadError {
    /// What a call that failed means for its caller.
    #[must_use]
    pub fn of(plugin: &PluginName, failed: &FailedCall) -> Self {
        let (plugin, reason) = (plugin.clone(), failed.to_string());
        match failed.outcome().reaction {
            Reaction::GiveUp => Self::Unsupported { plugin, reason },
            reaction => Self::Failed { plugin, reason, is_transient: reaction.is_retry() },
        }
    }

    /// Whether the same question may be answered later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::TooManyCallers(_) | Self::Overdue { .. } | Self::Stopping { .. } => true,
            Self::Failed { is_transient, .. } => *is_transient,
            Self::Unknown(_) | Self::Nothing { .. } | Self::Unsupported { .. } => false,
        }
    }
}
