//! A task driver that acts as a script requires: a real plugin on a real socket, in a task instead of a process.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_proto::base::base_plugin_server::BasePluginServer;
use callboard_proto::drivers as wire;
use callboard_proto::drivers::driver_server::DriverServer;
use callboard_proto::goplugin::grpc_controller_server::GrpcControllerServer;
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::{UnboundedReceiverStream, UnixListenerStream};
use tonic::Status;
use tonic::codegen::BoxStream;
use tonic::transport::Server;

use super::acting::{Act, Acting, Acts};
use super::driver_networks::Networks;
use super::driver_tasks::{TaskEnding, Tasks};

/// The service whose health a go-plugin host checks.
const HEALTH_SERVICE: &str = "plugin";

/// A state of health that the protocol does not know.
const UNKNOWN_HEALTH: i32 = 7;

/// The version of the protocol that a driver and its host speak unless a script sets another.
pub(super) const VERSION: u32 = 2;

/// The calls whose answers a script can set, by their names in the protocol.
pub(super) const CALLS: [&str; 18] = [
    "PluginInfo",
    "SetConfig",
    "Shutdown",
    "Capabilities",
    "Fingerprint",
    "TaskEvents",
    "StartTask",
    "RecoverTask",
    "WaitTask",
    "StopTask",
    "DestroyTask",
    "InspectTask",
    "SignalTask",
    "ExecTask",
    "ExecTaskStreaming",
    "CreateNetwork",
    "DestroyNetwork",
    "TaskConfigSchema",
];

/// The health that a driver reports, as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wellbeing {
    Undetected = 0,
    Unhealthy = 1,
    Healthy = 2,
}

/// A stream of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Fingerprint,
    Events,
}

/// The sender of a stream. The stream ends when this is dropped.
pub(super) type Says<T> = mpsc::UnboundedSender<Result<T, Status>>;

/// The state and the settings of a driver.
pub(super) struct Book {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) wellbeing: Wellbeing,
    pub(super) reason: String,
    pub(super) fingerprints: Option<Says<wire::FingerprintResponse>>,
    pub(super) events: Option<Says<wire::DriverTaskEvent>>,
    /// The version of the protocol that its next process speaks.
    pub(super) protocol: u32,
    /// Whether only SIGKILL ends its process.
    pub(super) ignores_sigterm: bool,
    /// Whether its events have positions, and can be repeated.
    pub(super) keeps_positions: bool,
    pub(super) journal: Vec<wire::DriverTaskEvent>,
    pub(super) tasks: Tasks,
    pub(super) networks: Networks,
    acts: Acts,
}

/// A driver. Clones are the same driver, whichever process it is in.
#[derive(Clone)]
pub(super) struct DriverPlugin {
    book: Arc<Mutex<Book>>,
    pub(super) leaves: Arc<Notify>,
}

impl DriverPlugin {
    pub(super) fn new(name: &str) -> Self {
        let book = Book {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            wellbeing: Wellbeing::Healthy,
            reason: String::new(),
            fingerprints: None,
            events: None,
            protocol: VERSION,
            ignores_sigterm: false,
            keeps_positions: true,
            journal: Vec::new(),
            tasks: Tasks::default(),
            networks: Networks::default(),
            acts: Acts::default(),
        };
        Self { book: Arc::new(Mutex::new(book)), leaves: Arc::default() }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how it answers this call from now on.
    pub(super) fn on(&self, call: &'static str, acting: Acting) {
        self.book().acts.on(call, acting);
    }

    /// All calls since the last request for them.
    pub(super) fn take_calls(&self) -> Vec<&'static str> {
        self.book().acts.take_calls()
    }

    /// Plays one call, up to the answer.
    pub(super) async fn play(&self, call: &'static str) -> Result<Act, Status> {
        let acting = self.book().acts.called(call);
        acting.play().await
    }

    /// Lets a task end by itself. False means that no such task runs.
    pub(super) fn end_task(&self, id: &str, ending: TaskEnding) -> bool {
        self.book().tasks.end(id, ending)
    }

    pub(super) fn set_version(&self, version: &str) {
        version.clone_into(&mut self.book().version);
    }

    pub(super) fn set_protocol(&self, version: u32) {
        self.book().protocol = version;
    }

