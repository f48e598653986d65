//! An order as the ledger stores it: a change of a volume at its plugin that is not a step of a claim and has no inverse.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::group::GroupOrder;
use super::record::Step;
use crate::csi::{
    Call, CapacityRange, ControllerModifyVolumeRequest, CreateSnapshotRequest, DeleteSnapshotRequest,
    DeleteVolumeGroupSnapshotRequest, Fault, Request, Secrets, Snapshot, VolumeCapability,
    VolumeGroupSnapshot,
};
use crate::vocabulary::text;

/// The requested change. Repeating the order asks for its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Order {
    /// Make it larger, at its storage and on this node (C109 to C113, C149 to C153).
    Expand {
        /// The requested size.
        range: CapacityRange,
    },
    /// Take a snapshot of the volume (C100).
    TakeSnapshot {
        /// The name that the plugin receives, the same in every try (C050).
        name: String,
        /// Parameters of the plugin.
        parameters: BTreeMap<String, String>,
    },
    /// Delete a snapshot, usually of this volume.
    DeleteSnapshot {
        /// The id of the snapshot with the plugin.
        snapshot_id: String,
    },
    /// Change parameters of it (C096).
    Modify {
        /// The parameters to change, and no others.
        parameters: BTreeMap<String, String>,
    },
    /// Take snapshots of it and of other volumes at one point in time (C107).
    TakeGroup(Arc<GroupOrder>),
    /// Delete a group of snapshots, usually of this volume.
    DeleteGroup {
        /// The id of the group with the plugin.
        group_snapshot_id: String,
        /// The ids of all of its snapshots (C106).
        snapshot_ids: BTreeSet<String>,
    },
}

impl Order {
    /// The call to the controller.
    pub(super) const fn call(&self) -> Call {
        match self {
            Self::Expand { .. } => Call::ControllerExpandVolume,
            Self::TakeSnapshot { .. } => Call::CreateSnapshot,
            Self::DeleteSnapshot { .. } => Call::DeleteSnapshot,
            Self::Modify { .. } => Call::ControllerModifyVolume,
            Self::TakeGroup(_) => Call::CreateVolumeGroupSnapshot,
            Self::DeleteGroup { .. } => Call::DeleteVolumeGroupSnapshot,
        }
    }

    /// Whether another order asks for the result of this one: it is the same, or the deletion of the same group without the ids of its
    /// snapshots, which no caller can know after some of them are deleted.
    pub(super) fn is_asked_for_by(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::DeleteGroup { group_snapshot_id: own, .. },
                Self::DeleteGroup { group_snapshot_id, snapshot_ids },
            ) if snapshot_ids.is_empty() => own == group_snapshot_id,
            _ => self == other,
        }
    }

    /// The name of the snapshot that it takes, if it takes one.
    #[must_use]
    pub const fn snapshot_name(&self) -> Option<&str> {
        match self {
            Self::TakeSnapshot { name, .. } => Some(name.as_str()),
            Self::Expand { .. }
            | Self::DeleteSnapshot { .. }
            | Self::Modify { .. }
            | Self::TakeGroup(_)
            | Self::DeleteGroup { .. } => None,
        }
    }

    /// The capability that the order needs, by its name in the specification.
    pub(super) const fn needed(&self) -> &'static str {
        match self {
            Self::Expand { .. } => "EXPAND_VOLUME",
            Self::TakeSnapshot { .. } | Self::DeleteSnapshot { .. } => "CREATE_DELETE_SNAPSHOT",
            Self::Modify { .. } => "MODIFY_VOLUME",
            Self::TakeGroup(_) | Self::DeleteGroup { .. } => "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT",
        }
    }

    /// Checks the request to the plugin by itself.
    pub(super) fn check(&self, volume_id: &str) -> Result<(), Fault> {
        let secrets = Secrets::none;
        match self.clone() {
            Self::Expand { range } => range.check(),
            Self::TakeSnapshot { name, parameters } => {
                let source_volume_id = volume_id.to_owned();
                CreateSnapshotRequest { source_volume_id, name, secrets: secrets(), parameters }.check()
            }
            Self::DeleteSnapshot { snapshot_id } => {
                DeleteSnapshotRequest { snapshot_id, secrets: secrets() }.check()
            }
            Self::Modify { parameters: mutable_parameters } => {
                let volume_id = volume_id.to_owned();
                ControllerModifyVolumeRequest { volume_id, secrets: secrets(), mutable_parameters }.check()
            }
            Self::TakeGroup(group) => group.check(),
            Self::DeleteGroup { group_snapshot_id, snapshot_ids } => {
                let snapshot_ids = snapshot_ids.into_iter().collect();
                DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets: secrets() }
                    .check()
            }
        }
    }

    /// Whether the two orders cannot both be under way: one waits for the other, or takes its place.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Expand { .. }, Self::Expand { .. }) | (Self::Modify { .. }, Self::Modify { .. }) => true,
            (Self::TakeSnapshot { name, .. }, Self::TakeSnapshot { name: other, .. }) => name == other,
            (Self::TakeGroup(group), Self::TakeGroup(other)) => group.name == other.name,
            (
                Self::DeleteGroup { group_snapshot_id, .. },
                Self::DeleteGroup { group_snapshot_id: other, .. },
            ) => group_snapshot_id == other,
            (
                Self::Expand { .. }
                | Self::TakeSnapshot { .. }
                | Self::DeleteSnapshot { .. }
                | Self::Modify { .. }
                | Self::TakeGroup(_)
                | Self::DeleteGroup { .. },
                _,
            ) => false,
        }
    }
}

