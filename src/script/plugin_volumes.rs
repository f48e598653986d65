//! The controller and node services of a scripted plugin, and their effects on volumes.

use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::controller_server::Controller;
use wire::node_server::Node;

use super::acting::answered;
use super::plugin::Plugin;
use super::plugin_groups::snapshot;
use super::storage::Storage;

#[tonic::async_trait]
impl Controller for Plugin {
    async fn controller_get_capabilities(
        &self,
        request: Request<wire::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::ControllerGetCapabilitiesResponse>, Status> {
        use wire::controller_service_capability::{Rpc, Type, rpc};
        let act = self.play("ControllerGetCapabilities", &request).await?;
        let can = |rpc: rpc::Type| {
            let rpc = Rpc { r#type: rpc.into() };
            wire::ControllerServiceCapability { r#type: Some(Type::Rpc(rpc)) }
        };
        let part = self.part();
        let further = [
            part.creates.then_some(rpc::Type::CreateDeleteVolume),
            part.expands.map(|_| rpc::Type::ExpandVolume),
            part.snapshots.then_some(rpc::Type::CreateDeleteSnapshot),
        ];
        let all = [Some(rpc::Type::PublishUnpublishVolume)].into_iter().chain(further);
        let capabilities = all.flatten().map(can).collect();
        answered(act, wire::ControllerGetCapabilitiesResponse { capabilities })
    }

    async fn create_volume(
        &self,
        request: Request<wire::CreateVolumeRequest>,
    ) -> Result<Response<wire::CreateVolumeResponse>, Status> {
        let name = request.into_inner().name;
        let volume_id = self.change("CreateVolume", move |storage| storage.create(name)).await?;
        let volume = wire::Volume { volume_id, ..Default::default() };
        Ok(Response::new(wire::CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(
        &self,
        request: Request<wire::DeleteVolumeRequest>,
    ) -> Result<Response<wire::DeleteVolumeResponse>, Status> {
        let id = request.into_inner().volume_id;
        self.change("DeleteVolume", move |storage| storage.delete(&id)).await?;
        Ok(Response::new(wire::DeleteVolumeResponse {}))
    }

    async fn controller_publish_volume(
        &self,
        _: Request<wire::ControllerPublishVolumeRequest>,
    ) -> Result<Response<wire::ControllerPublishVolumeResponse>, Status> {
        self.change("ControllerPublishVolume", |_| ()).await?;
        Ok(Response::new(wire::ControllerPublishVolumeResponse::default()))
    }

    async fn controller_unpublish_volume(
        &self,
        _: Request<wire::ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<wire::ControllerUnpublishVolumeResponse>, Status> {
        self.change("ControllerUnpublishVolume", |_| ()).await?;
        Ok(Response::new(wire::ControllerUnpublishVolumeResponse {}))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<wire::ControllerExpandVolumeRequest>,
    ) -> Result<Response<wire::ControllerExpandVolumeResponse>, Status> {
        let wire::ControllerExpandVolumeRequest { volume_id, capacity_range, .. } = request.into_inner();
        let bytes = capacity_range.unwrap_or_default().required_bytes;
        let expand = move |storage: &Storage| storage.expand(volume_id, bytes);
        let capacity_bytes = self.change("ControllerExpandVolume", expand).await?;
        let answer = wire::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: true };
        Ok(Response::new(answer))
    }

    async fn create_snapshot(
        &self,
        request: Request<wire::CreateSnapshotRequest>,
    ) -> Result<Response<wire::CreateSnapshotResponse>, Status> {
        let wire::CreateSnapshotRequest { name, source_volume_id, .. } = request.into_inner();
        let take = move |storage: &Storage| storage.take(name, source_volume_id);
        let taken = self.change("CreateSnapshot", take).await?;
        Ok(Response::new(wire::CreateSnapshotResponse { snapshot: taken.as_ref().map(snapshot) }))
    }

    async fn delete_snapshot(
        &self,
        request: Request<wire::DeleteSnapshotRequest>,
    ) -> Result<Response<wire::DeleteSnapshotResponse>, Status> {
        let id = request.into_inner().snapshot_id;
        self.change("DeleteSnapshot", move |storage| storage.delete_snapshots(&[id])).await?;
        Ok(Response::new(wire::DeleteSnapshotResponse {}))
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        request: Request<wire::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<wire::NodeGetCapabilitiesResponse>, Status> {
        use wire::node_service_capability::{Rpc, Type, rpc};
        let act = self.play("NodeGetCapabilities", &request).await?;
        let can = |rpc: rpc::Type| {
            let rpc = Rpc { r#type: rpc.into() };
            wire::NodeServiceCapability { r#type: Some(Type::Rpc(rpc)) }
        };
        let part = self.part();
        let stages = part.stages.then_some(rpc::Type::StageUnstageVolume);
        let expands = part.expands.map(|_| rpc::Type::ExpandVolume);
        let capabilities = stages.into_iter().chain(expands).map(can).collect();
        answered(act, wire::NodeGetCapabilitiesResponse { capabilities })
    }

    async fn node_get_info(
        &self,
        request: Request<wire::NodeGetInfoRequest>,
    ) -> Result<Response<wire::NodeGetInfoResponse>, Status> {
        let act = self.play("NodeGetInfo", &request).await?;
        let node_id = self.part().node_id;
        answered(act, wire::NodeGetInfoResponse { node_id, ..Default::default() })
    }

    async fn node_expand_volume(
        &self,
        request: Request<wire::NodeExpandVolumeRequest>,
    ) -> Result<Response<wire::NodeExpandVolumeResponse>, Status> {
        let bytes = request.into_inner().capacity_range.unwrap_or_default().required_bytes;
        let capacity_bytes = self.change("NodeExpandVolume", move |_| bytes).await?;
        Ok(Response::new(wire::NodeExpandVolumeResponse { capacity_bytes }))
    }

    async fn node_stage_volume(
        &self,
        request: Request<wire::NodeStageVolumeRequest>,
    ) -> Result<Response<wire::NodeStageVolumeResponse>, Status> {
        let path = request.into_inner().staging_target_path;
        self.change("NodeStageVolume", move |storage| storage.mounts().mount(&path)).await?;
        Ok(Response::new(wire::NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<wire::NodeUnstageVolumeRequest>,
    ) -> Result<Response<wire::NodeUnstageVolumeResponse>, Status> {
        let path = request.into_inner().staging_target_path;
        self.change("NodeUnstageVolume", move |storage| storage.mounts().unmount(&path)).await?;
        Ok(Response::new(wire::NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<wire::NodePublishVolumeRequest>,
    ) -> Result<Response<wire::NodePublishVolumeResponse>, Status> {
        let path = request.into_inner().target_path;
        self.change("NodePublishVolume", move |storage| storage.mounts().mount(&path)).await?;
        Ok(Response::new(wire::NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<wire::NodeUnpublishVolumeRequest>,
    ) -> Result<Response<wire::NodeUnpublishVolumeResponse>, Status> {
        let path = request.into_inner().target_path;
        self.change("NodeUnpublishVolume", move |storage| storage.mounts().unmount(&path)).await?;
        Ok(Response::new(wire::NodeUnpublishVolumeResponse {}))
    }
}
