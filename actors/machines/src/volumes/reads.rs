//! Questions that only read: each goes to the plugin by its present route, leaves nothing in any ledger, and is bounded in time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::reasons::{TooManyCallers, UnknownVolume};
use crate::csi::{
    FailedCall, GetCapacityResponse, ListSnapshotsResponse, ListVolumesResponse, Reaction, VolumeCapability,
    VolumeCondition, VolumeGroupSnapshot, VolumeUsage,
};
use crate::vocabulary::text::escaped;
use crate::vocabulary::{Generation, PluginName, Topology};
use crate::volume::{VolumeKey, VolumeSpec};

/// Asks for the statistics of a volume where it is published on this node, and for its condition as its plugin sees it. It changes nothing.
/// It takes the turn of the volume, as every call does, for ten seconds at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeStats {
    /// The volume.
    pub volume: VolumeKey,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// One page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Page {
    /// The most entries of the page; zero leaves it to the plugin (C091).
    pub max_entries: u32,
    /// The token of the page, from the previous answer to the same question; empty for the first page.
    pub token: String,
}

/// Lists the snapshots that a plugin has, page by page. Pages are not a consistent view: doubles and gaps are possible (C092).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListSnapshots {
    /// The plugin.
    pub plugin: PluginName,
    /// Only those of this volume, which has to be known and of this plugin; `None` for all.
    pub volume: Option<VolumeKey>,
    /// Only the one with this id with the plugin; empty for all.
    pub snapshot_id: String,
    /// The page.
    pub page: Page,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Describes a group of snapshots with all of them. Without their ids, they are looked up in the plugin's list, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DescribeGroupSnapshot {
    /// The first of its volumes by key, with whose secrets it was taken (C106), or another volume of its plugin if that is gone.
    pub volume: VolumeKey,
    /// The id of the group with the plugin.
    pub group_snapshot_id: String,
    /// The ids of all of its snapshots, if they are known; otherwise empty.
    pub snapshot_ids: BTreeSet<String>,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Lists the volumes that a plugin has, known here or not, page by page. Pages are not a consistent view (C092).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListVolumesOfPlugin {
    /// The plugin.
    pub plugin: PluginName,
    /// The page.
    pub page: Page,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Asks a plugin for its free capacity for new volumes (C097, C098).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GetCapacity {
    /// The plugin.
    pub plugin: PluginName,
    /// For volumes that can be used in these ways; empty for any.
    pub capabilities: Vec<VolumeCapability>,
    /// For volumes with these parameters.
    pub parameters: BTreeMap<String, String>,
    /// For volumes that are accessible from this topology.
    pub topology: Option<Topology>,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// Asks a plugin whether a known volume can be used in these ways (C090). It takes the turn of the volume for ten seconds at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ValidateVolume {
    /// The volume.
    pub volume: VolumeKey,
    /// The ways; at least one. Modes are replaced as for a claim (C154).
    pub capabilities: Vec<VolumeCapability>,
    /// The parameters that it was created with; empty if they are not to be checked.
    pub parameters: BTreeMap<String, String>,
    /// The time to wait for the answer.
    pub within: Duration,
}

/// The result of the validation of a volume by its plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Validated {
    /// The fields of the request that it has not confirmed; if empty, the volume can be used so.
    pub unconfirmed: Vec<&'static str>,
    /// The reason. Text of the plugin.
    pub message: String,
}

/// The statistics and the condition of a volume. Data that a plugin does not offer are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct VolumeStatistics {
    /// The path where it is published, to which the figures refer; `None` if it is not published, or the plugin has no figures.
    pub path: Option<PathBuf>,
    /// The used and free capacity, one entry for each unit.
    pub usage: Vec<VolumeUsage>,
    /// Its condition as the node half of the plugin sees it.
    pub on_node: Option<VolumeCondition>,
    /// Its condition as the controller sees it.
    pub at_controller: Option<VolumeCondition>,
}

/// The paths of a volume on this node (C144).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Published {
    /// The target path of a claim.
    pub path: PathBuf,
    /// The staging path; `None` if the plugin does not stage.
    pub staged_at: Option<PathBuf>,
}

/// A question that reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Read {
    /// The statistics and the condition of a volume.
    Stats {
        /// The volume.
        spec: Arc<VolumeSpec>,
        /// The paths where it is published, and the generation of the node half; `None` if the node is not asked.
        node: Option<(Generation, Published)>,
        /// The generation of the controller half; `None` if the controller is not asked.
        controller: Option<Generation>,
    },
    /// The volumes of a plugin.
    Volumes {
        /// The generation of the controller half.
        generation: Generation,
        /// The question.
        asked: ListVolumesOfPlugin,
    },
    /// The free capacity of a plugin.
    Capacity {
        /// The generation of the controller half.
        generation: Generation,
        /// The question.
        asked: GetCapacity,
    },
    /// Whether a volume can be used so.
    Validate {
        /// The volume.
        spec: Arc<VolumeSpec>,
        /// The generation of the controller half.
        generation: Generation,
        /// The question.
        asked: ValidateVolume,
    },
    /// A group of snapshots.
    Group {
        /// The volume with the secrets of the group.
        spec: Arc<VolumeSpec>,
        /// The generation of the controller half.
        generation: Generation,
        /// The question.
        asked: DescribeGroupSnapshot,
    },
    /// The snapshots of a plugin.
    Snapshots {
        /// The plugin.
        plugin: PluginName,
        /// The generation of its controller half.
        generation: Generation,
        /// Only the snapshots of this volume.
        of: Option<Arc<VolumeSpec>>,
        /// Only this snapshot; empty for all.
        snapshot_id: String,
        /// The page.
        page: Page,
    },
}

