//! A plugin with volumes, whose behaviour is set by the test. Like a real plugin, it continues a call whose caller has gone.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use callboard_actors::vocabulary::SocketPath;
use callboard_proto::csi::v1 as wire;
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};
use wire::controller_server::{Controller, ControllerServer};
use wire::group_controller_server::GroupControllerServer;
use wire::identity_server::{Identity, IdentityServer};
use wire::node_server::{Node, NodeServer};

use crate::kernel::Kernel;
use crate::storage::Storage;

/// The plugin's reaction to a call.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Its effect, then the answer.
    Answer,
    /// This code, and no effect.
    Fail(Code),
    /// Its effect, then this code.
    DoneThen(Code),
    /// Its effect and its answer after this time.
    After(Duration),
    /// Its answer, and its effect this time later.
    AnswerThen(Duration),
    /// Neither effect nor answer.
    Hang,
}

#[derive(Debug, Default)]
struct Role {
    acts: HashMap<&'static str, Vec<Act>>,
    usual: HashMap<&'static str, Act>,
    calls: Vec<(&'static str, String)>,
    secrets: Vec<(&'static str, String)>,
    working: BTreeMap<String, usize>,
    at_once: usize,
    at_once_max: usize,
    together: Vec<String>,
    told: Vec<Told>,
    storage: Storage,
    has_groups: bool,
}

/// The arguments of a call that sets something up, and the directories that it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) call: &'static str,
    pub(crate) node_id: String,
    pub(crate) volume_context: HashMap<String, String>,
    pub(crate) publish_context: HashMap<String, String>,
    /// Whether there is a directory at the path, and at its parent.
    pub(crate) directories: (bool, bool),
}

/// The plugin. Clones are the same plugin.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    kernel: Kernel,
    role: Arc<Mutex<Role>>,
    called: Arc<Notify>,
}

/// A plugin that listens.
pub(crate) struct Serving {
    socket: SocketPath,
    task: JoinHandle<()>,
}

impl Serving {
    /// Stops listening and closes all connections.
    pub(crate) async fn kill(self) {
        self.task.abort();
        // The task may have ended before it was cancelled.
        let _ = self.task.await;
        std::fs::remove_file(self.socket.as_path()).expect("it is there");
    }
}

