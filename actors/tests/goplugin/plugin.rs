//! A plugin in this process whose behaviour is set by a test.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callboard_actors::goplugin::{CallError, Connection, Limits, PluginEndpoint};
use callboard_proto::base::base_plugin_server::{BasePlugin, BasePluginServer};
use callboard_proto::{base, goplugin as wire};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::Stream;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use wire::grpc_controller_server::{GrpcController, GrpcControllerServer};
use wire::grpc_stdio_server::{GrpcStdio, GrpcStdioServer};

/// Longer than anything in these tests takes, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A deadline for a call that is expected to hang.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<wire::StdioData, Status>> + Send>>;

/// The plugin's reaction to a call.
#[derive(Clone)]
pub(crate) enum Reply<T> {
    Answer(T),
    Fail(Status),
    Hang,
}

impl<T: Clone> Reply<T> {
    async fn give(&self) -> Result<Response<T>, Status> {
        match self {
            Self::Answer(answer) => Ok(Response::new(answer.clone())),
            Self::Fail(status) => Err(status.clone()),
            Self::Hang => std::future::pending().await,
        }
    }
}

/// The output of a plugin, and what follows it.
#[derive(Clone)]
pub(crate) enum Prints {
    /// These pieces, and then the end of the stream.
    Pieces(Vec<wire::StdioData>),
    /// Nothing yet: like a Go server it does not even open the stream.
    NothingYet,
    Fail(Status),
}

/// The plugin's reaction to each call.
#[derive(Clone)]
pub(crate) struct Plugin {
    pub(crate) health: Reply<HealthCheckResponse>,
    pub(crate) info: Reply<base::PluginInfoResponse>,
    pub(crate) schema: Reply<base::ConfigSchemaResponse>,
    pub(crate) config: Reply<base::SetConfigResponse>,
    pub(crate) shutdown: Reply<wire::Empty>,
    pub(crate) prints: Prints,
    /// The requests that it received, with their contents.
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
}

impl Default for Plugin {
    fn default() -> Self {
        Self {
            health: Reply::Answer(HealthCheckResponse { status: 1 }),
            info: Reply::Answer(info()),
            schema: Reply::Answer(base::ConfigSchemaResponse::default()),
            config: Reply::Answer(base::SetConfigResponse {}),
            shutdown: Reply::Answer(wire::Empty {}),
            prints: Prints::Pieces(Vec::new()),
            heard: Arc::default(),
        }
    }
}

pub(crate) fn info() -> base::PluginInfoResponse {
    base::PluginInfoResponse {
        r#type: base::PluginType::Driver.into(),
        plugin_api_versions: vec!["v0.1.0".to_owned()],
        plugin_version: "1.2.3".to_owned(),
        name: "exec".to_owned(),
    }
}

impl Plugin {
    fn hears(&self, said: String) {
        self.heard.lock().expect("no test panicked").push(said);
    }

    /// All services that every plugin of go-plugin and Nomad has.
    pub(crate) fn router(&self) -> Router {
        Server::builder()
            .add_service(HealthServer::new(self.clone()))
            .add_service(BasePluginServer::new(self.clone()))
            .add_service(GrpcControllerServer::new(self.clone()))
            .add_service(GrpcStdioServer::new(self.clone()))
    }
}

#[tonic::async_trait]
impl Health for Plugin {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        self.hears(format!("health of {}", request.get_ref().service));
        self.health.give().await
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("no host watches"))
    }
}

#[tonic::async_trait]
impl BasePlugin for Plugin {
    async fn plugin_info(
        &self,
        request: Request<base::PluginInfoRequest>,
    ) -> Result<Response<base::PluginInfoResponse>, Status> {
        let told = request.metadata().get("grpc-timeout").map(|told| format!("{told:?}"));
        self.hears(format!("info within {}", told.unwrap_or_default()));
        self.info.give().await
    }

    async fn config_schema(
        &self,
        _: Request<base::ConfigSchemaRequest>,
    ) -> Result<Response<base::ConfigSchemaResponse>, Status> {
        self.schema.give().await
    }

    async fn set_config(
        &self,
        request: Request<base::SetConfigRequest>,
    ) -> Result<Response<base::SetConfigResponse>, Status> {
        let base::SetConfigRequest { msgpack_config, nomad_config, plugin_api_version } =
            request.into_inner();
        self.hears(format!("config {msgpack_config:?} {} {plugin_api_version}", nomad_config.is_some()));
        self.config.give().await
    }
}

#[tonic::async_trait]
impl GrpcController for Plugin {
    async fn shutdown(&self, _: Request<wire::Empty>) -> Result<Response<wire::Empty>, Status> {
        self.hears("shutdown".to_owned());
        self.shutdown.give().await
    }
}

#[tonic::async_trait]
impl GrpcStdio for Plugin {
    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Pieces>, Status> {
        self.hears("stdio".to_owned());
        match &self.prints {
            Prints::Pieces(pieces) => {
                Ok(Response::new(Box::pin(tokio_stream::iter(pieces.clone().into_iter().map(Ok)))))
            }
            Prints::NothingYet => std::future::pending().await,
            Prints::Fail(status) => Err(status.clone()),
        }
    }
}

/// A directory for a socket, and the endpoint in it.
pub(crate) struct Place {
    _directory: TempDir,
    pub(crate) endpoint: PluginEndpoint,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let endpoint = PluginEndpoint::Unix(directory.path().join("plugin1"));
        Self { _directory: directory, endpoint }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.endpoint.socket_path().expect("it is a Unix socket")
    }

    /// Serves from the runtime of the test.
    pub(crate) fn serve(&self, router: Router) {
        let listener = UnixListener::bind(self.path()).expect("the path is free");
        tokio::spawn(router.serve_with_incoming(UnixListenerStream::new(listener)));
    }

    /// Serves from a thread of its own, which can be killed with all its connections.
    pub(crate) fn serve_apart(&self, router: Router) -> Apart {
        let listener = std::os::unix::net::UnixListener::bind(self.path()).expect("the path is free");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let entered = runtime.enter();
        let listener = UnixListener::from_std(listener).expect("a listener");
        drop(entered);
        runtime.spawn(router.serve_with_incoming(UnixListenerStream::new(listener)));
        Apart(Some(runtime))
    }

    pub(crate) async fn dial(&self) -> Connection {
        Connection::dial(&self.endpoint, Limits::default()).await.expect("the plugin listens")
    }

    pub(crate) async fn refused(&self) -> CallError {
        Connection::dial(&self.endpoint, Limits::default()).await.expect_err("no plugin can be reached")
    }
}

/// Serves a plugin and connects to it.
pub(crate) async fn connected(plugin: &Plugin) -> (Place, Connection) {
    let place = Place::new();
    place.serve(plugin.router());
    let connection = place.dial().await;
    (place, connection)
}

/// Serves a plugin on a port of this machine.
pub(crate) async fn serve_on_port(router: Router) -> PluginEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = PluginEndpoint::Tcp(listener.local_addr().expect("it is bound"));
    tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
    endpoint
}

/// A plugin in a thread of its own.
pub(crate) struct Apart(Option<tokio::runtime::Runtime>);

impl Apart {
    /// Ends the plugin as SIGKILL would: every connection closes at once, and the socket file stays.
    pub(crate) fn kill(mut self) {
        self.0.take().expect("it is killed once").shutdown_background();
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits until a plugin has received this request.
pub(crate) async fn heard(plugin: &Plugin, said: &str) {
    let looking = async {
        while !plugin.heard.lock().expect("no test panicked").iter().any(|heard| heard == said) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LONG, looking).await.expect("it hears it before long");
}
