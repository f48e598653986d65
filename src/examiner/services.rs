//! The services: each call is observed, refused if its form breaks a rule, and else answered by the reference plugin.

use std::path::Path;
use std::sync::Arc;

use callboard_actors::csi::Call;
use callboard_actors::examiner::{Outcome, Request as ObservedRequest, SeenPaths};
use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::controller_server::Controller;
use wire::group_controller_server::GroupController;
use wire::identity_server::Identity;
use wire::node_server::Node;

use super::observe::{Digests, Observed, Told};
use super::recorder::Recorder;
use crate::hostpath::Plugin;

/// The plugin behind an exam.
pub(super) struct Examined {
    pub(super) plugin: Arc<Plugin>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) digests: Digests,
}

impl Examined {
    /// Observes a call from its beginning to its end. The future is dropped when its caller disconnects; the plugin still executes the call
    /// (C015).
    async fn examine<Q: Observed, A: Told>(
        &self,
        call: Call,
        request: &Q,
        answering: impl Future<Output = Result<Response<A>, Status>>,
    ) -> Result<Response<A>, Status> {
        let request = with_paths(request.observed(&self.digests));
        let (in_flight, broken) = self.recorder.call(call, request);
        let refusal = broken.into_iter().find_map(|(rule, problem)| Some((rule, rule.refusal()?, problem)));
        let answer = match refusal {
            Some((rule, code, problem)) => {
                Err(Status::new(code.number().into(), format!("{problem} ({rule}: {})", rule.text())))
            }
            None => answering.await,
        };
        in_flight.end(match &answer {
            Ok(answer) => Outcome::Answered(Box::new(answer.get_ref().told())),
            Err(status) => Outcome::Failed(status.code().into()),
        });
        answer
    }
}

/// Looks at the paths of a request, as the examiner sees them (C125, C126, C136).
fn with_paths(mut request: ObservedRequest) -> ObservedRequest {
    let given = |path: &str| (!path.is_empty()).then(|| Path::new(path).to_owned());
    let target = given(&request.target_path);
    request.seen = SeenPaths {
        staging_is_directory: given(&request.staging_target_path).map(|path| path.is_dir()),
        target_exists: target.as_ref().map(|path| path.symlink_metadata().is_ok()),
        target_has_parent: target.map(|path| path.parent().is_some_and(Path::is_dir)),
    };
    request
}

macro_rules! examined {
    ($($service:ident { $($name:ident($request:ident) -> $response:ident as $call:ident;)* })*) => {
        $(#[tonic::async_trait]
        impl $service for Examined {
            $(async fn $name(
                &self,
                request: Request<wire::$request>,
            ) -> Result<Response<wire::$response>, Status> {
                let observed = request.get_ref().clone();
                self.examine(Call::$call, &observed, $service::$name(&*self.plugin, request)).await
            })*
        })*
    };
}

examined! {
    Identity {
        get_plugin_info(GetPluginInfoRequest) -> GetPluginInfoResponse as GetPluginInfo;
        get_plugin_capabilities(GetPluginCapabilitiesRequest) -> GetPluginCapabilitiesResponse as GetPluginCapabilities;
        probe(ProbeRequest) -> ProbeResponse as Probe;
    }
    Controller {
        create_volume(CreateVolumeRequest) -> CreateVolumeResponse as CreateVolume;
        delete_volume(DeleteVolumeRequest) -> DeleteVolumeResponse as DeleteVolume;
        controller_publish_volume(ControllerPublishVolumeRequest) -> ControllerPublishVolumeResponse as ControllerPublishVolume;
        controller_unpublish_volume(ControllerUnpublishVolumeRequest) -> ControllerUnpublishVolumeResponse
            as ControllerUnpublishVolume;
        validate_volume_capabilities(ValidateVolumeCapabilitiesRequest) -> ValidateVolumeCapabilitiesResponse
            as ValidateVolumeCapabilities;
        list_volumes(ListVolumesRequest) -> ListVolumesResponse as ListVolumes;
        get_capacity(GetCapacityRequest) -> GetCapacityResponse as GetCapacity;
        controller_get_capabilities(ControllerGetCapabilitiesRequest) -> ControllerGetCapabilitiesResponse
            as ControllerGetCapabilities;
        create_snapshot(CreateSnapshotRequest) -> CreateSnapshotResponse as CreateSnapshot;
        delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse as DeleteSnapshot;
        list_snapshots(ListSnapshotsRequest) -> ListSnapshotsResponse as ListSnapshots;
        get_snapshot(GetSnapshotRequest) -> GetSnapshotResponse as GetSnapshot;
        controller_expand_volume(ControllerExpandVolumeRequest) -> ControllerExpandVolumeResponse as ControllerExpandVolume;
        controller_get_volume(ControllerGetVolumeRequest) -> ControllerGetVolumeResponse as ControllerGetVolume;
        controller_modify_volume(ControllerModifyVolumeRequest) -> ControllerModifyVolumeResponse as ControllerModifyVolume;
    }
    GroupController {
        group_controller_get_capabilities(GroupControllerGetCapabilitiesRequest) -> GroupControllerGetCapabilitiesResponse
            as GroupControllerGetCapabilities;
        create_volume_group_snapshot(CreateVolumeGroupSnapshotRequest) -> CreateVolumeGroupSnapshotResponse
            as CreateVolumeGroupSnapshot;
        delete_volume_group_snapshot(DeleteVolumeGroupSnapshotRequest) -> DeleteVolumeGroupSnapshotResponse
            as DeleteVolumeGroupSnapshot;
        get_volume_group_snapshot(GetVolumeGroupSnapshotRequest) -> GetVolumeGroupSnapshotResponse as GetVolumeGroupSnapshot;
    }
    Node {
        node_stage_volume(NodeStageVolumeRequest) -> NodeStageVolumeResponse as NodeStageVolume;
        node_unstage_volume(NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse as NodeUnstageVolume;
        node_publish_volume(NodePublishVolumeRequest) -> NodePublishVolumeResponse as NodePublishVolume;
        node_unpublish_volume(NodeUnpublishVolumeRequest) -> NodeUnpublishVolumeResponse as NodeUnpublishVolume;
        node_get_volume_stats(NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse as NodeGetVolumeStats;
        node_expand_volume(NodeExpandVolumeRequest) -> NodeExpandVolumeResponse as NodeExpandVolume;
        node_get_capabilities(NodeGetCapabilitiesRequest) -> NodeGetCapabilitiesResponse as NodeGetCapabilities;
        node_get_info(NodeGetInfoRequest) -> NodeGetInfoResponse as NodeGetInfo;
    }
}