impl Plugin {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        Self { kernel: kernel.clone(), role: Arc::default(), called: Arc::default() }
    }

    /// Also supports groups of snapshots.
    pub(crate) fn with_groups(self) -> Self {
        self.role().has_groups = true;
        self
    }

    fn role(&self) -> MutexGuard<'_, Role> {
        self.role.lock().expect("no test panicked")
    }

    pub(crate) fn serve(&self, socket: &SocketPath) -> Serving {
        let listener = UnixListener::bind(socket.as_path()).expect("the path is free");
        let server = Server::builder()
            .add_service(IdentityServer::new(self.clone()))
            .add_service(ControllerServer::new(self.clone()))
            .add_service(GroupControllerServer::new(self.clone()))
            .add_service(NodeServer::new(self.clone()))
            .serve_with_incoming(UnixListenerStream::new(listener));
        let task = tokio::spawn(async move { server.await.expect("the server serves") });
        Serving { socket: socket.clone(), task }
    }

    /// Sets the reaction to every call of this method.
    pub(crate) fn on(&self, call: &'static str, act: Act) {
        self.role().usual.insert(call, act);
    }

    /// Sets the reaction to the next call of this method, before its usual one.
    pub(crate) fn once(&self, call: &'static str, act: Act) {
        self.role().acts.entry(call).or_default().push(act);
    }

    /// All calls about volumes since the last call of this function.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.role().calls).into_iter().map(|(call, _)| call).collect()
    }

    /// The number of calls about volumes since they were taken last.
    pub(crate) fn calls(&self) -> usize {
        self.role().calls.len()
    }

    /// The secrets that it received with its calls.
    pub(crate) fn secrets(&self) -> Vec<(&'static str, String)> {
        self.role().secrets.clone()
    }

    /// The maximum number of calls in flight at once.
    pub(crate) fn at_once_max(&self) -> usize {
        self.role().at_once_max
    }

    /// The volumes on which it worked for two calls at once (V2).
    pub(crate) fn together(&self) -> Vec<String> {
        self.role().together.clone()
    }

    /// The arguments of the calls that set something up.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.role().told.clone()
    }

    /// Records the arguments of a call about this path.
    fn note(&self, path: &str, told: Told) {
        let above = Path::new(path).parent().expect("it is absolute");
        let directories = (self.kernel.is_made(Path::new(path)), self.kernel.is_made(above));
        self.role().told.push(Told { directories, ..told });
    }

    /// The volumes and snapshots that it has stored.
    pub(crate) fn storage(&self) -> Storage {
        self.role().storage.clone()
    }

    /// The effect of a call on the stored volumes.
    pub(crate) fn storing(
        &self,
        effect: impl FnOnce(&mut Storage) + Send + 'static,
    ) -> impl FnOnce(&Kernel) + Send + 'static {
        let plugin = self.clone();
        move |_| effect(&mut plugin.role().storage)
    }

    /// Waits for the next call.
    pub(crate) async fn is_called(&self) {
        tokio::time::timeout(crate::fixture::LONG, self.called.notified()).await.expect("a call comes");
    }

    /// Handles a call, with its effect; continues when its caller has gone.
    pub(crate) async fn play(
        &self,
        call: &'static str,
        volume: String,
        secrets: HashMap<String, String>,
        effect: impl FnOnce(&Kernel) + Send + 'static,
    ) -> Result<(), Status> {
        let plugin = self.clone();
        let act = self.begin(call, &volume, &secrets);
        let work = tokio::spawn(async move {
            let result = match act {
                Act::Answer => {
                    effect(&plugin.kernel);
                    Ok(())
                }
                Act::Fail(code) => Err(code),
                Act::DoneThen(code) => {
                    effect(&plugin.kernel);
                    Err(code)
                }
                Act::After(pause) => {
                    tokio::time::sleep(pause).await;
                    effect(&plugin.kernel);
                    Ok(())
                }
                Act::AnswerThen(pause) => {
                    let kernel = plugin.kernel.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(pause).await;
                        effect(&kernel);
                    });
                    Ok(())
                }
                Act::Hang => std::future::pending().await,
            };
            plugin.end(&volume);
            result.map_err(|code| Status::new(code, "as the test wants it"))
        });
        work.await.expect("it does not panic")
    }

    fn begin(&self, call: &'static str, volume: &str, secrets: &HashMap<String, String>) -> Act {
        let mut role = self.role();
        role.calls.push((call, volume.to_owned()));
        role.secrets.extend(secrets.values().map(|secret| (call, secret.clone())));
        let working = role.working.entry(volume.to_owned()).or_default();
        *working += 1;
        if *working > 1 {
            role.together.push(volume.to_owned());
        }
        role.at_once += 1;
        role.at_once_max = role.at_once_max.max(role.at_once);
        let next = role.acts.get_mut(call).filter(|acts| !acts.is_empty()).map(|acts| acts.remove(0));
        let act = next.or_else(|| role.usual.get(call).cloned()).unwrap_or(Act::Answer);
        drop(role);
        self.called.notify_one();
        act
    }

    fn end(&self, volume: &str) {
        let mut role = self.role();
        role.at_once -= 1;
        *role.working.get_mut(volume).expect("it has begun") -= 1;
    }
}

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        _: Request<wire::GetPluginInfoRequest>,
    ) -> Result<Response<wire::GetPluginInfoResponse>, Status> {
        let (name, vendor_version) = ("volumes.example".to_owned(), "1.0.0".to_owned());
        Ok(Response::new(wire::GetPluginInfoResponse { name, vendor_version, ..Default::default() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<wire::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<wire::GetPluginCapabilitiesResponse>, Status> {
        use wire::plugin_capability::{Service, Type, VolumeExpansion, service, volume_expansion};
        let service = |service: service::Type| Type::Service(Service { r#type: service.into() });
        let expansion = VolumeExpansion { r#type: volume_expansion::Type::Online.into() };
        let groups = self.role().has_groups.then(|| service(service::Type::GroupControllerService));
        let all = [service(service::Type::ControllerService), Type::VolumeExpansion(expansion)];
        let all = all.into_iter().chain(groups);
        let capabilities = all.map(|claim| wire::PluginCapability { r#type: Some(claim) }).collect();
        Ok(Response::new(wire::GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<wire::ProbeRequest>) -> Result<Response<wire::ProbeResponse>, Status> {
        Ok(Response::new(wire::ProbeResponse { ready: Some(true) }))
    }
}

#[tonic::async_trait]
impl Controller for Plugin {
    async fn controller_get_capabilities(
        &self,
        _: Request<wire::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::ControllerGetCapabilitiesResponse>, Status> {
        use wire::controller_service_capability::{Rpc, Type, rpc};
        let can = |rpc: rpc::Type| {
            let rpc = Rpc { r#type: rpc.into() };
            wire::ControllerServiceCapability { r#type: Some(Type::Rpc(rpc)) }
        };
        let claims = [
            rpc::Type::PublishUnpublishVolume,
            rpc::Type::CreateDeleteVolume,
            rpc::Type::ExpandVolume,
            rpc::Type::CreateDeleteSnapshot,
            rpc::Type::ModifyVolume,
        ];
        let capabilities = claims.map(can).to_vec();
        Ok(Response::new(wire::ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn create_volume(
        &self,
        request: Request<wire::CreateVolumeRequest>,
    ) -> Result<Response<wire::CreateVolumeResponse>, Status> {
        let wire::CreateVolumeRequest { name, secrets, capacity_range, .. } = request.into_inner();
        let volume_id = format!("id of {name}");
        let capacity_bytes = capacity_range.map(|range| range.required_bytes).unwrap_or_default();
        let id = volume_id.clone();
        let effect = self.storing(move |storage| storage.create(id, capacity_bytes));
        self.play("CreateVolume", volume_id.clone(), secrets, effect).await?;
        let volume = wire::Volume { volume_id, capacity_bytes, ..Default::default() };
        Ok(Response::new(wire::CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(
        &self,
        request: Request<wire::DeleteVolumeRequest>,
    ) -> Result<Response<wire::DeleteVolumeResponse>, Status> {
        let wire::DeleteVolumeRequest { volume_id, secrets } = request.into_inner();
        let id = volume_id.clone();
        let effect = self.storing(move |storage| storage.delete(&id));
        self.play("DeleteVolume", volume_id, secrets, effect).await?;
        Ok(Response::new(wire::DeleteVolumeResponse {}))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<wire::ControllerExpandVolumeRequest>,
    ) -> Result<Response<wire::ControllerExpandVolumeResponse>, Status> {
        let wire::ControllerExpandVolumeRequest { volume_id, secrets, capacity_range, .. } =
            request.into_inner();
        let capacity_bytes = capacity_range.expect("a size is wished for").required_bytes;
        let id = volume_id.clone();
        let effect = self.storing(move |storage| storage.volume(&id).bytes = capacity_bytes);
        self.play("ControllerExpandVolume", volume_id, secrets, effect).await?;
        let node_expansion_required = true;
        Ok(Response::new(wire::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required }))
    }

    async fn controller_modify_volume(
        &self,
        request: Request<wire::ControllerModifyVolumeRequest>,
    ) -> Result<Response<wire::ControllerModifyVolumeResponse>, Status> {
        let wire::ControllerModifyVolumeRequest { volume_id, secrets, mutable_parameters } =
            request.into_inner();
        let id = volume_id.clone();
        let effect = self.storing(move |storage| storage.volume(&id).parameters.extend(mutable_parameters));
        self.play("ControllerModifyVolume", volume_id, secrets, effect).await?;
        Ok(Response::new(wire::ControllerModifyVolumeResponse {}))
    }

    async fn create_snapshot(
        &self,
        request: Request<wire::CreateSnapshotRequest>,
    ) -> Result<Response<wire::CreateSnapshotResponse>, Status> {
        let wire::CreateSnapshotRequest { source_volume_id, name, secrets, .. } = request.into_inner();
        let snapshot_id = format!("snapshot {name}");
        let (id, of) = (snapshot_id.clone(), source_volume_id.clone());
        let effect = self.storing(move |storage| storage.take_snapshot(id, of));
        self.play("CreateSnapshot", source_volume_id.clone(), secrets, effect).await?;
        let creation_time = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
        let snapshot = wire::Snapshot {
            snapshot_id,
            source_volume_id,
            creation_time,
            ready_to_use: true,
            ..Default::default()
        };
        Ok(Response::new(wire::CreateSnapshotResponse { snapshot: Some(snapshot) }))
    }

    async fn delete_snapshot(
        &self,
        request: Request<wire::DeleteSnapshotRequest>,
    ) -> Result<Response<wire::DeleteSnapshotResponse>, Status> {
        let wire::DeleteSnapshotRequest { snapshot_id, secrets } = request.into_inner();
        let id = snapshot_id.clone();
        let effect = self.storing(move |storage| storage.delete_snapshot(&id));
        self.play("DeleteSnapshot", snapshot_id, secrets, effect).await?;
        Ok(Response::new(wire::DeleteSnapshotResponse {}))
    }

    async fn controller_publish_volume(
        &self,
        request: Request<wire::ControllerPublishVolumeRequest>,
    ) -> Result<Response<wire::ControllerPublishVolumeResponse>, Status> {
        let wire::ControllerPublishVolumeRequest { volume_id, node_id, secrets, volume_context, .. } =
            request.into_inner();
        let call = "ControllerPublishVolume";
        self.role().told.push(Told { call, node_id: node_id.clone(), volume_context, ..Told::default() });
        self.play(call, volume_id, secrets, |_| {}).await?;
        let publish_context = [("attached to".to_owned(), node_id)].into();
        Ok(Response::new(wire::ControllerPublishVolumeResponse { publish_context }))
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<wire::ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<wire::ControllerUnpublishVolumeResponse>, Status> {
        let wire::ControllerUnpublishVolumeRequest { volume_id, secrets, .. } = request.into_inner();
        self.play("ControllerUnpublishVolume", volume_id, secrets, |_| {}).await?;
        Ok(Response::new(wire::ControllerUnpublishVolumeResponse {}))
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        _: Request<wire::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<wire::NodeGetCapabilitiesResponse>, Status> {
        use wire::node_service_capability::{Rpc, Type, rpc};
        let can = |rpc: rpc::Type| {
            let rpc = Rpc { r#type: rpc.into() };
            wire::NodeServiceCapability { r#type: Some(Type::Rpc(rpc)) }
        };
        let capabilities = [rpc::Type::StageUnstageVolume, rpc::Type::ExpandVolume].map(can).to_vec();
        Ok(Response::new(wire::NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(
        &self,
        _: Request<wire::NodeGetInfoRequest>,
    ) -> Result<Response<wire::NodeGetInfoResponse>, Status> {
        Ok(Response::new(wire::NodeGetInfoResponse { node_id: "node-1".to_owned(), ..Default::default() }))
    }

    async fn node_stage_volume(
        &self,
        request: Request<wire::NodeStageVolumeRequest>,
    ) -> Result<Response<wire::NodeStageVolumeResponse>, Status> {
        let wire::NodeStageVolumeRequest {
            volume_id,
            staging_target_path,
            secrets,
            volume_context,
            publish_context,
            ..
        } = request.into_inner();
        let call = "NodeStageVolume";
        self.note(&staging_target_path, Told { call, volume_context, publish_context, ..Told::default() });
        let mount = move |kernel: &Kernel| kernel.mount(&staging_target_path);
        self.play(call, volume_id, secrets, mount).await?;
        Ok(Response::new(wire::NodeStageVolumeResponse {}))
    }

    async fn node_unstage_volume(
        &self,
        request: Request<wire::NodeUnstageVolumeRequest>,
    ) -> Result<Response<wire::NodeUnstageVolumeResponse>, Status> {
        let wire::NodeUnstageVolumeRequest { volume_id, staging_target_path } = request.into_inner();
        let unmount = move |kernel: &Kernel| kernel.unmount(&staging_target_path);
        self.play("NodeUnstageVolume", volume_id, HashMap::new(), unmount).await?;
        Ok(Response::new(wire::NodeUnstageVolumeResponse {}))
    }

    async fn node_publish_volume(
        &self,
        request: Request<wire::NodePublishVolumeRequest>,
    ) -> Result<Response<wire::NodePublishVolumeResponse>, Status> {
        let wire::NodePublishVolumeRequest {
            volume_id,
            target_path,
            secrets,
            volume_context,
            publish_context,
            ..
        } = request.into_inner();
        let call = "NodePublishVolume";
        self.note(&target_path, Told { call, volume_context, publish_context, ..Told::default() });
        let mount = move |kernel: &Kernel| kernel.mount(&target_path);
        self.play(call, volume_id, secrets, mount).await?;
        Ok(Response::new(wire::NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<wire::NodeUnpublishVolumeRequest>,
    ) -> Result<Response<wire::NodeUnpublishVolumeResponse>, Status> {
        let wire::NodeUnpublishVolumeRequest { volume_id, target_path } = request.into_inner();
        let unmount = move |kernel: &Kernel| kernel.unmount(&target_path);
        self.play("NodeUnpublishVolume", volume_id, HashMap::new(), unmount).await?;
        Ok(Response::new(wire::NodeUnpublishVolumeResponse {}))
    }

    async fn node_expand_volume(
        &self,
        request: Request<wire::NodeExpandVolumeRequest>,
    ) -> Result<Response<wire::NodeExpandVolumeResponse>, Status> {
        let wire::NodeExpandVolumeRequest { volume_id, capacity_range, secrets, .. } = request.into_inner();
        let capacity_bytes = capacity_range.expect("a size is wished for").required_bytes;
        let id = volume_id.clone();
        let effect = self.storing(move |storage| storage.volume(&id).bytes_on_node = capacity_bytes);
        self.play("NodeExpandVolume", volume_id, secrets, effect).await?;
        Ok(Response::new(wire::NodeExpandVolumeResponse { capacity_bytes }))
    }
}
