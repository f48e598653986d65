//! Runs an orchestrator that follows the rules: it takes every step, retries unclear calls with growing pauses, and undoes its steps.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use callboard_proto::csi::v1 as wire;
use tonic::{Code, Response, Status};

use crate::stage::{Clients, LONG, MIB, Namespace, mount, request};
use wire::volume_capability::access_mode::Mode;

/// The deadline of each call.
const DEADLINE: Duration = Duration::from_millis(1500);

pub(crate) struct Orchestrator {
    pub(crate) clients: Clients,
    node_id: String,
}

/// A volume, with the data that later calls must pass on.
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) context: HashMap<String, String>,
    pub(crate) publish_context: HashMap<String, String>,
    pub(crate) staging: PathBuf,
    pub(crate) target: PathBuf,
}

/// Makes a call until it succeeds; a final failure is an error.
async fn settled<A>(
    name: &str,
    mut call: impl AsyncFnMut() -> Result<Response<A>, Status>,
) -> Result<A, Status> {
    let (began, mut pause) = (Instant::now(), Duration::from_millis(10));
    loop {
        let answer = tokio::time::timeout(DEADLINE, call()).await;
        match answer {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(status)) if is_final(status.code()) => return Err(status),
            Ok(Err(_)) | Err(_) => {}
        }
        assert!(began.elapsed() < LONG, "{name} does not succeed: {:?}", answer.map(|it| it.map(drop)));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated
    )
}

/// Makes a call of a service until it succeeds.
macro_rules! settle {
    ($it:expr, $service:ident.$method:ident($request:expr)) => {{
        let request = $request;
        let call = async || $it.clients.$service.clone().$method(request.clone()).await;
        settled(stringify!($method), call).await.expect(stringify!($method))
    }};
}

