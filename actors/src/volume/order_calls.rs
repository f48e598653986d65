//! The calls of orders.

use std::sync::Arc;

use super::calls::{Admitted, text};
use super::{Brought, Failure, GrowArgs, Known, OrderCall, VolumeSpec};
use crate::csi::{
    ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, CreateSnapshotRequest,
    DeleteSnapshotRequest, ListSnapshotsRequest, NodeExpandVolumeRequest, Snapshot,
};
use crate::vocabulary::text::escaped;

impl Admitted {
    pub(super) async fn order(self, spec: &VolumeSpec, call: OrderCall) -> Result<Brought, Failure> {
        let (volume_id, secrets) = (spec.volume_id.clone(), self.secrets.clone());
        match call {
            OrderCall::Expand { range: capacity_range, capability: volume_capability } => {
                let request =
                    ControllerExpandVolumeRequest { volume_id, capacity_range, secrets, volume_capability };
                let answer = self.send(&request).await?;
                let (capacity_bytes, is_node_next) = (answer.capacity_bytes, answer.node_expansion_required);
                Ok(Brought::Expanded { capacity_bytes, is_node_next })
            }
            OrderCall::TakeSnapshot { name, parameters } => {
                let request =
                    CreateSnapshotRequest { source_volume_id: volume_id, name, secrets, parameters };
                Ok(Brought::Snapshot(Arc::new(self.send(&request).await?)))
            }
            OrderCall::DeleteSnapshot { snapshot_id } => {
                self.check_group_of(&snapshot_id).await?;
                self.send(&DeleteSnapshotRequest { snapshot_id, secrets }).await?;
                Ok(Brought::Nothing)
            }
            OrderCall::Modify { parameters: mutable_parameters } => {
                self.send(&ControllerModifyVolumeRequest { volume_id, secrets, mutable_parameters }).await?;
                Ok(Brought::Nothing)
            }
            OrderCall::Grow(args) => {
                let GrowArgs { volume_path, staging_path, range, capability } = args;
                let request = NodeExpandVolumeRequest {
                    volume_id,
                    volume_path: text(&volume_path)?,
                    capacity_range: Some(range),
                    staging_target_path: staging_path.as_deref().map(text).transpose()?,
                    volume_capability: Some(capability),
                    secrets,
                };
                let capacity_bytes = self.send(&request).await?.capacity_bytes;
                Ok(Brought::Grown { capacity_bytes })
            }
        }
    }

    /// Refuses a snapshot of a group, which is deleted with its group alone (C103). A plugin that lists no snapshots refuses it itself
    /// (C104).
    async fn check_group_of(&self, snapshot_id: &str) -> Result<(), Failure> {
        let request = ListSnapshotsRequest {
            snapshot_id: snapshot_id.to_owned(),
            secrets: self.secrets.clone(),
            ..ListSnapshotsRequest::default()
        };
        let listed = match self.send(&request).await {
            Ok(listed) => listed,
            Err(Failure { known: Known::Unsupported | Known::Absent, .. }) => return Ok(()),
            Err(Failure { reason, .. }) => {
                let reason = format!("whether it belongs to a group of snapshots cannot be asked: {reason}");
                return Err(Failure { known: Known::NotNow, reason });
            }
        };
        let is_it = |snapshot: &&Snapshot| snapshot.snapshot_id == snapshot_id;
        match listed.entries.iter().find(is_it).map(|snapshot| snapshot.group_snapshot_id.as_str()) {
            None | Some("") => Ok(()),
            Some(group) => {
                let reason = format!(
                    "it belongs to the group of snapshots {}, and goes with it alone: delete the group",
                    escaped(group)
                );
                Err(Failure { known: Known::Refused, reason })
            }
        }
    }
}
