//! The lifecycle of a plugin: listen, print the handshake line, serve until requested to stop, remove the socket.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::vocabulary::milliseconds;
use callboard_actors::vocabulary::text::escaped;
use callboard_proto::base::base_plugin_server::BasePluginServer;
use callboard_proto::drivers::driver_server::DriverServer;
use callboard_proto::goplugin::grpc_controller_server::GrpcControllerServer;
use callboard_proto::goplugin::grpc_stdio_server::GrpcStdioServer;
use futures_util::Stream;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic_health::ServingStatus;

use super::accepted::{Accepted, accepted};
use super::driver::Driver;
use super::environment::{Cookie, Environment};
use super::error::ServeError;
use super::line::HandshakeLine;
use super::log::log_to_host;
use super::printed::Printed;
use super::services::{Control, Served, Stdio};
use super::socket::Socket;
use super::stopping::Stopping;

/// The application versions that a driver speaks (D100).
const APP_VERSIONS: [u32; 1] = [2];
/// The service name that hosts use in health checks (D50).
const HEALTH_SERVICE: &str = "plugin";
/// The timeout for calls in flight at shutdown; hosts kill after two seconds (D60).
const STOP_GRACE: Duration = Duration::from_secs(1);
/// The largest message that is accepted, in bytes; the limit of hosts is higher (D41).
const MESSAGE_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Runs a plugin: logs for its host, serves the driver on this thread until requested to stop, and returns the exit code. An error goes to
/// standard error, in words for a person who may have started the program by hand (D36).
pub fn run<D: Driver>(driver: D) -> ExitCode {
    log_to_host();
    let served = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)
        .and_then(|runtime| runtime.block_on(serve(driver)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If this fails, no channel is left to report it on.
            let _ = writeln!(io::stderr(), "{}", escaped(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Serves a driver until SIGTERM arrives or the host shuts it down. SIGINT is ignored: it is meant for the host (D31).
///
/// # Errors
/// [`ServeError`]; the socket is removed in every case.
pub async fn serve<D: Driver>(driver: D) -> Result<(), ServeError> {
    let environment = Environment::of_this_process(&Cookie::NOMAD)?;
    let listening = Listening::begin(&environment)?;
    print(&listening.line().to_string()).map_err(ServeError::Line)?;
    listening.serve(driver, Conduct::default()).await
}

pub(crate) fn print(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// The plugin's behaviour towards its host. By default it is correct; the reference driver can misbehave on request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conduct {
    /// Whether it obeys SIGTERM.
    pub(crate) hears_sigterm: bool,
    /// Whether it obeys `Shutdown`.
    pub(crate) hears_shutdown: bool,
    /// Whether it answers health checks.
    pub(crate) answers_health: bool,
    /// Whether it redirects its standard output, away from the host.
    pub(crate) keeps_output: bool,
    /// Called with each connection, in addition to serving it.
    pub(crate) on_connection: Option<fn(&UnixStream)>,
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            hears_sigterm: true,
            hears_shutdown: true,
            answers_health: true,
            keeps_output: true,
            on_connection: None,
        }
    }
}

/// A plugin that listens and has not printed its line yet. Drop removes the socket.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: Socket,
    listener: UnixListener,
    line: HandshakeLine,
    signals: Signals,
}

/// The signals of the plugin. Their handlers are installed before the host can send one.
#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Listening {
    /// Listens in the host's directory (D8, D32).
    pub(crate) fn begin(environment: &Environment) -> Result<Self, ServeError> {
        if environment.asks_for_certificate {
            tracing::warn!(
                "the host demands TLS certificates, which this plugin does not support; the handshake line says so"
            );
        }
        let heard = |kind| signal(kind).map_err(ServeError::Signals);
        let signals = Signals {
            terminate: heard(SignalKind::terminate())?,
            interrupt: heard(SignalKind::interrupt())?,
        };
        let (socket, listener) = Socket::listen(environment)?;
        let line = HandshakeLine {
            app_version: environment.choose(&APP_VERSIONS),
            socket: socket.path().to_owned(),
            answers_multiplexing: environment.asks_for_multiplexing,
        };
        Ok(Self { socket, listener, line, signals })
    }

    pub(crate) const fn line(&self) -> &HandshakeLine {
        &self.line
    }

    /// Waits for SIGTERM before the plugin serves.
    #[cfg(feature = "cli")]
    pub(crate) async fn terminated(&mut self) {
        self.signals.terminate.recv().await;
    }

    /// Serves until requested to stop. Must be called after the line has been printed.
    pub(crate) async fn serve<D: Driver>(self, driver: D, conduct: Conduct) -> Result<(), ServeError> {
        let Self { socket, listener, signals, .. } = self;
        let stopping = Stopping::new();
        tokio::spawn(signals.obey(stopping.clone(), conduct.hears_sigterm));
        let printed = Printed::default();
        let output = conduct.keeps_output.then(|| printed.begin()).transpose().map_err(ServeError::Output)?;
        let served = Served { driver: Arc::new(driver), stopping: stopping.clone() };
        let router = services(served, printed, conduct).await;
        tracing::info!(socket = %socket.path().display(), "serving");
        serve_until(router, accepted(listener, conduct.on_connection), &stopping).await?;
        drop((socket, output));
        tracing::info!("stopped");
        Ok(())
    }
}

async fn services<D: Driver>(served: Served<D>, printed: Printed, conduct: Conduct) -> Router {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status(HEALTH_SERVICE, ServingStatus::Serving).await;
    let silent = super::silent::SilentHealth::server();
    let stopping = served.stopping.clone();
    let control = Control { stopping: conduct.hears_shutdown.then(|| stopping.clone()) };
    let base = BasePluginServer::new(served.clone());
    let tasks = DriverServer::new(served).max_decoding_message_size(MESSAGE_BYTES_MAX);
    Server::builder()
        .add_service(base)
        .add_service(tasks)
        .add_service(GrpcControllerServer::new(control))
        .add_service(GrpcStdioServer::new(Stdio { printed, stopping }))
        .add_optional_service(conduct.answers_health.then_some(health))
        .add_optional_service((!conduct.answers_health).then_some(silent))
}

async fn serve_until(
    services: Router,
    connections: impl Stream<Item = io::Result<Accepted>>,
    stopping: &Stopping,
) -> Result<(), ServeError> {
    let told = stopping.clone();
    let serving = services.serve_with_incoming_shutdown(connections, async move { told.told().await });
    let grace_is_over = async {
        stopping.told().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        served = serving => served.map_err(ServeError::Server),
        () = grace_is_over => {
            tracing::warn!(grace_ms = milliseconds(STOP_GRACE), "aborted calls in flight");
            Ok(())
        }
    }
}

impl Signals {
    /// SIGTERM stops the plugin; SIGINT has no effect.
    async fn obey(mut self, stopping: Stopping, hears_sigterm: bool) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => tracing::debug!("interrupt ignored"),
                _ = self.terminate.recv() => match hears_sigterm {
                    true => stopping.tell("it was sent SIGTERM"),
                    false => tracing::warn!("signal ignored, as was demanded"),
                },
            }
        }
    }
}
