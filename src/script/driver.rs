//! A task driver that plays the part a script gives it: a real plugin on a real socket, in a task instead of a process.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use callboard_proto::base::base_plugin_server::{BasePlugin, BasePluginServer};
use callboard_proto::drivers::driver_server::{Driver, DriverServer};
use callboard_proto::goplugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use callboard_proto::{base, drivers as wire, goplugin, hclspec};
use futures_util::Stream;
use tokio::net::UnixListener;
use tokio::sync::Notify;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// The service whose health a go-plugin host asks for.
const HEALTH_SERVICE: &str = "plugin";
/// The type of a driver plugin on the wire.
const DRIVER_TYPE: i32 = 2;

/// What a stream says next: something, an error, or that it is over.
type Item<T> = Option<Result<T, Status>>;

/// A stream that says what it is told to.
struct Says<T>(Arc<Mutex<Queue<T>>>);

struct Queue<T> {
    items: VecDeque<Item<T>>,
    reader: Option<Waker>,
}

impl<T> Clone for Says<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Says<T> {
    fn new(items: impl IntoIterator<Item = Item<T>>) -> Self {
        Self(Arc::new(Mutex::new(Queue { items: items.into_iter().collect(), reader: None })))
    }

    fn say(&self, item: Item<T>) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.items.push_back(item);
        if let Some(reader) = queue.reader.take() {
            reader.wake();
        }
    }
}

