//! A CSI plugin that counts its probes, in a separate process, so that its time is not the host's.

use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use callboard_actors::csi::{Connection, Limits};
use callboard_actors::vocabulary::SocketPath;
use callboard_proto::csi::v1::identity_server::{Identity, IdentityServer};
use callboard_proto::csi::v1::node_server::{Node, NodeServer};
use callboard_proto::csi::v1::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    ProbeRequest, ProbeResponse,
};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::drivers::TIMEOUT;

/// The environment variable that makes a bench run as the plugin; its value is the socket.
const SERVE: &str = "CALLBOARD_BENCH_SERVE";
/// The key of the plugin's manifest with the number of its probes.
const PROBES: &str = "probes";

/// Whether this process must run as the plugin.
pub(crate) fn is_asked_to_serve() -> bool {
    std::env::var_os(SERVE).is_some()
}

/// Runs as the plugin until the process is killed.
pub(crate) fn serve() {
    let socket = std::env::var_os(SERVE).expect("it was asked to serve");
    actix_rt::System::new().block_on(async move {
        let listener = UnixListener::bind(socket).expect("its directory is there");
        let plugin = std::sync::Arc::new(Plugin::default());
        Server::builder()
            .add_service(IdentityServer::from_arc(plugin.clone()))
            .add_service(NodeServer::from_arc(plugin))
            .serve_with_incoming(UnixListenerStream::new(listener))
            .await
            .expect("it serves until it is killed");
    });
}

/// The process; killed on drop.
pub(crate) struct Counting {
    process: Child,
    connection: Connection,
}

impl Counting {
    /// Starts this bench once more as the plugin, and waits until it listens.
    pub(crate) async fn start(socket: &SocketPath) -> Self {
        let program = std::env::current_exe().expect("this is a program");
        let process = Command::new(program).env(SERVE, socket.as_path()).spawn().expect("it starts");
        let begun = Instant::now();
        loop {
            match Connection::dial(socket, Limits::default()).await {
                Ok(connection) => return Self { process, connection },
                Err(error) => assert!(begun.elapsed() < TIMEOUT, "it does not listen: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The number of probes so far, over all connections.
    pub(crate) async fn probes(&self) -> u64 {
        let info = self.connection.plugin_info(TIMEOUT).await.expect("it answers");
        info.manifest[PROBES].parse().expect("it is a number")
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Default)]
struct Plugin {
    probes: AtomicU64,
}

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        let probes = self.probes.load(Ordering::Relaxed).to_string();
        Ok(Response::new(GetPluginInfoResponse {
            name: "counting.callboard.example".to_owned(),
            vendor_version: "0.1.0".to_owned(),
            manifest: [(PROBES.to_owned(), probes)].into(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        Ok(Response::new(GetPluginCapabilitiesResponse::default()))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        self.probes.fetch_add(1, Ordering::Relaxed);
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        Ok(Response::new(NodeGetCapabilitiesResponse::default()))
    }

    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        Ok(Response::new(NodeGetInfoResponse { node_id: "node".to_owned(), ..Default::default() }))
    }
}
