//! Makes the calls of orders.

use std::sync::Arc;

use super::calls::{Admitted, text};
use super::{Failure, GrowArgs, OrderCall, OrderResult, VolumeSpec};
use crate::csi::{
    Code, ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, CreateSnapshotRequest,
    DeleteSnapshotRequest, DeleteVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotRequest,
    NodeExpandVolumeRequest,
};

/// The plugin may list no snapshots, so that it alone knows of their groups (C104).
const OF_A_GROUP: &str =
    "; if it belongs to a group of snapshots, delete that group instead, with all of its snapshots";
/// The same ids would be refused again (C108).
const OTHER_IDS: &str = "; the group may have other snapshots than were named: look at the list of the plugin, and name exactly those";

impl Admitted {
    pub(super) async fn order(self, spec: &VolumeSpec, call: OrderCall) -> Result<OrderResult, Failure> {
        let (volume_id, secrets) = (spec.volume_id.clone(), self.secrets.clone());
        match call {
            OrderCall::Expand { range: capacity_range, capability: volume_capability } => {
                let request =
                    ControllerExpandVolumeRequest { volume_id, capacity_range, secrets, volume_capability };
                let answer = self.send(&request).await?;
                let (capacity_bytes, is_node_next) = (answer.capacity_bytes, answer.node_expansion_required);
                Ok(OrderResult::Expanded { capacity_bytes, is_node_next })
            }
            OrderCall::TakeSnapshot { name, parameters, .. } => {
                let request =
                    CreateSnapshotRequest { source_volume_id: volume_id, name, secrets, parameters };
                Ok(OrderResult::Snapshot(Arc::new(self.send(&request).await?)))
            }
            OrderCall::DeleteSnapshot { snapshot_id } => {
                let has_groups = self.check_alone(spec, &snapshot_id).await?;
                let deleted = self.try_send(&DeleteSnapshotRequest { snapshot_id, secrets }).await;
                deleted.map_err(|failed| hinted(failed, if has_groups { OF_A_GROUP } else { "" }))?;
                Ok(OrderResult::Nothing)
            }
            OrderCall::TakeGroup(group) => {
                Ok(OrderResult::Group(Arc::new(self.send(&group.request(secrets)).await?)))
            }
            OrderCall::DescribeGroup { group_snapshot_id, snapshot_ids } => {
                let request = GetVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets };
                let told = self.try_send(&request).await.map_err(|failed| hinted(failed, OTHER_IDS))?;
                Ok(OrderResult::Group(Arc::new(told)))
            }
            OrderCall::DeleteGroup { group_snapshot_id, snapshot_ids } => {
                let request = DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets };
                self.try_send(&request).await.map_err(|failed| hinted(failed, OTHER_IDS))?;
                Ok(OrderResult::Nothing)
            }
            OrderCall::Modify { parameters: mutable_parameters } => {
                self.send(&ControllerModifyVolumeRequest { volume_id, secrets, mutable_parameters }).await?;
                Ok(OrderResult::Nothing)
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
                Ok(OrderResult::Grown { capacity_bytes })
            }
        }
    }
}

/// The result of a failed call, with a hint if it is refused as invalid.
fn hinted((code, failure): (Option<Code>, Failure), hint: &str) -> Failure {
    let Failure { known, reason } = failure;
    match code {
        Some(Code::InvalidArgument) => Failure { known, reason: format!("{reason}{hint}") },
        _ => Failure { known, reason },
    }
}
