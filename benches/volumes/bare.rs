//! The baseline: the calls of a claim, made by plain tonic clients.

use std::fs;
use std::path::{Path, PathBuf};

use callboard_proto::csi::v1 as csi;
use csi::controller_client::ControllerClient;
use csi::node_client::NodeClient;
use tonic::transport::{Channel, Endpoint};

use crate::site::NODE;

/// Clients of one plugin over one connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Bare {
    controller: ControllerClient<Channel>,
    node: NodeClient<Channel>,
    /// The directory in which it mounts.
    place: PathBuf,
}

/// A volume that it has created.
#[derive(Clone)]
pub(crate) struct Created {
    id: String,
    context: std::collections::HashMap<String, String>,
}

impl Bare {
    pub(crate) async fn connect(socket: &Path, place: PathBuf) -> Self {
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display())).expect("it is an address");
        let channel = endpoint.connect().await.expect("it listens");
        Self { controller: ControllerClient::new(channel.clone()), node: NodeClient::new(channel), place }
    }

    pub(crate) async fn create(&mut self, name: String) -> Created {
        let request = csi::CreateVolumeRequest {
            name,
            capacity_range: Some(csi::CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
            volume_capabilities: vec![capability()],
            ..Default::default()
        };
        let answer = self.controller.create_volume(request).await.expect("the plugin creates it");
        let volume = answer.into_inner().volume.expect("it has a volume");
        Created { id: volume.volume_id, context: volume.volume_context }
    }

    /// Attaches, stages and publishes.
    pub(crate) async fn set_up(&mut self, volume: &Created) {
        let request = csi::ControllerPublishVolumeRequest {
            volume_id: volume.id.clone(),
            node_id: NODE.to_owned(),
            volume_capability: Some(capability()),
            volume_context: volume.context.clone(),
            ..Default::default()
        };
        let attached = self.controller.controller_publish_volume(request).await.expect("it is attached");
        let publish_context = attached.into_inner().publish_context;
        let (staging, target) = (self.staging(volume), self.target(volume));
        fs::create_dir_all(&staging).expect("a directory can be made");
        let request = csi::NodeStageVolumeRequest {
            volume_id: volume.id.clone(),
            publish_context: publish_context.clone(),
            staging_target_path: staging.clone(),
            volume_capability: Some(capability()),
            volume_context: volume.context.clone(),
            ..Default::default()
        };
        self.node.node_stage_volume(request).await.expect("it is staged");
        let request = csi::NodePublishVolumeRequest {
            volume_id: volume.id.clone(),
            publish_context,
            staging_target_path: staging,
            target_path: target,
            volume_capability: Some(capability()),
            volume_context: volume.context.clone(),
            ..Default::default()
        };
        self.node.node_publish_volume(request).await.expect("it is published");
    }

    /// The inverse of [`Self::set_up`].
    pub(crate) async fn undo(&mut self, volume: &Created) {
        let (staging, target_path) = (self.staging(volume), self.target(volume));
        let request = csi::NodeUnpublishVolumeRequest { volume_id: volume.id.clone(), target_path };
        self.node.node_unpublish_volume(request).await.expect("it is unpublished");
        let request = csi::NodeUnstageVolumeRequest {
            volume_id: volume.id.clone(),
            staging_target_path: staging.clone(),
        };
        self.node.node_unstage_volume(request).await.expect("it is unstaged");
        fs::remove_dir(staging).expect("it is empty");
        let request = csi::ControllerUnpublishVolumeRequest {
            volume_id: volume.id.clone(),
            node_id: NODE.to_owned(),
            ..Default::default()
        };
        self.controller.controller_unpublish_volume(request).await.expect("it is detached");
    }

    fn staging(&self, volume: &Created) -> String {
        self.place.join(format!("{}-staged", volume.id)).display().to_string()
    }

    fn target(&self, volume: &Created) -> String {
        self.place.join(format!("{}-used", volume.id)).display().to_string()
    }
}

fn capability() -> csi::VolumeCapability {
    use csi::volume_capability::access_mode::Mode;
    use csi::volume_capability::{AccessMode, AccessType, MountVolume};
    csi::VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}