    pub(super) fn set_ignores_sigterm(&self, ignores: bool) {
        self.book().ignores_sigterm = ignores;
    }

    pub(super) fn set_keeps_positions(&self, keeps: bool) {
        self.book().keeps_positions = keeps;
    }

    /// Sets its health from now on, and reports it at once to subscribers.
    pub(super) fn set_wellbeing(&self, wellbeing: Wellbeing, reason: &str) {
        let mut book = self.book();
        (book.wellbeing, book.reason) = (wellbeing, reason.to_owned());
        let fingerprint = fingerprint(&book);
        if let Some(says) = &book.fingerprints {
            let _ = says.send(Ok(fingerprint));
        }
    }

    /// Reports an event of a task.
    pub(super) fn tell(&self, allocation: &str, task: &str, message: &str) {
        let mut book = self.book();
        let mut event = wire::DriverTaskEvent {
            task_id: format!("{allocation}/{task}"),
            alloc_id: allocation.to_owned(),
            task_name: task.to_owned(),
            message: message.to_owned(),
            ..Default::default()
        };
        if book.keeps_positions {
            let sequence = book.journal.len() + 1;
            event.annotations.insert("callboard.stream".to_owned(), book.name.clone());
            event.annotations.insert("callboard.sequence".to_owned(), sequence.to_string());
            book.journal.push(event.clone());
        }
        if let Some(says) = &book.events {
            let _ = says.send(Ok(event));
        }
    }

    /// Sends something in one of its streams that violates the protocol. False means that no such stream is open.
    pub(super) fn garble(&self, kind: StreamKind) -> bool {
        let book = self.book();
        let unknown = wire::FingerprintResponse { health: UNKNOWN_HEALTH, ..Default::default() };
        match kind {
            StreamKind::Fingerprint => {
                book.fingerprints.as_ref().is_some_and(|says| says.send(Ok(unknown)).is_ok())
            }
            StreamKind::Events => {
                book.events.as_ref().is_some_and(|says| says.send(Ok(Default::default())).is_ok())
            }
        }
    }

    /// Ends one of its streams: with an error, or in order. False means that no such stream is open.
    pub(super) fn end_stream(&self, kind: StreamKind, how: Option<Status>) -> bool {
        let mut book = self.book();
        match kind {
            StreamKind::Fingerprint => end(book.fingerprints.take(), how),
            StreamKind::Events => end(book.events.take(), how),
        }
    }

    /// Listens at once, and returns a future that serves until it is dropped or the driver is shut down. Must be called in the runtime.
    pub(super) fn serve(&self, socket: &Path) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        self.book().tasks.lose_sight();
        let incoming = UnixListenerStream::new(UnixListener::bind(socket)?);
        let plugin = self.clone();
        Ok(async move {
            let (reporter, health) = tonic_health::server::health_reporter();
            reporter.set_service_status(HEALTH_SERVICE, tonic_health::ServingStatus::Serving).await;
            let leaves = Arc::clone(&plugin.leaves);
            let serving = Server::builder()
                .add_service(health)
                .add_service(BasePluginServer::new(plugin.clone()))
                .add_service(GrpcControllerServer::new(plugin.clone()))
                .add_service(DriverServer::new(plugin))
                .serve_with_incoming(incoming);
            tokio::select! {
                served = serving => drop(served),
                () = leaves.notified() => {}
            }
        })
    }
}

/// A stream that sends these items at once, and then what it receives.
pub(super) fn stream<T: Send + 'static>(first: impl IntoIterator<Item = T>) -> (Says<T>, BoxStream<T>) {
    let (says, said) = mpsc::unbounded_channel();
    for item in first {
        let _ = says.send(Ok(item));
    }
    (says, Box::pin(UnboundedReceiverStream::new(said)))
}

/// Ends a stream. False means that there is none, or that it has no reader.
fn end<T>(stream: Option<Says<T>>, how: Option<Status>) -> bool {
    stream.is_some_and(|says| match how {
        Some(status) => says.send(Err(status)).is_ok(),
        None => !says.is_closed(),
    })
}

/// Its present fingerprint.
pub(super) fn fingerprint(book: &Book) -> wire::FingerprintResponse {
    wire::FingerprintResponse {
        health: book.wellbeing as i32,
        health_description: book.reason.clone(),
        ..Default::default()
    }
}
