//! What only reads: it goes to the plugin by its present route, leaves nothing in any ledger, and is bounded in time.

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

/// Asks how full a volume is where it is published on this node, and in what condition its plugin sees it. It changes nothing. It takes the
/// turn of the volume, as every call does, for ten seconds at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VolumeStats {
    /// The volume.
    pub volume: VolumeKey,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// One page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Page {
    /// The most entries of the page; zero leaves it to the plugin (C091).
    pub max_entries: u32,
    /// The token of the page, from the answer before, which was to the same question; empty for the first page.
    pub token: String,
}

/// Lists the snapshots that a plugin has, page by page. Pages are no consistent view: doubles and gaps are possible (C092).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListSnapshots {
    /// The plugin.
    pub plugin: PluginName,
    /// Only those of this volume, which has to be known and of this plugin; `None` for all.
    pub volume: Option<VolumeKey>,
    /// Only the one with this id with the plugin; empty for all.
    pub snapshot_id: String,
    /// Which page.
    pub page: Page,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// Describes a group of snapshots with all of them. Without their ids, these are looked up in the list of the plugin, where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DescribeGroupSnapshot {
    /// The first of its volumes by key, whose secrets it was taken with (C106), or another one of its plugin if that is gone.
    pub volume: VolumeKey,
    /// The id of the group with the plugin.
    pub group_snapshot_id: String,
    /// The ids of all of its snapshots, if they are known; otherwise empty.
    pub snapshot_ids: BTreeSet<String>,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// Lists the volumes that a plugin has, known here or not, page by page. Pages are no consistent view (C092).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListVolumesOfPlugin {
    /// The plugin.
    pub plugin: PluginName,
    /// Which page.
    pub page: Page,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// Asks a plugin how much room it has for new volumes (C097, C098).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GetCapacity {
    /// The plugin.
    pub plugin: PluginName,
    /// For volumes that can be used in these ways; empty for any.
    pub capabilities: Vec<VolumeCapability>,
    /// For volumes with these parameters.
    pub parameters: BTreeMap<String, String>,
    /// For volumes that are accessible from there.
    pub topology: Option<Topology>,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// Asks a plugin whether a known volume can be used in these ways (C090). It takes the turn of the volume for ten seconds at most.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ValidateVolume {
    /// The volume.
    pub volume: VolumeKey,
    /// In which ways; at least one. Modes are replaced as for a claim (C154).
    pub capabilities: Vec<VolumeCapability>,
    /// The parameters that it was created with; empty if they are not to be checked.
    pub parameters: BTreeMap<String, String>,
    /// How long to wait for the answer.
    pub within: Duration,
}

/// What a plugin has confirmed of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Validated {
    /// The fields of the request that it has not confirmed; if there are none, the volume can be used so.
    pub unconfirmed: Vec<&'static str>,
    /// Why not. Text of the plugin.
    pub message: String,
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
    /// The volumes that a plugin has.
    Volumes {
        /// The generation of the controller half.
        generation: Generation,
        /// What was asked.
        asked: ListVolumesOfPlugin,
    },
    /// How much room a plugin has.
    Capacity {
        /// The generation of the controller half.
        generation: Generation,
        /// What was asked.
        asked: GetCapacity,
    },
    /// Whether a volume can be used so.
    Validate {
        /// The volume.
        spec: Arc<VolumeSpec>,
        /// The generation of the controller half.
        generation: Generation,
        /// What was asked.
        asked: ValidateVolume,
    },
    /// A group of snapshots.
    Group {
        /// The volume with the secrets of the group.
        spec: Arc<VolumeSpec>,
        /// The generation of the controller half.
        generation: Generation,
        /// What was asked.
        asked: DescribeGroupSnapshot,
    },
    /// The snapshots that a plugin has.
    Snapshots {
        /// The plugin.
        plugin: PluginName,
        /// The generation of its controller half.
        generation: Generation,
        /// Only those of this volume.
        of: Option<Arc<VolumeSpec>>,
        /// Only this one; empty for all.
        snapshot_id: String,
        /// Which page.
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

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// How full a volume is, and its condition.
    Stats(VolumeStatistics),
    /// A page of volumes.
    Volumes(ListVolumesResponse),
    /// How much room there is.
    Capacity(GetCapacityResponse),
    /// What is confirmed of a volume.
    Validated(Validated),
    /// A page of snapshots.
    Snapshots(ListSnapshotsResponse),
    /// A group of snapshots.
    Group(VolumeGroupSnapshot),
}

/// Why nothing was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReadError {
    /// The volume is not known.
    #[error("{0}; create it first, or register it by a `[[volume]]` of the configuration")]
    Unknown(#[from] UnknownVolume),
    /// There is nothing to ask.
    #[error("volume {volume} has no statistics now: {reason}")]
    Nothing {
        /// The volume.
        volume: VolumeKey,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// The volume is one of another plugin.
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
    /// The token of the page is of another list, or the plugin does not know it.
    #[error(
        "the token does not belong to this list of plugin {plugin}; start the list again without a token: {reason}"
    )]
    OtherList {
        /// The plugin.
        plugin: PluginName,
        /// What it said.
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
        /// What it lacks.
        reason: String,
    },
    /// The plugin refused it, or could not be asked.
    #[error("the request to plugin {plugin} failed: {reason}")]
    Failed {
        /// The plugin.
        plugin: PluginName,
        /// Why.
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
    /// What a call that failed means for its caller.
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

    /// What it means if no token was sent: another call is pending at the plugin.
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
