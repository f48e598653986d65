//! What a scripted plugin answers of its controller and its node, and what it does to volumes.

use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::controller_server::Controller;
use wire::node_server::Node;

use super::acting::answered;
use super::plugin::Plugin;

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
        let creates = self.part().creates.then(|| can(rpc::Type::CreateDeleteVolume));
        let capabilities = [can(rpc::Type::PublishUnpublishVolume)].into_iter().chain(creates).collect();
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
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        request: Request<wire::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<wire::NodeGetCapabilitiesResponse>, Status> {
        use wire::node_service_capability::{Rpc, Type, rpc};
        let act = self.play("NodeGetCapabilities", &request).await?;
        let rpc = Rpc { r#type: rpc::Type::StageUnstageVolume.into() };
        let stages = wire::NodeServiceCapability { r#type: Some(Type::Rpc(rpc)) };
        let capabilities = self.part().stages.then_some(stages).into_iter().collect();
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