/// The order, as the beginning of a sentence.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expand { range: CapacityRange { required_bytes, limit_bytes: 0 } } => {
                write!(f, "expand to {required_bytes} bytes")
            }
            Self::Expand { range: CapacityRange { required_bytes, limit_bytes } } => {
                write!(f, "expand to {required_bytes} bytes, at most {limit_bytes}")
            }
            Self::TakeSnapshot { name, .. } => write!(f, "take snapshot {}", text::escaped(name)),
            Self::DeleteSnapshot { snapshot_id } => {
                write!(f, "delete snapshot {}", text::escaped(snapshot_id))
            }
            // The values may be confidential to an operator.
            Self::Modify { parameters } => {
                let keys: Vec<_> = parameters.keys().map(|key| text::escaped(key)).collect();
                write!(f, "modify {}", keys.join(", "))
            }
            Self::TakeGroup(group) => write!(f, "take {group}"),
            Self::DeleteGroup { group_snapshot_id, .. } => {
                write!(f, "delete group of snapshots {}", text::escaped(group_snapshot_id))
            }
        }
    }
}

/// The arguments of `NodeExpandVolume`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrowArgs {
    /// The path where it is published.
    pub volume_path: PathBuf,
    /// The path where it is staged; `None` for a plugin that does not stage (C151).
    pub staging_path: Option<PathBuf>,
    /// The requested size.
    pub range: CapacityRange,
    /// The usage with which it was published.
    pub capability: VolumeCapability,
}

/// The row of an order. It is on disk from before its first call until its outcome is certain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderRecord {
    /// Its position among the orders of the volume.
    pub number: u64,
    /// The id of the volume with its plugin. An order with another id is of an earlier volume of the same name.
    pub volume_id: String,
    /// The order.
    pub order: Order,
    /// The usage of the volume, where the call contains it (C112).
    pub capability: Option<VolumeCapability>,
    /// The call to the controller. After the controller has answered an expansion, this has the size of the storage, and the node is next
    /// (C111).
    pub at_controller: Step<(), u64>,
    /// The call to the node, for an expansion.
    pub on_node: Step<GrowArgs, ()>,
}

