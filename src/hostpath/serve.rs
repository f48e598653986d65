//! The lifecycle of the plugin: wait, listen, serve until told to stop, remove the socket.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::vocabulary::{Role, SocketPath};
use callboard_proto::csi::v1::controller_server::ControllerServer;
use callboard_proto::csi::v1::identity_server::IdentityServer;
use callboard_proto::csi::v1::node_server::NodeServer;
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::arguments::HostpathArgs;
use super::error::HostpathError;
use super::faults::Faults;
use super::socket::Socket;
use crate::plugin::accepted;

/// The timeout for calls in flight at shutdown.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The plugin, on which all services are implemented, one per file.
pub(super) struct Plugin {
    pub(super) args: HostpathArgs,
    pub(super) faults: Faults,
}

/// Runs the plugin until SIGTERM or SIGINT arrives. Then calls in flight end within one second, and its socket is removed.
///
/// # Errors
/// It cannot listen, the server fails, or it crashes as requested. The socket then stays; the next start removes it.
pub async fn serve(args: HostpathArgs) -> Result<(), HostpathError> {
    let told_to_stop = told_to_stop(args.faults.ignore_sigterm)?;
    let plugin = Arc::new(Plugin { faults: Faults::begin(&args.faults)?, args });
    tokio::select! {
        lived = live(&plugin, told_to_stop) => lived,
        code = plugin.faults.crash() => Err(HostpathError::Crash { code }),
    }
}

async fn live(plugin: &Arc<Plugin>, told_to_stop: impl Future<Output = ()>) -> Result<(), HostpathError> {
    let mut told_to_stop = std::pin::pin!(told_to_stop);
    let pause = plugin.args.faults.listen_after.unwrap_or_default();
    if !pause.is_zero() {
        tracing::info!(pause = ?pause, "listening later, as --listen-after demands");
    }
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = &mut told_to_stop => return Ok(()),
    }
    let path = &plugin.args.endpoint;
    let (socket, listener) = Socket::listen(path)?;
    tracing::info!(endpoint = %path, role = %plugin.args.role, name = plugin.args.name, "serving");
    serve_until(services(plugin), listener, told_to_stop, path).await?;
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
    Server::builder()
        .add_service(IdentityServer::from_arc(plugin.clone()))
        .add_optional_service(controller.then(|| ControllerServer::from_arc(plugin.clone())))
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
    let serving = services.serve_with_incoming_shutdown(accepted(listener), told_to_stop);
    let grace_is_over = async {
        if stops.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        served = serving => served.map_err(|source| HostpathError::Serve { path: path.clone(), source }),
        () = grace_is_over => {
            tracing::warn!(endpoint = %path, grace = ?STOP_GRACE, "calls in flight cut off");
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
