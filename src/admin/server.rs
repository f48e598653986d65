//! The server of the admin socket.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::instance::InstanceLimits;
use callboard_actors::inventory::InventoryOptions;
use callboard_actors::logmon::LogsView;
use callboard_actors::shell::{Address, StopMode};
use callboard_actors::supervisor::ShutdownReport;
use callboard_actors::topology::Topology;
use callboard_actors::vocabulary::{AllocationId, PluginName, SocketPath, Timestamp};
use callboard_actors::volume::VolumeKey;
use callboard_proto::admin::v1::admin_server;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;

use super::connections::{check_peer, connections};
use super::error::SocketError;
use super::events::EventLog;
use super::service::Service;
use super::socket::SocketFile;
use super::stopping::Stopping;
use crate::agent::Agent;
use crate::host::Host;
use crate::tasks::Tasks;
use crate::usage::UsageView;
use crate::volumes::{Claimer, ConfiguredSecrets};

/// Requests of one connection that are handled at once.
const QUESTIONS_MAX: usize = 32;
/// The largest request: it names one or two allocations or the volumes of a group, or has the parameters and mount flags of a volume. The
/// limit is small because all connections together may hold as many half-sent requests as there are connections and places for requests.
const QUESTION_BYTES_MAX: usize = 16 * 1024;
/// How many bytes of unread requests one connection may use of our memory.
const WINDOW_BYTES: u32 = 64 * 1024;
/// The largest headers of a request.
const HEADERS_BYTES_MAX: u32 = 4 * 1024;
/// How long clients may take to disconnect when the server ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait after that for the removal of the socket file.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(1);

/// The sources of the answers of the server.
#[derive(Debug)]
pub struct Sources {
    /// The host.
    pub host: Host,
    /// The agent that runs the plugin workloads.
    pub agent: Address<Agent>,
    /// The owner of the tasks that drivers run.
    pub tasks: Address<Tasks>,
    /// The volumes of the configuration, and how they are registered with their owner.
    pub volumes: Claimer,
    /// The secrets of volumes.
    pub secrets: Arc<ConfiguredSecrets>,
    /// The volumes that allocations and tasks of the configuration use, with a description of one of these users.
    pub volume_users: BTreeMap<VolumeKey, String>,
    /// The plugins that an allocation of the configuration serves as controller.
    pub controllers: BTreeSet<PluginName>,
    /// The allocations of an earlier configuration that left something behind.
    pub departed: Vec<AllocationId>,
    /// The processors that tasks may use.
    pub topology: Arc<Topology>,
    /// Which control groups tasks have: `v2`, `v1`, or `none` with the reason.
    pub control_groups: String,
    /// The state of the logs of tasks.
    pub logs: watch::Receiver<LogsView>,
    /// The resource usage of tasks.
    pub usage: watch::Receiver<UsageView>,
    /// The watch limits of a plugin if its allocation does not set them.
    pub limits: InstanceLimits,
    /// How long the offers of such an allocation are kept.
    pub inventory_options: InventoryOptions,
    /// When this run of the host began.
    pub started_at: Timestamp,
    /// The progress of a stop of the host.
    pub stopping: watch::Receiver<Option<Stopping>>,
    /// The destination of a request to stop the host.
    pub shutdown: mpsc::Sender<ShutdownOrder>,
}

/// A request to stop the host, and the channel for its report.
#[derive(Debug)]
pub struct ShutdownOrder {
    /// Whether to stop everything, or to leave running what survives a host.
    pub mode: StopMode,
    /// Receives the report.
    pub reply: oneshot::Sender<ShutdownReport>,
}

/// A served admin socket.
#[derive(Debug)]
pub struct AdminServer {
    file: SocketFile,
    stop: oneshot::Sender<Infallible>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
    events: EventLog,
}

/// An admin socket that is bound and not served yet: clients wait.
#[derive(Debug)]
pub struct AdminSocket {
    file: SocketFile,
    listener: UnixListener,
}

impl AdminSocket {
    /// Binds a socket.
    ///
    /// # Errors
    /// When the socket is in use, belongs to another user, or the system refuses it.
    pub fn bind(path: &SocketPath, data_dir: &Path) -> Result<Self, SocketError> {
        let (file, listener) = SocketFile::listen(path, data_dir)?;
        tracing::info!(path = %path, "serving the admin socket");
        Ok(Self { file, listener })
    }

    /// Removes the socket: no host will serve it.
    pub async fn remove(self) {
        remove(self.file).await;
    }

    /// Serves the socket, on the present arbiter.
    #[must_use]
    pub fn serve(self, sources: Sources, events: EventLog) -> AdminServer {
        let Self { file, listener } = self;
        let service = admin_server::AdminServer::new(Service::new(sources, events.events.clone()));
        let service = service.max_decoding_message_size(QUESTION_BYTES_MAX);
        let service = InterceptedService::new(service, check_peer);
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let serving = Server::builder()
            .concurrency_limit_per_connection(QUESTIONS_MAX)
            .max_concurrent_streams(u32::try_from(QUESTIONS_MAX).ok())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .http2_max_header_list_size(HEADERS_BYTES_MAX)
            .add_service(service)
            // The sender is dropped to stop it.
            .serve_with_incoming_shutdown(connections(listener), async { drop(stopped.await) });
        AdminServer { file, stop, task: actix_rt::spawn(serving), events }
    }
}

impl AdminServer {
    /// Accepts no more connections, sends the answers in progress, and removes the socket. A file system that does not respond delays no
    /// answer of the host, and delays its end only up to a timeout.
    pub async fn stop(self) {
        let Self { file, stop, mut task, events } = self;
        drop(events);
        let removed = remove(file);
        drop(stop);
        match timeout(CLOSE_TIMEOUT, &mut task).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(error = %error, "the admin socket ended"),
            Ok(Err(error)) => tracing::warn!(error = %error, "the admin socket ended"),
            Err(_elapsed) => task.abort(),
        }
        removed.await;
    }
}

/// Begins to remove the socket at once, on a thread of its own. Ends when the socket is removed, or after a timeout if its file system does
/// not respond.
fn remove(file: SocketFile) -> impl Future<Output = ()> {
    let (done, is_done) = oneshot::channel::<Infallible>();
    let begun = std::thread::Builder::new().name("admin socket".to_owned()).spawn(move || {
        file.remove();
        drop(done);
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "cannot remove the admin socket: no thread could be started");
    }
    async move {
        if timeout(REMOVE_TIMEOUT, is_done).await.is_err() {
            tracing::warn!(
                "the admin socket is not removed yet: its file system has given no answer for {REMOVE_TIMEOUT:?}"
            );
        }
    }
}
