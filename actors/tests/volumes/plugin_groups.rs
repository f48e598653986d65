//! The calls for groups of snapshots of a test's plugin.

use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::group_controller_server::GroupController;

use crate::plugin::Plugin;

#[tonic::async_trait]
impl GroupController for Plugin {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<wire::GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::GroupControllerGetCapabilitiesResponse>, Status> {
        use wire::group_controller_service_capability::{Rpc, Type, rpc};
        let rpc = Rpc { r#type: rpc::Type::CreateDeleteGetVolumeGroupSnapshot.into() };
        let capabilities = vec![wire::GroupControllerServiceCapability { r#type: Some(Type::Rpc(rpc)) }];
        Ok(Response::new(wire::GroupControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<wire::CreateVolumeGroupSnapshotRequest>,
    ) -> Result<Response<wire::CreateVolumeGroupSnapshotResponse>, Status> {
        let wire::CreateVolumeGroupSnapshotRequest { name, source_volume_ids, secrets, .. } =
            request.into_inner();
        let group_snapshot_id = format!("group {name}");
        let id_of = |source: &String| format!("{group_snapshot_id} of {source}");
        let taken: Vec<_> = source_volume_ids.iter().map(|source| (id_of(source), source.clone())).collect();
        let of_each = taken.clone();
        let effect = self.storing(move |storage| {
            of_each.into_iter().for_each(|(id, source)| storage.take_snapshot(id, source));
        });
        self.play("CreateVolumeGroupSnapshot", group_snapshot_id.clone(), secrets, effect).await?;
        let creation_time = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
        let snapshots = taken.into_iter().map(|(snapshot_id, source_volume_id)| wire::Snapshot {
            snapshot_id,
            source_volume_id,
            creation_time,
            ready_to_use: true,
            group_snapshot_id: group_snapshot_id.clone(),
            ..Default::default()
        });
        let snapshots = snapshots.collect();
        let group = wire::VolumeGroupSnapshot {
            group_snapshot_id: group_snapshot_id.clone(),
            snapshots,
            creation_time,
            ready_to_use: true,
        };
        Ok(Response::new(wire::CreateVolumeGroupSnapshotResponse { group_snapshot: Some(group) }))
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<wire::DeleteVolumeGroupSnapshotRequest>,
    ) -> Result<Response<wire::DeleteVolumeGroupSnapshotResponse>, Status> {
        let wire::DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets } =
            request.into_inner();
        let effect = self.storing(move |storage| {
            snapshot_ids.iter().for_each(|id| storage.delete_snapshot(id));
        });
        self.play("DeleteVolumeGroupSnapshot", group_snapshot_id, secrets, effect).await?;
        Ok(Response::new(wire::DeleteVolumeGroupSnapshotResponse {}))
    }
}
