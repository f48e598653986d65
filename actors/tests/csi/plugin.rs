//! A plugin in this process whose answers are set by a test.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use callboard_actors::csi::{Connection, Limits};
use callboard_actors::vocabulary::SocketPath;
use callboard_proto::csi::v1 as wire;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use wire::controller_server::{Controller, ControllerServer};
use wire::group_controller_server::{GroupController, GroupControllerServer};
use wire::identity_server::{Identity, IdentityServer};
use wire::node_server::{Node, NodeServer};

/// Longer than any call in these tests takes, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The plugin's reaction to a call.
#[derive(Clone)]
pub(crate) enum Reply<T> {
    Answer(T),
    Fail(Status),
    Hang,
    Panic,
}

impl<T: Clone> Reply<T> {
    async fn give(&self) -> Result<Response<T>, Status> {
        match self {
            Self::Answer(answer) => Ok(Response::new(answer.clone())),
            Self::Fail(status) => Err(status.clone()),
            Self::Hang => std::future::pending().await,
            Self::Panic => panic!("the plugin's handler panics, as the test wants it"),
        }
    }
}

/// The plugin's reaction to each call. By default a plain monolith without capabilities.
#[derive(Clone)]
pub(crate) struct Plugin {
    pub(crate) info: Reply<wire::GetPluginInfoResponse>,
    pub(crate) offers: Reply<wire::GetPluginCapabilitiesResponse>,
    pub(crate) probe: Reply<wire::ProbeResponse>,
    pub(crate) controller: Reply<wire::ControllerGetCapabilitiesResponse>,
    pub(crate) groups: Reply<wire::GroupControllerGetCapabilitiesResponse>,
    pub(crate) node: Reply<wire::NodeGetCapabilitiesResponse>,
    pub(crate) node_info: Reply<wire::NodeGetInfoResponse>,
}

impl Default for Plugin {
    fn default() -> Self {
        Self {
            info: Reply::Answer(named("scripted.callboard.example")),
            offers: Reply::Answer(wire::GetPluginCapabilitiesResponse::default()),
            probe: Reply::Answer(wire::ProbeResponse { ready: Some(true) }),
            controller: Reply::Answer(wire::ControllerGetCapabilitiesResponse::default()),
            groups: Reply::Answer(wire::GroupControllerGetCapabilitiesResponse::default()),
            node: Reply::Answer(wire::NodeGetCapabilitiesResponse::default()),
            node_info: Reply::Answer(wire::NodeGetInfoResponse {
                node_id: "node-1".to_owned(),
                ..Default::default()
            }),
        }
    }
}

pub(crate) fn named(name: &str) -> wire::GetPluginInfoResponse {
    wire::GetPluginInfoResponse {
        name: name.to_owned(),
        vendor_version: "1.0.0".to_owned(),
        manifest: HashMap::new(),
    }
}

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        _: Request<wire::GetPluginInfoRequest>,
    ) -> Result<Response<wire::GetPluginInfoResponse>, Status> {
        self.info.give().await
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<wire::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<wire::GetPluginCapabilitiesResponse>, Status> {
        self.offers.give().await
    }

    async fn probe(&self, _: Request<wire::ProbeRequest>) -> Result<Response<wire::ProbeResponse>, Status> {
        self.probe.give().await
    }
}

#[tonic::async_trait]
impl Controller for Plugin {
    async fn controller_get_capabilities(
        &self,
        _: Request<wire::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::ControllerGetCapabilitiesResponse>, Status> {
        self.controller.give().await
    }
}

#[tonic::async_trait]
impl GroupController for Plugin {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<wire::GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::GroupControllerGetCapabilitiesResponse>, Status> {
        self.groups.give().await
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        _: Request<wire::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<wire::NodeGetCapabilitiesResponse>, Status> {
        self.node.give().await
    }

    async fn node_get_info(
        &self,
        _: Request<wire::NodeGetInfoRequest>,
    ) -> Result<Response<wire::NodeGetInfoResponse>, Status> {
        self.node_info.give().await
    }
}

/// A directory for sockets, and the path of one in it.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) socket: SocketPath,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("csi.sock");
        let socket = SocketPath::new(path.to_str().expect("a readable path")).expect("a short path");
        Self { directory, socket }
    }

    /// Serves a plugin from the runtime of the test.
    pub(crate) fn serve(&self, plugin: Plugin) -> Witness {
        let listener = UnixListener::bind(self.socket.as_path()).expect("the path is free");
        let witness = Witness::default();
        tokio::spawn(serve(listener, plugin, witness.clone()));
        witness
    }

    /// Serves a plugin from a thread of its own, which can be killed with all its connections.
    pub(crate) fn serve_apart(&self, plugin: Plugin) -> Apart {
        let listener = std::os::unix::net::UnixListener::bind(self.socket.as_path()).expect("free");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let entered = runtime.enter();
        let listener = UnixListener::from_std(listener).expect("a listener");
        drop(entered);
        let witness = Witness::default();
        runtime.spawn(serve(listener, plugin, witness.clone()));
        Apart { runtime: Some(runtime), witness }
    }

    pub(crate) async fn dial(&self) -> Connection {
        Connection::dial(&self.socket, Limits::default()).await.expect("the plugin listens")
    }
}

/// A plugin in a thread of its own.
pub(crate) struct Apart {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) witness: Witness,
}

impl Apart {
    /// Ends the plugin as SIGKILL would: every connection closes at once, and the socket file stays.
    pub(crate) fn kill(mut self) {
        self.runtime.take().expect("it is killed once").shutdown_background();
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(listener: UnixListener, plugin: Plugin, witness: Witness) {
    let seen = |service| Seen { service, witness: witness.clone() };
    Server::builder()
        .add_service(seen(IdentityServer::new(plugin.clone())))
        .add_service(ControllerServer::new(plugin.clone()))
        .add_service(GroupControllerServer::new(plugin.clone()))
        .add_service(NodeServer::new(plugin))
        .serve_with_incoming(UnixListenerStream::new(listener))
        .await
        .expect("the server serves");
}

/// The calls as they were on the wire.
#[derive(Clone, Default)]
pub(crate) struct Witness {
    seen: Arc<Mutex<Vec<http::request::Parts>>>,
    called: Arc<Notify>,
}

impl Witness {
    pub(crate) fn last(&self) -> http::request::Parts {
        self.seen.lock().expect("no test panicked").last().expect("there was a call").clone()
    }

    /// Waits for the next call.
    pub(crate) async fn call(&self) {
        let call = tokio::time::timeout(LONG, self.called.notified());
        call.await.expect("a call comes before long");
    }

    fn saw(&self, call: http::request::Parts) {
        self.seen.lock().expect("no test panicked").push(call);
        self.called.notify_one();
    }
}

/// A service whose calls are recorded.
#[derive(Clone)]
struct Seen<S> {
    service: S,
    witness: Witness,
}

impl<S: NamedService> NamedService for Seen<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Seen<S>
where
    S: Service<http::Request<Body>, Error = Infallible>,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (parts, body) = request.into_parts();
        self.witness.saw(parts.clone());
        self.service.call(http::Request::from_parts(parts, body))
    }
}
