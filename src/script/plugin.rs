//! A CSI plugin that acts as a script requires: a real gRPC server on a real socket, in the runtime of the script.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use futures_util::StreamExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use wire::controller_server::ControllerServer;
use wire::group_controller_server::GroupControllerServer;
use wire::identity_server::{Identity, IdentityServer};
use wire::node_server::NodeServer;
pub(super) use wire::plugin_capability::volume_expansion::Type as Expansion;

use super::acting::{Act, Acting, Acts, answered};
use super::calls::ConnectionNumber;
use super::storage::Storage;
use crate::plugin::Accepted;

/// The calls whose answers a script can set, by their names in the specification.
pub(super) const CALLS: [&str; 21] = [
    "GetPluginInfo",
    "GetPluginCapabilities",
    "Probe",
    "ControllerGetCapabilities",
    "GroupControllerGetCapabilities",
    "NodeGetCapabilities",
    "NodeGetInfo",
    "CreateVolume",
    "DeleteVolume",
    "ControllerPublishVolume",
    "ControllerUnpublishVolume",
    "NodeStageVolume",
    "NodeUnstageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
    "ControllerExpandVolume",
    "NodeExpandVolume",
    "CreateSnapshot",
    "DeleteSnapshot",
    "CreateVolumeGroupSnapshot",
    "DeleteVolumeGroupSnapshot",
];

/// The identity and properties that a plugin reports.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) has_controller: bool,
    pub(super) has_groups: bool,
    pub(super) node_id: String,
    pub(super) stages: bool,
    pub(super) creates: bool,
    pub(super) expands: Option<Expansion>,
    pub(super) snapshots: bool,
}

impl Default for Part {
    fn default() -> Self {
        Self {
            name: "zfs.example".to_owned(),
            version: "1.0.0".to_owned(),
            has_controller: true,
            has_groups: false,
            node_id: "node-1".to_owned(),
            stages: false,
            creates: false,
            expands: None,
            snapshots: false,
        }
    }
}

/// A plugin. Clones are the same plugin.
#[derive(Debug, Clone)]
pub(super) struct Plugin(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    part: Part,
    acts: Acts,
    storage: Storage,
    /// The number of accepted connections.
    connections: u64,
}

impl Plugin {
    /// A plugin on this storage, which it may share with others.
    pub(super) fn new(part: Part, storage: Storage) -> Self {
        Self(Arc::new(Mutex::new(Inner { part, acts: Acts::default(), storage, connections: 0 })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The identity and properties that it reports.
    pub(super) fn part(&self) -> Part {
        self.inner().part.clone()
    }

    pub(super) fn set_part(&self, part: Part) {
        self.inner().part = part;
    }

    /// Sets how it answers this call from now on.
    pub(super) fn on(&self, call: &'static str, acting: Acting) {
        self.inner().acts.on(call, acting);
    }

    /// All calls since the last request for them.
    pub(super) fn take_calls(&self) -> Vec<&'static str> {
        self.inner().acts.take_calls()
    }

    /// Begins to listen, replacing a dead socket. Must be called within the runtime.
    pub(super) fn serve(&self, socket: &Path) -> io::Result<Serving> {
        if StdUnixStream::connect(socket).is_err() {
            match std::fs::remove_file(socket) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        let listener = UnixListener::bind(socket)?;
        let streams = Streams::default();
        let (kept, plugin) = (Arc::clone(&streams), self.clone());
        let incoming = UnixListenerStream::new(listener).map(move |stream| {
            keep(stream, &kept).map(|stream| Accepted::new(stream, plugin.next_connection()))
        });
        let server = Server::builder()
            .add_service(IdentityServer::new(self.clone()))
            .add_service(ControllerServer::new(self.clone()))
            .add_service(GroupControllerServer::new(self.clone()))
            .add_service(NodeServer::new(self.clone()))
            .serve_with_incoming(incoming);
        let task = tokio::spawn(async move {
            if let Err(error) = server.await {
                tracing::warn!(%error, "a scripted plugin stopped serving");
            }
        });
        Ok(Serving { socket: socket.to_owned(), task, streams })
    }

    fn next_connection(&self) -> ConnectionNumber {
        let connections = &mut self.inner().connections;
        *connections += 1;
        ConnectionNumber(*connections)
    }

    /// Plays one call that reads its identity or state, up to the answer.
    pub(super) async fn play<T>(&self, call: &'static str, request: &Request<T>) -> Result<Act, Status> {
        let reader = request.extensions().get().copied();
        let acting = {
            let acts = &mut self.inner().acts;
            match reader {
                Some(reader) => acts.read(call, reader),
                None => acts.called(call),
            }
        };
        acting.play().await
    }

    /// Plays one call that changes its storage. Like a real plugin it continues when its caller has gone.
    pub(super) async fn change<T: Default + Send + 'static>(
        &self,
        call: &'static str,
        effect: impl FnOnce(&Storage) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let (acting, storage) = {
            let mut inner = self.inner();
            (inner.acts.called(call), inner.storage.clone())
        };
        let work = tokio::spawn(async move {
            tokio::time::sleep(acting.after).await;
            let changed = if acting.act.has_effect() { effect(&storage) } else { T::default() };
            Acting { after: Duration::ZERO, ..acting }.play().await.map(|_| changed)
        });
        work.await.map_err(|error| Status::internal(error.to_string()))?
    }
}

type Streams = Arc<Mutex<Vec<StdUnixStream>>>;

fn keep(stream: io::Result<UnixStream>, kept: &Streams) -> io::Result<UnixStream> {
    let stream = stream?.into_std()?;
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(stream.try_clone()?);
    UnixStream::from_std(stream)
}

/// A plugin that listens. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    socket: PathBuf,
    task: JoinHandle<()>,
    streams: Streams,
}

impl Serving {
    /// The path of its socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Serving {
    /// Ends it as SIGKILL would: every connection closes at once, and the socket file remains.
    fn drop(&mut self) {
        self.task.abort();
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        request: Request<wire::GetPluginInfoRequest>,
    ) -> Result<Response<wire::GetPluginInfoResponse>, Status> {
        let act = self.play("GetPluginInfo", &request).await?;
        let Part { name, version, .. } = self.part();
        let manifest = std::collections::HashMap::new();
        answered(act, wire::GetPluginInfoResponse { name, vendor_version: version, manifest })
    }

    async fn get_plugin_capabilities(
        &self,
        request: Request<wire::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<wire::GetPluginCapabilitiesResponse>, Status> {
        use wire::plugin_capability::{Service, Type, service};
        let act = self.play("GetPluginCapabilities", &request).await?;
        let named = |service: service::Type| {
            let service = Service { r#type: service.into() };
            wire::PluginCapability { r#type: Some(Type::Service(service)) }
        };
        let part = self.part();
        let controller = part.has_controller.then(|| named(service::Type::ControllerService));
        let groups = part.has_groups.then(|| named(service::Type::GroupControllerService));
        let expansion = part.expands.map(|r#type| {
            let expansion = wire::plugin_capability::VolumeExpansion { r#type: r#type.into() };
            wire::PluginCapability { r#type: Some(Type::VolumeExpansion(expansion)) }
        });
        let capabilities = controller.into_iter().chain(groups).chain(expansion).collect();
        answered(act, wire::GetPluginCapabilitiesResponse { capabilities })
    }

    async fn probe(
        &self,
        request: Request<wire::ProbeRequest>,
    ) -> Result<Response<wire::ProbeResponse>, Status> {
        let act = self.play("Probe", &request).await?;
        answered(act, wire::ProbeResponse { ready: Some(act != Act::NotReady) })
    }
}