impl Orchestrator {
    /// Waits until the plugin is ready, and requests its identity and its node id.
    pub(crate) async fn meet(clients: Clients) -> Self {
        let mut it = Self { clients, node_id: String::new() };
        settle!(it, identity.get_plugin_info(wire::GetPluginInfoRequest {}));
        let began = Instant::now();
        while settle!(it, identity.probe(wire::ProbeRequest {})).ready == Some(false) {
            assert!(began.elapsed() < LONG, "it is never ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        settle!(it, identity.get_plugin_capabilities(wire::GetPluginCapabilitiesRequest {}));
        settle!(it, controller.controller_get_capabilities(wire::ControllerGetCapabilitiesRequest {}));
        settle!(it, node.node_get_capabilities(wire::NodeGetCapabilitiesRequest {}));
        it.node_id = settle!(it, node.node_get_info(wire::NodeGetInfoRequest {})).node_id;
        it
    }

    pub(crate) async fn create(&self, name: &str, namespace: &Namespace) -> Volume {
        let created = settle!(self, controller.create_volume(request(name)));
        let volume = created.volume.expect("a volume");
        let staging = namespace.path(&format!("staging-{name}"));
        fs::create_dir_all(&staging).expect("room");
        Volume {
            id: volume.volume_id,
            context: volume.volume_context,
            publish_context: HashMap::new(),
            staging,
            target: namespace.path(&format!("target-{name}")),
        }
    }

    pub(crate) async fn attach(&self, volume: &mut Volume) {
        let request = wire::ControllerPublishVolumeRequest {
            volume_id: volume.id.clone(),
            node_id: self.node_id.clone(),
            volume_capability: Some(mount(Mode::SingleNodeMultiWriter)),
            volume_context: volume.context.clone(),
            ..wire::ControllerPublishVolumeRequest::default()
        };
        volume.publish_context = settle!(self, controller.controller_publish_volume(request)).publish_context;
    }

    pub(crate) async fn up(&self, volume: &mut Volume) {
        self.attach(volume).await;
        settle!(self, node.node_stage_volume(volume.stage()));
        settle!(self, node.node_publish_volume(volume.publish()));
        let request = wire::NodeGetVolumeStatsRequest {
            volume_id: volume.id.clone(),
            volume_path: volume.target.display().to_string(),
            staging_target_path: volume.staging.display().to_string(),
        };
        settle!(self, node.node_get_volume_stats(request));
    }

    pub(crate) async fn grow(&self, volume: &Volume) {
        let capacity_range = Some(wire::CapacityRange { required_bytes: 2 * MIB, limit_bytes: 0 });
        let volume_capability = Some(mount(Mode::SingleNodeMultiWriter));
        let request = wire::ControllerExpandVolumeRequest {
            volume_id: volume.id.clone(),
            capacity_range,
            volume_capability: volume_capability.clone(),
            ..wire::ControllerExpandVolumeRequest::default()
        };
        let grown = settle!(self, controller.controller_expand_volume(request));
        if !grown.node_expansion_required {
            return;
        }
        let request = wire::NodeExpandVolumeRequest {
            volume_id: volume.id.clone(),
            volume_path: volume.target.display().to_string(),
            staging_target_path: volume.staging.display().to_string(),
            capacity_range,
            volume_capability,
            ..wire::NodeExpandVolumeRequest::default()
        };
        settle!(self, node.node_expand_volume(request));
    }

    pub(crate) async fn snapshots(&self, volume: &Volume) {
        let request = wire::CreateSnapshotRequest {
            source_volume_id: volume.id.clone(),
            name: format!("of-{}", volume.id),
            ..wire::CreateSnapshotRequest::default()
        };
        let made = settle!(self, controller.create_snapshot(request)).snapshot.expect("a snapshot");
        let mut list = wire::ListSnapshotsRequest { max_entries: 1, ..wire::ListSnapshotsRequest::default() };
        loop {
            list.starting_token = settle!(self, controller.list_snapshots(list.clone())).next_token;
            if list.starting_token.is_empty() {
                break;
            }
        }
        let request = wire::DeleteSnapshotRequest { snapshot_id: made.snapshot_id, ..Default::default() };
        settle!(self, controller.delete_snapshot(request));
    }

    pub(crate) async fn down(&self, volume: &Volume) {
        let request = wire::NodeUnpublishVolumeRequest {
            volume_id: volume.id.clone(),
            target_path: volume.target.display().to_string(),
        };
        settle!(self, node.node_unpublish_volume(request));
        let request = wire::NodeUnstageVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: volume.staging.display().to_string(),
        };
        settle!(self, node.node_unstage_volume(request));
        let request = wire::ControllerUnpublishVolumeRequest {
            volume_id: volume.id.clone(),
            node_id: self.node_id.clone(),
            ..wire::ControllerUnpublishVolumeRequest::default()
        };
        settle!(self, controller.controller_unpublish_volume(request));
    }

    pub(crate) async fn delete(&self, volume: &Volume) {
        let request = wire::DeleteVolumeRequest {
            volume_id: volume.id.clone(),
            ..wire::DeleteVolumeRequest::default()
        };
        settle!(self, controller.delete_volume(request));
    }

    /// The whole life of a volume, from its creation to its deletion.
    pub(crate) async fn life(&self, name: &str, namespace: &Namespace) {
        let mut volume = self.create(name, namespace).await;
        self.up(&mut volume).await;
        self.grow(&volume).await;
        self.snapshots(&volume).await;
        self.down(&volume).await;
        self.delete(&volume).await;
    }
}

impl Volume {
    pub(crate) fn stage(&self) -> wire::NodeStageVolumeRequest {
        wire::NodeStageVolumeRequest {
            volume_id: self.id.clone(),
            publish_context: self.publish_context.clone(),
            staging_target_path: self.staging.display().to_string(),
            volume_capability: Some(mount(Mode::SingleNodeMultiWriter)),
            volume_context: self.context.clone(),
            ..wire::NodeStageVolumeRequest::default()
        }
    }

    pub(crate) fn publish(&self) -> wire::NodePublishVolumeRequest {
        let stage = self.stage();
        wire::NodePublishVolumeRequest {
            volume_id: stage.volume_id,
            publish_context: stage.publish_context,
            staging_target_path: stage.staging_target_path,
            target_path: self.target.display().to_string(),
            volume_capability: stage.volume_capability,
            volume_context: stage.volume_context,
            ..wire::NodePublishVolumeRequest::default()
        }
    }
}
