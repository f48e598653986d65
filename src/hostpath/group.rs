//! The group controller service: snapshots of several volumes that are taken together.

use callboard_actors::csi::Call;
use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::group_controller_server::GroupController;
use wire::group_controller_service_capability::rpc::Type as Claim;
use wire::group_controller_service_capability::{Rpc as Capability, Type};

use super::calls::service;
use super::faults::{Garbage, UNKNOWN_CAPABILITY};
use super::serve::Plugin;
use super::volumes::{id_of_group, snapshots};

service! {
    GroupController for plugin {
        create_volume_group_snapshot(CreateVolumeGroupSnapshotRequest) -> CreateVolumeGroupSnapshotResponse {
            CreateVolumeGroupSnapshot if plugin.offers_groups(), on |it| id_of_group(&it.name), do snapshots::create_group
        }
        delete_volume_group_snapshot(DeleteVolumeGroupSnapshotRequest) -> DeleteVolumeGroupSnapshotResponse {
            DeleteVolumeGroupSnapshot if plugin.offers_groups(), on |it| it.group_snapshot_id.clone(), do snapshots::delete_group
        }
        get_volume_group_snapshot(GetVolumeGroupSnapshotRequest) -> GetVolumeGroupSnapshotResponse {
            GetVolumeGroupSnapshot if plugin.offers_groups(), on |it| it.group_snapshot_id.clone(), do snapshots::get_group
        }
    }

    async fn group_controller_get_capabilities(
        &self,
        _: Request<wire::GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::GroupControllerGetCapabilitiesResponse>, Status> {
        self.faults.before(Call::GroupControllerGetCapabilities).await?;
        let claimed = Claim::CreateDeleteGetVolumeGroupSnapshot as i32;
        let unknown = self.faults.garbage(Garbage::UnknownCapabilities).then_some(UNKNOWN_CAPABILITY);
        let capabilities = std::iter::once(claimed).chain(unknown).map(capability).collect();
        Ok(Response::new(wire::GroupControllerGetCapabilitiesResponse { capabilities }))
    }
}

fn capability(number: i32) -> wire::GroupControllerServiceCapability {
    wire::GroupControllerServiceCapability { r#type: Some(Type::Rpc(Capability { r#type: number })) }
}
