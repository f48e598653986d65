//! The calls about volumes and snapshots that have one answer, each by its name.

use std::time::Duration;

use tonic::{Request, Response, Status};

use super::{Client, WireRequest};
use crate::csi::{
    Context, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerGetVolumeRequest,
    ControllerGetVolumeResponse, ControllerModifyVolumeRequest, ControllerPublishVolumeRequest,
    ControllerUnpublishVolumeRequest, CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest,
    CreateVolumeRequest, DeleteSnapshotRequest, DeleteVolumeGroupSnapshotRequest, DeleteVolumeRequest,
    FailedCall, GetCapacityRequest, GetCapacityResponse, GetSnapshotRequest, GetVolumeGroupSnapshotRequest,
    ListSnapshotsRequest, ListSnapshotsResponse, ListVolumesRequest, ListVolumesResponse,
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse,
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
    Snapshot, ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse, Volume,
    VolumeGroupSnapshot,
};
use crate::lease::Lease;

/// A request that has one answer.
pub trait UnaryRequest: WireRequest {
    /// Sends its message. [`Client::call`] also checks the request and the answer, and keeps the deadline.
    fn send(
        lease: &Lease,
        message: Request<Self::Message>,
    ) -> impl Future<Output = Result<Response<Self::AnswerMessage>, Status>> + Send;
}

macro_rules! calls {
    ($($(#[$doc:meta])* $request:ident => $service:ident.$method:ident -> $answer:ty,)*) => {
        $(impl UnaryRequest for $request {
            fn send(
                lease: &Lease,
                message: Request<Self::Message>,
            ) -> impl Future<Output = Result<Response<Self::AnswerMessage>, Status>> + Send {
                let mut client = lease.$service();
                async move { client.$method(message).await }
            }
        })*

        impl Client {
            $($(#[$doc])*
            ///
            /// # Errors
            /// As [`Client::call`].
            pub async fn $method(&self, request: &$request, deadline: Duration) -> Result<$answer, FailedCall> {
                self.call(request, deadline).await
            })*
        }
    };
}

calls! {
    /// Calls `CreateVolume`.
    CreateVolumeRequest => controller.create_volume -> Volume,
    /// Calls `DeleteVolume`.
    DeleteVolumeRequest => controller.delete_volume -> (),
    /// Calls `ControllerPublishVolume`. Answered with the publish context (C074).
    ControllerPublishVolumeRequest => controller.controller_publish_volume -> Context,
    /// Calls `ControllerUnpublishVolume`.
    ControllerUnpublishVolumeRequest => controller.controller_unpublish_volume -> (),
    /// Calls `ValidateVolumeCapabilities`. See [`ValidateVolumeCapabilitiesResponse::unconfirmed`] (C090).
    ValidateVolumeCapabilitiesRequest => controller.validate_volume_capabilities -> ValidateVolumeCapabilitiesResponse,
    /// Calls `ListVolumes`, for one page.
    ListVolumesRequest => controller.list_volumes -> ListVolumesResponse,
    /// Calls `GetCapacity`.
    GetCapacityRequest => controller.get_capacity -> GetCapacityResponse,
    /// Calls `CreateSnapshot`.
    CreateSnapshotRequest => controller.create_snapshot -> Snapshot,
    /// Calls `DeleteSnapshot`.
    DeleteSnapshotRequest => controller.delete_snapshot -> (),
    /// Calls `ListSnapshots`, for one page.
    ListSnapshotsRequest => controller.list_snapshots -> ListSnapshotsResponse,
    /// Calls `GetSnapshot`; alpha.
    GetSnapshotRequest => controller.get_snapshot -> Snapshot,
    /// Calls `ControllerExpandVolume`.
    ControllerExpandVolumeRequest => controller.controller_expand_volume -> ControllerExpandVolumeResponse,
    /// Calls `ControllerGetVolume`; alpha.
    ControllerGetVolumeRequest => controller.controller_get_volume -> ControllerGetVolumeResponse,
    /// Calls `ControllerModifyVolume`.
    ControllerModifyVolumeRequest => controller.controller_modify_volume -> (),
    /// Calls `CreateVolumeGroupSnapshot`.
    CreateVolumeGroupSnapshotRequest => group_controller.create_volume_group_snapshot -> VolumeGroupSnapshot,
    /// Calls `DeleteVolumeGroupSnapshot`.
    DeleteVolumeGroupSnapshotRequest => group_controller.delete_volume_group_snapshot -> (),
    /// Calls `GetVolumeGroupSnapshot`.
    GetVolumeGroupSnapshotRequest => group_controller.get_volume_group_snapshot -> VolumeGroupSnapshot,
    /// Calls `NodeStageVolume`.
    NodeStageVolumeRequest => node.node_stage_volume -> (),
    /// Calls `NodeUnstageVolume`.
    NodeUnstageVolumeRequest => node.node_unstage_volume -> (),
    /// Calls `NodePublishVolume`.
    NodePublishVolumeRequest => node.node_publish_volume -> (),
    /// Calls `NodeUnpublishVolume`.
    NodeUnpublishVolumeRequest => node.node_unpublish_volume -> (),
    /// Calls `NodeGetVolumeStats`.
    NodeGetVolumeStatsRequest => node.node_get_volume_stats -> NodeGetVolumeStatsResponse,
    /// Calls `NodeExpandVolume`.
    NodeExpandVolumeRequest => node.node_expand_volume -> NodeExpandVolumeResponse,
}
