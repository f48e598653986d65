//! The answers of a scripted plugin about groups of snapshots.

use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::group_controller_server::GroupController;

use super::acting::answered;
use super::plugin::Plugin;
use super::storage::{Storage, Taken};

#[tonic::async_trait]
impl GroupController for Plugin {
    async fn group_controller_get_capabilities(
        &self,
        request: Request<wire::GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::GroupControllerGetCapabilitiesResponse>, Status> {
        use wire::group_controller_service_capability::{Rpc, Type, rpc};
        let act = self.play("GroupControllerGetCapabilities", &request).await?;
        let rpc = Rpc { r#type: rpc::Type::CreateDeleteGetVolumeGroupSnapshot.into() };
        let capabilities = vec![wire::GroupControllerServiceCapability { r#type: Some(Type::Rpc(rpc)) }];
        answered(act, wire::GroupControllerGetCapabilitiesResponse { capabilities })
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<wire::CreateVolumeGroupSnapshotRequest>,
    ) -> Result<Response<wire::CreateVolumeGroupSnapshotResponse>, Status> {
        let wire::CreateVolumeGroupSnapshotRequest { name, source_volume_ids, .. } = request.into_inner();
        let take = move |storage: &Storage| storage.take_group(&name, source_volume_ids);
        let taken = self.change("CreateVolumeGroupSnapshot", take).await?;
        let group_snapshot = taken.first().map(|first| wire::VolumeGroupSnapshot {
            group_snapshot_id: first.group.clone(),
            snapshots: taken.iter().map(snapshot).collect(),
            creation_time: None,
            ready_to_use: true,
        });
        Ok(Response::new(wire::CreateVolumeGroupSnapshotResponse { group_snapshot }))
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<wire::DeleteVolumeGroupSnapshotRequest>,
    ) -> Result<Response<wire::DeleteVolumeGroupSnapshotResponse>, Status> {
        let ids = request.into_inner().snapshot_ids;
        self.change("DeleteVolumeGroupSnapshot", move |storage| storage.delete_snapshots(&ids)).await?;
        Ok(Response::new(wire::DeleteVolumeGroupSnapshotResponse {}))
    }
}

/// A snapshot as a plugin reports it.
pub(super) fn snapshot(taken: &Taken) -> wire::Snapshot {
    wire::Snapshot {
        size_bytes: 0,
        snapshot_id: taken.id.clone(),
        source_volume_id: taken.source.clone(),
        creation_time: None,
        ready_to_use: true,
        group_snapshot_id: taken.group.clone(),
    }
}