impl<T> Stream for Says<T> {
    type Item = Result<T, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item<T>> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match queue.items.pop_front() {
            Some(item) => Poll::Ready(item),
            None => {
                queue.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// How well a driver says it is, as on the wire.
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

struct Book {
    name: String,
    version: String,
    wellbeing: Wellbeing,
    reason: String,
    fingerprints: Option<Says<wire::FingerprintResponse>>,
    events: Option<Says<wire::DriverTaskEvent>>,
    /// Whether its events have positions, and can be repeated.
    keeps_positions: bool,
    journal: Vec<wire::DriverTaskEvent>,
}

/// A driver. Clones are the same one, whichever process it is in.
#[derive(Clone)]
pub(super) struct DriverPlugin {
    book: Arc<Mutex<Book>>,
    leaves: Arc<Notify>,
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
            keeps_positions: true,
            journal: Vec::new(),
        };
        Self { book: Arc::new(Mutex::new(book)), leaves: Arc::default() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_version(&self, version: &str) {
        version.clone_into(&mut self.book().version);
    }

    pub(super) fn set_keeps_positions(&self, keeps: bool) {
        self.book().keeps_positions = keeps;
    }

    /// How it is from now on, which it says at once where it is listened to.
    pub(super) fn set_wellbeing(&self, wellbeing: Wellbeing, reason: &str) {
        let mut book = self.book();
        (book.wellbeing, book.reason) = (wellbeing, reason.to_owned());
        let fingerprint = fingerprint(&book);
        if let Some(says) = &book.fingerprints {
            says.say(Some(Ok(fingerprint)));
        }
    }

    /// Tells of something that happened to a task.
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
            says.say(Some(Ok(event)));
        }
    }

    /// Ends one of its streams: with an error, or as if there were nothing more to say. False means that it has none open.
    pub(super) fn end_stream(&self, kind: StreamKind, how: Option<Status>) -> bool {
        let mut book = self.book();
        match kind {
            StreamKind::Fingerprint => book.fingerprints.take().map(|says| says.say(how.map(Err))).is_some(),
            StreamKind::Events => book.events.take().map(|says| says.say(how.map(Err))).is_some(),
        }
    }

    /// Listens at once, and gives what serves until it is dropped or the driver is asked to leave. Call it within the runtime.
    pub(super) fn serve(&self, socket: &Path) -> io::Result<impl Future<Output = ()> + Send + use<>> {
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

fn fingerprint(book: &Book) -> wire::FingerprintResponse {
    wire::FingerprintResponse {
        health: book.wellbeing as i32,
        health_description: book.reason.clone(),
        ..Default::default()
    }
}

#[tonic::async_trait]
impl BasePlugin for DriverPlugin {
    async fn plugin_info(
        &self,
        _: Request<base::PluginInfoRequest>,
    ) -> Result<Response<base::PluginInfoResponse>, Status> {
        let book = self.book();
        Ok(Response::new(base::PluginInfoResponse {
            r#type: DRIVER_TYPE,
            plugin_api_versions: vec!["v0.1.0".to_owned()],
            plugin_version: book.version.clone(),
            name: book.name.clone(),
        }))
    }

    async fn config_schema(
        &self,
        _: Request<base::ConfigSchemaRequest>,
    ) -> Result<Response<base::ConfigSchemaResponse>, Status> {
        Ok(Response::new(base::ConfigSchemaResponse::default()))
    }

    async fn set_config(
        &self,
        _: Request<base::SetConfigRequest>,
    ) -> Result<Response<base::SetConfigResponse>, Status> {
        Ok(Response::new(base::SetConfigResponse::default()))
    }
}

#[tonic::async_trait]
impl GrpcController for DriverPlugin {
    async fn shutdown(&self, _: Request<goplugin::Empty>) -> Result<Response<goplugin::Empty>, Status> {
        self.leaves.notify_one();
        Ok(Response::new(goplugin::Empty::default()))
    }
}

type Boxed<T> = tonic::codegen::BoxStream<T>;

#[tonic::async_trait]
impl Driver for DriverPlugin {
    async fn task_config_schema(
        &self,
        _: Request<wire::TaskConfigSchemaRequest>,
    ) -> Result<Response<wire::TaskConfigSchemaResponse>, Status> {
        Ok(Response::new(wire::TaskConfigSchemaResponse { spec: Some(hclspec::Spec::default()) }))
    }

    async fn capabilities(
        &self,
        _: Request<wire::CapabilitiesRequest>,
    ) -> Result<Response<wire::CapabilitiesResponse>, Status> {
        let capabilities = Some(wire::DriverCapabilities::default());
        Ok(Response::new(wire::CapabilitiesResponse { capabilities }))
    }

    async fn fingerprint(
        &self,
        _: Request<wire::FingerprintRequest>,
    ) -> Result<Response<Boxed<wire::FingerprintResponse>>, Status> {
        let mut book = self.book();
        let says = Says::new([Some(Ok(fingerprint(&book)))]);
        book.fingerprints = Some(says.clone());
        Ok(Response::new(Box::pin(says)))
    }

    async fn task_events(
        &self,
        request: Request<wire::TaskEventsRequest>,
    ) -> Result<Response<Boxed<wire::DriverTaskEvent>>, Status> {
        let after = request.metadata().get("callboard-events-after").and_then(|value| value.to_str().ok());
        let mut book = self.book();
        let had = match after.and_then(|after| after.rsplit_once(':')) {
            Some((stream, sequence)) if stream == book.name => sequence.parse().unwrap_or_default(),
            Some(_) | None => 0,
        };
        let missed = book.journal.iter().skip(had).map(|event| Some(Ok(event.clone())));
        let says = Says::new(missed.collect::<Vec<_>>());
        book.events = Some(says.clone());
        let mut response: Response<Boxed<_>> = Response::new(Box::pin(says));
        if book.keeps_positions {
            let stream = book.name.parse().map_err(|_| Status::internal("its name is no stream"))?;
            response.metadata_mut().insert("callboard-events-stream", stream);
        }
        Ok(response)
    }

    async fn task_stats(
        &self,
        _: Request<wire::TaskStatsRequest>,
    ) -> Result<Response<Boxed<wire::TaskStatsResponse>>, Status> {
        Err(Status::unimplemented("a script has no use for it"))
    }

    async fn exec_task_streaming(
        &self,
        _: Request<tonic::Streaming<wire::ExecTaskStreamingRequest>>,
    ) -> Result<Response<Boxed<wire::ExecTaskStreamingResponse>>, Status> {
        Err(Status::unimplemented("a script has no use for it"))
    }
}
