//! The lifecycle of the plugin: wait, listen, serve until requested to stop, remove the socket.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::vocabulary::{Role, SocketPath, milliseconds};
use callboard_proto::csi::v1::controller_server::ControllerServer;
use callboard_proto::csi::v1::controller_service_capability::rpc::Type as ControllerClaim;
use callboard_proto::csi::v1::group_controller_server::GroupControllerServer;
use callboard_proto::csi::v1::identity_server::IdentityServer;
use callboard_proto::csi::v1::node_server::NodeServer;
use callboard_proto::csi::v1::node_service_capability::rpc::Type as NodeClaim;
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::arguments::HostpathArgs;
use super::calls::InFlight;
use super::error::HostpathError;
use super::faults::Faults;
use super::socket::Socket;
use super::volumes::{Claims, Settings, Volumes};
use super::{controller, node};
use crate::plugin::accepted;

/// The timeout for calls in flight at shutdown.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The plugin, on which all services are implemented, one per file.
pub(crate) struct Plugin {
    pub(crate) args: HostpathArgs,
    pub(super) faults: Faults,
    pub(crate) controller_claims: Vec<ControllerClaim>,
    pub(crate) node_claims: Vec<NodeClaim>,
    pub(super) volumes: Option<Arc<Volumes>>,
    pub(super) in_flight: InFlight,
}

impl Plugin {
    /// The plugin of these arguments, with the volumes of its directory.
    ///
    /// # Errors
    /// When the directory of the volumes, or the mark of an earlier run, cannot be used.
    pub(crate) fn begin(args: HostpathArgs) -> Result<Self, HostpathError> {
        let has_volumes = args.volumes.is_some();
        let controller_claims = controller::claimed(&args.controller_capability, has_volumes);
        let node_claims = node::claimed(&args.node_capability, has_volumes);
        let claims = Claims {
            attaches: !args.without_controller
                && controller_claims.contains(&ControllerClaim::PublishUnpublishVolume),
            stages: node_claims.contains(&NodeClaim::StageUnstageVolume),
            expands_offline: args.offline_expansion,
            expands_on_node: node_claims.contains(&NodeClaim::ExpandVolume),
        };
        let open = |directory: &PathBuf| {
            let settings = Settings {
                directory: directory.clone(),
                capacity: args.capacity,
                nodes: std::iter::once(args.node_id()).chain(args.other_node.iter().cloned()).collect(),
                attached_max: args.max_volumes,
                topology: args.topology(),
                claims,
            };
            let failed = |source| HostpathError::Volumes { directory: directory.clone(), source };
            Volumes::open(settings).map(Arc::new).map_err(failed)
        };
        let volumes = args.volumes.as_ref().map(open).transpose()?;
        let (faults, in_flight) = (Faults::begin(&args.faults)?, InFlight::default());
        Ok(Self { args, faults, controller_claims, node_claims, volumes, in_flight })
    }

    pub(super) const fn has_volumes(&self) -> bool {
        self.volumes.is_some()
    }

    /// Whether it takes snapshots of groups of volumes.
    pub(crate) fn offers_groups(&self) -> bool {
        self.has_volumes() && self.controller_claims.contains(&ControllerClaim::CreateDeleteSnapshot)
    }
}

/// Runs the plugin until SIGTERM or SIGINT arrives. Then calls in flight end within one second, and its socket is removed.
///
/// # Errors
/// When it cannot listen, the server fails, or it crashes as requested. The socket then stays; the next start removes it.
pub async fn serve(args: HostpathArgs) -> Result<(), HostpathError> {
    let plugin = Arc::new(Plugin::begin(args)?);
    serve_as(&plugin, services(&plugin)).await
}

/// Runs the plugin as [`serve`] does, with these services in front of it.
///
/// # Errors
/// As those of [`serve`].
pub(crate) async fn serve_as(plugin: &Arc<Plugin>, services: Router) -> Result<(), HostpathError> {
    let told_to_stop = told_to_stop(plugin.args.faults.ignore_sigterm)?;
    tokio::select! {
        lived = live(plugin, services, told_to_stop) => lived,
        code = plugin.faults.crash() => Err(HostpathError::Crash { code }),
    }
}

async fn live(
    plugin: &Arc<Plugin>,
    services: Router,
    told_to_stop: impl Future<Output = ()>,
) -> Result<(), HostpathError> {
    let mut told_to_stop = std::pin::pin!(told_to_stop);
    let pause = plugin.args.faults.listen_after.unwrap_or_default();
    if !pause.is_zero() {
        tracing::info!(pause_ms = milliseconds(pause), "listening later, as --listen-after demands");
    }
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = &mut told_to_stop => return Ok(()),
    }
    let path = &plugin.args.endpoint;
    let (socket, listener) = Socket::listen(path)?;
    tracing::info!(endpoint = %path, role = %plugin.args.role, name = plugin.args.name, "serving");
    serve_until(services, listener, told_to_stop, path).await?;
    socket.remove();
    tracing::info!(endpoint = %path, "stopped");
    Ok(())
}

/// The services of the plugin's role, all on one socket (C173).
fn services(plugin: &Arc<Plugin>) -> Router {
    let (controller, node) = match plugin.args.role {
        Role::Controller => (true, false),
        Role::Node => (false, true),
        Role::Monolith => (true, true),
    };
    let groups = controller && plugin.offers_groups();
    Server::builder()
        .add_service(IdentityServer::from_arc(plugin.clone()))
        .add_optional_service(controller.then(|| ControllerServer::from_arc(plugin.clone())))
        .add_optional_service(groups.then(|| GroupControllerServer::from_arc(plugin.clone())))
        .add_optional_service(node.then(|| NodeServer::from_arc(plugin.clone())))
}

async fn serve_until(
    services: Router,
    listener: UnixListener,
    told_to_stop: impl Future<Output = ()>,
    path: &SocketPath,
) -> Result<(), HostpathError> {
    let (stopping, stops) = oneshot::channel();
    let told_to_stop = async {
        told_to_stop.await;
        tracing::info!(endpoint = %path, "told to stop");
        // The receiver is gone only if serving has ended already.
        let _ = stopping.send(());
    };
    let serving = services.serve_with_incoming_shutdown(accepted(listener, None), told_to_stop);
    let grace_is_over = async {
        if stops.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        served = serving => served.map_err(|source| HostpathError::Serve { path: path.clone(), source }),
        () = grace_is_over => {
            tracing::warn!(endpoint = %path, grace_ms = milliseconds(STOP_GRACE), "aborted calls in flight");
            Ok(())
        }
    }
}

/// Installs the signal handlers; the future ends at the first signal that stops the plugin.
fn told_to_stop(ignore_sigterm: bool) -> Result<impl Future<Output = ()>, HostpathError> {
    let heard = |kind| signal(kind).map_err(|source| HostpathError::Signals { source });
    let mut terminate = heard(SignalKind::terminate())?;
    let mut interrupt = heard(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            () = unless_ignored(&mut terminate, ignore_sigterm) => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn unless_ignored(signal: &mut Signal, ignored: bool) {
    loop {
        signal.recv().await;
        if !ignored {
            return;
        }
        tracing::warn!("signal ignored, as --ignore-sigterm demands");
    }
}
