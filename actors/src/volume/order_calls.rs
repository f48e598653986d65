//! The calls of orders.

use std::sync::Arc;
use std::time::Duration;

use super::calls::{Admitted, text};
use super::{Brought, Failure, GrowArgs, Known, OrderCall, VolumeSpec};
use crate::csi::{
    Call, Code, ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, CreateSnapshotRequest,
    DeleteSnapshotRequest, ListSnapshotsRequest, ListSnapshotsResponse, NodeExpandVolumeRequest, Snapshot,
};
use crate::vocabulary::text::escaped;

/// How long the list of a plugin is waited for before one of its snapshots is deleted.
const LIST_WITHIN: Duration = Duration::from_secs(10);

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
                self.check_group_of(spec, &snapshot_id).await?;
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
    async fn check_group_of(&self, spec: &VolumeSpec, snapshot_id: &str) -> Result<(), Failure> {
        let listed = match self.listed(spec, snapshot_id).await? {
            Some(listed) => listed,
            None => return Ok(()),
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

    /// What the list of a plugin with groups has of this snapshot; `None` if it has no groups or does not list.
    async fn listed(
        &self,
        spec: &VolumeSpec,
        snapshot_id: &str,
    ) -> Result<Option<ListSnapshotsResponse>, Failure> {
        let (client, _permit) = self.client().await?;
        if client.lease().fingerprint().group_controller.is_none() {
            return Ok(None);
        }
        let unknown = |known, reason: String| {
            let reason = format!("whether it belongs to a group of snapshots cannot be asked: {reason}");
            Failure { known, reason }
        };
        let secrets = self.shared.secrets_of(&spec.key, Call::ListSnapshots).await;
        let secrets = secrets.map_err(|reason| unknown(Known::NotNow, reason))?;
        let snapshot_id = snapshot_id.to_owned();
        let request = ListSnapshotsRequest { snapshot_id, secrets, ..ListSnapshotsRequest::default() };
        let listed = client.call(&request, LIST_WITHIN.min(self.clock.for_the_call())).await;
        match listed.map_err(|failed| (failed.code(), Failure::from(&failed))) {
            Ok(listed) => Ok(Some(listed)),
            Err((Some(Code::NotFound), _) | (_, Failure { known: Known::Unsupported, .. })) => Ok(None),
            Err((_, Failure { known: Known::NotMade, reason })) => Err(unknown(Known::NotMade, reason)),
            Err((_, Failure { reason, .. })) => Err(unknown(Known::NotNow, reason)),
        }
    }
}