impl OrderRecord {
    /// The progress of the order, as a word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match (&self.at_controller, &self.on_node) {
            (_, Step::GoingUp(_)) => "going-up-on-node",
            (_, Step::Unknown(..)) => "unknown-on-node",
            (Step::Up(..), _) => "up-at-controller",
            (at_controller, _) => at_controller.as_str(),
        }
    }

    /// The call to the controller, with its arguments.
    pub(super) fn at_controller_call(&self) -> OrderCall {
        match self.order.clone() {
            Order::Expand { range } => OrderCall::Expand { range, capability: self.capability.clone() },
            Order::TakeSnapshot { name, parameters } => {
                OrderCall::TakeSnapshot { name, parameters, taken: None }
            }
            Order::DeleteSnapshot { snapshot_id } => OrderCall::DeleteSnapshot { snapshot_id },
            Order::Modify { parameters } => OrderCall::Modify { parameters },
            Order::TakeGroup(group) => OrderCall::TakeGroup(group),
            Order::DeleteGroup { group_snapshot_id, snapshot_ids } => {
                let snapshot_ids = snapshot_ids.into_iter().collect();
                OrderCall::DeleteGroup { group_snapshot_id, snapshot_ids }
            }
        }
    }

    /// The state after a restart (V4).
    pub(super) fn restored(self) -> Self {
        Self { at_controller: self.at_controller.restored(), on_node: self.on_node.restored(), ..self }
    }
}

/// The CSI call of an order, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderCall {
    /// `ControllerExpandVolume`.
    Expand {
        /// The requested size.
        range: CapacityRange,
        /// How it is used.
        capability: Option<VolumeCapability>,
    },
    /// `NodeExpandVolume`.
    Grow(GrowArgs),
    /// `CreateSnapshot`.
    TakeSnapshot {
        /// The name, the same in every try.
        name: String,
        /// Parameters of the plugin.
        parameters: BTreeMap<String, String>,
        /// The id of the snapshot, once the plugin has answered it: no other call on that id is in flight beside this one (C002).
        taken: Option<Arc<str>>,
    },
    /// `DeleteSnapshot`.
    DeleteSnapshot {
        /// The id of the snapshot.
        snapshot_id: String,
    },
    /// `ControllerModifyVolume`.
    Modify {
        /// The parameters to change.
        parameters: BTreeMap<String, String>,
    },
    /// `CreateVolumeGroupSnapshot`.
    TakeGroup(Arc<GroupOrder>),
    /// `GetVolumeGroupSnapshot`, for a group that is taken and not ready yet (C107).
    DescribeGroup {
        /// The id of the group.
        group_snapshot_id: String,
        /// The ids of all of its snapshots (C106).
        snapshot_ids: Vec<String>,
    },
    /// `DeleteVolumeGroupSnapshot`.
    DeleteGroup {
        /// The id of the group.
        group_snapshot_id: String,
        /// The ids of all of its snapshots (C106).
        snapshot_ids: Vec<String>,
    },
}

impl OrderCall {
    /// The same call, for a snapshot that has this id already.
    pub(super) fn of_taken(self, id: &Arc<str>) -> Self {
        match self {
            Self::TakeSnapshot { name, parameters, .. } => {
                Self::TakeSnapshot { name, parameters, taken: Some(Arc::clone(id)) }
            }
            other => other,
        }
    }

    /// The call.
    #[must_use]
    pub const fn csi(&self) -> Call {
        match self {
            Self::Expand { .. } => Call::ControllerExpandVolume,
            Self::Grow(_) => Call::NodeExpandVolume,
            Self::TakeSnapshot { .. } => Call::CreateSnapshot,
            Self::DeleteSnapshot { .. } => Call::DeleteSnapshot,
            Self::Modify { .. } => Call::ControllerModifyVolume,
            Self::TakeGroup(_) => Call::CreateVolumeGroupSnapshot,
            Self::DescribeGroup { .. } => Call::GetVolumeGroupSnapshot,
            Self::DeleteGroup { .. } => Call::DeleteVolumeGroupSnapshot,
        }
    }
}

/// The result of the call of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderResult {
    /// The storage is this large.
    Expanded {
        /// Its size; zero if the plugin did not report it.
        capacity_bytes: u64,
        /// Whether `NodeExpandVolume` has to follow (C111).
        is_node_next: bool,
    },
    /// The snapshot, as the plugin reports it.
    Snapshot(Arc<Snapshot>),
    /// The group of snapshots, as the plugin reports it.
    Group(Arc<VolumeGroupSnapshot>),
    /// It is done, without further data.
    Nothing,
    /// It has grown on this node.
    Grown {
        /// Its size; zero if the plugin did not report it.
        capacity_bytes: u64,
    },
}
