//! The controller service, for volumes independent of a node.

use callboard_actors::csi::Call;
use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::controller_server::Controller;
use wire::controller_service_capability::rpc::Type as Claim;
use wire::controller_service_capability::{Rpc as Capability, Type};

use super::calls::service;
use super::faults::{Garbage, UNKNOWN_CAPABILITY};
use super::serve::Plugin;
use super::volumes::{change, create, id_of_snapshot, id_of_volume, listing, snapshots};

/// The claims of a controller with volumes, unless its claims are given.
const CLAIMS: [Claim; 15] = [
    Claim::CreateDeleteVolume,
    Claim::PublishUnpublishVolume,
    Claim::ListVolumes,
    Claim::GetCapacity,
    Claim::CreateDeleteSnapshot,
    Claim::ListSnapshots,
    Claim::CloneVolume,
    Claim::PublishReadonly,
    Claim::ExpandVolume,
    Claim::ListVolumesPublishedNodes,
    Claim::VolumeCondition,
    Claim::GetVolume,
    Claim::SingleNodeMultiWriter,
    Claim::ModifyVolume,
    Claim::GetSnapshot,
];

/// The claims with these arguments.
pub(super) fn claimed(told: &[Claim], has_volumes: bool) -> Vec<Claim> {
    if told.is_empty() && has_volumes { CLAIMS.to_vec() } else { told.to_vec() }
}

impl Plugin {
    fn claims(&self, claim: Claim) -> bool {
        self.controller_claims.contains(&claim)
    }
}

service! {
    Controller for plugin {
        create_volume(CreateVolumeRequest) -> CreateVolumeResponse {
            CreateVolume if plugin.claims(Claim::CreateDeleteVolume), on |it| id_of_volume(&it.name), do create::create
        }
        delete_volume(DeleteVolumeRequest) -> DeleteVolumeResponse {
            DeleteVolume if plugin.claims(Claim::CreateDeleteVolume), on |it| it.volume_id.clone(), do create::delete
        }
        controller_publish_volume(ControllerPublishVolumeRequest) -> ControllerPublishVolumeResponse {
            ControllerPublishVolume if plugin.claims(Claim::PublishUnpublishVolume), on |it| it.volume_id.clone(), do change::attach
        }
        controller_unpublish_volume(ControllerUnpublishVolumeRequest) -> ControllerUnpublishVolumeResponse {
            ControllerUnpublishVolume if plugin.claims(Claim::PublishUnpublishVolume), on |it| it.volume_id.clone(), do change::detach
        }
        validate_volume_capabilities(ValidateVolumeCapabilitiesRequest) -> ValidateVolumeCapabilitiesResponse {
            ValidateVolumeCapabilities if plugin.has_volumes(), on |it| it.volume_id.clone(), do change::validate
        }
        list_volumes(ListVolumesRequest) -> ListVolumesResponse {
            ListVolumes if plugin.claims(Claim::ListVolumes), on |it| String::new(), do listing::list
        }
        get_capacity(GetCapacityRequest) -> GetCapacityResponse {
            GetCapacity if plugin.claims(Claim::GetCapacity), on |it| String::new(), do listing::capacity
        }
        create_snapshot(CreateSnapshotRequest) -> CreateSnapshotResponse {
            CreateSnapshot if plugin.claims(Claim::CreateDeleteSnapshot), on |it| id_of_snapshot(&it.name), do snapshots::create
        }
        delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse {
            DeleteSnapshot if plugin.claims(Claim::CreateDeleteSnapshot), on |it| it.snapshot_id.clone(), do snapshots::delete
        }
        list_snapshots(ListSnapshotsRequest) -> ListSnapshotsResponse {
            ListSnapshots if plugin.claims(Claim::ListSnapshots), on |it| String::new(), do snapshots::list
        }
        get_snapshot(GetSnapshotRequest) -> GetSnapshotResponse {
            GetSnapshot if plugin.claims(Claim::GetSnapshot), on |it| it.snapshot_id.clone(), do snapshots::get
        }
        controller_expand_volume(ControllerExpandVolumeRequest) -> ControllerExpandVolumeResponse {
            ControllerExpandVolume if plugin.claims(Claim::ExpandVolume), on |it| it.volume_id.clone(), do change::expand
        }
        controller_get_volume(ControllerGetVolumeRequest) -> ControllerGetVolumeResponse {
            ControllerGetVolume if plugin.claims(Claim::GetVolume), on |it| it.volume_id.clone(), do listing::get
        }
        controller_modify_volume(ControllerModifyVolumeRequest) -> ControllerModifyVolumeResponse {
            ControllerModifyVolume if plugin.claims(Claim::ModifyVolume), on |it| it.volume_id.clone(), do change::modify
        }
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<wire::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::ControllerGetCapabilitiesResponse>, Status> {
        self.faults.before(Call::ControllerGetCapabilities).await?;
        let claimed = self.controller_claims.iter().map(|claimed| *claimed as i32);
        let unknown = self.faults.garbage(Garbage::UnknownCapabilities).then_some(UNKNOWN_CAPABILITY);
        let capabilities = claimed.chain(unknown).map(capability).collect();
        Ok(Response::new(wire::ControllerGetCapabilitiesResponse { capabilities }))
    }
}

fn capability(number: i32) -> wire::ControllerServiceCapability {
    wire::ControllerServiceCapability { r#type: Some(Type::Rpc(Capability { r#type: number })) }
}