impl Read {
    /// The plugin that is asked.
    #[must_use]
    pub fn plugin(&self) -> &PluginName {
        match self {
            Self::Stats { spec, .. } | Self::Validate { spec, .. } | Self::Group { spec, .. } => &spec.plugin,
            Self::Volumes { asked, .. } => &asked.plugin,
            Self::Capacity { asked, .. } => &asked.plugin,
            Self::Snapshots { plugin, .. } => plugin,
        }
    }
}

/// The result of a question that reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// The statistics and the condition of a volume.
    Stats(VolumeStatistics),
    /// A page of volumes.
    Volumes(ListVolumesResponse),
    /// The free capacity.
    Capacity(GetCapacityResponse),
    /// The result of a validation.
    Validated(Validated),
    /// A page of snapshots.
    Snapshots(ListSnapshotsResponse),
    /// A group of snapshots.
    Group(VolumeGroupSnapshot),
}

/// The reason that nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReadError {
    /// The volume is not known.
    #[error("{0}; create it first, or register it by a `[[volume]]` of the configuration")]
    Unknown(#[from] UnknownVolume),
    /// There is no source to ask.
    #[error("volume {volume} has no statistics now: {reason}")]
    Nothing {
        /// The volume.
        volume: VolumeKey,
        /// The reason, and what to do.
        reason: &'static str,
    },
    /// The volume belongs to another plugin.
    #[error("volume {volume} is one of plugin {plugin}; ask that plugin")]
    OtherPlugin {
        /// The volume.
        volume: VolumeKey,
        /// Its plugin.
        plugin: PluginName,
    },
    /// The plugin has no healthy controller here.
    #[error("plugin {plugin} has no healthy controller instance here; try again when it has")]
    NoController {
        /// The plugin.
        plugin: PluginName,
    },
    /// The token of the page belongs to another list, or the plugin does not know it.
    #[error(
        "the token does not belong to this list of plugin {plugin}; start the list again without a token: {reason}"
    )]
    OtherList {
        /// The plugin.
        plugin: PluginName,
        /// The answer of the plugin.
        reason: String,
    },
    /// The list of the plugin has no snapshot of that group.
    #[error(
        "plugin {plugin} lists no snapshot of a group {}; list its snapshots, or name those of the group",
        escaped(group_snapshot_id)
    )]
    NoGroup {
        /// The plugin.
        plugin: PluginName,
        /// The group.
        group_snapshot_id: String,
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
    #[error("plugin {plugin} does not support this request: {reason}")]
    Unsupported {
        /// The plugin.
        plugin: PluginName,
        /// The missing capability.
        reason: String,
    },
    /// The plugin refused it, or could not be asked.
    #[error("the request to plugin {plugin} failed: {reason}")]
    Failed {
        /// The plugin.
        plugin: PluginName,
        /// The reason.
        reason: String,
        /// Whether the same question may be answered later.
        is_transient: bool,
    },
    /// The host stops.
    #[error("cannot query plugin {plugin}: the host is stopping")]
    Stopping {
        /// The plugin.
        plugin: PluginName,
    },
}

impl ReadError {
    /// The meaning of a failed call for its caller.
    #[must_use]
    pub fn of(plugin: &PluginName, failed: &FailedCall) -> Self {
        let (plugin, reason) = (plugin.clone(), failed.reason());
        match failed.outcome().reaction {
            Reaction::RestartList => Self::OtherList { plugin, reason },
            Reaction::GiveUp => Self::Unsupported { plugin, reason },
            // As [`Self::Stopping`].
            Reaction::NextRun => Self::Failed { plugin, reason, is_transient: true },
            reaction => Self::Failed { plugin, reason, is_transient: reaction.is_retry() },
        }
    }

    /// The meaning if no token was sent: another call is pending at the plugin.
    #[must_use]
    pub fn without_token(self) -> Self {
        match self {
            Self::OtherList { plugin, reason } => Self::Failed { plugin, reason, is_transient: true },
            other => other,
        }
    }

    /// Whether the same question may be answered later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::TooManyCallers(_)
            | Self::Overdue { .. }
            | Self::Stopping { .. }
            | Self::NoController { .. } => true,
            Self::Failed { is_transient, .. } => *is_transient,
            Self::Unknown(_)
            | Self::Nothing { .. }
            | Self::OtherPlugin { .. }
            | Self::NoGroup { .. }
            | Self::OtherList { .. }
            | Self::Unsupported { .. } => false,
        }
    }
}
