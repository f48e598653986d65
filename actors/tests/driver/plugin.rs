//! A driver plugin in this process whose behaviour is set by a test.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use callboard_proto::base::base_plugin_server::{BasePlugin, BasePluginServer};
use callboard_proto::drivers::driver_server::{Driver, DriverServer};
use callboard_proto::goplugin::grpc_controller_server::{GrpcController, GrpcControllerServer};
use callboard_proto::{base, drivers as wire, goplugin, hclspec};
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc};
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// The sending half of a stream. The stream ends when this is dropped.
pub(crate) type Says<T> = mpsc::UnboundedSender<Result<T, Status>>;

/// Everything that a test can set and observe.
pub(crate) struct Book {
    /// The first message of each stream of fingerprints.
    pub(crate) fingerprint: wire::FingerprintResponse,
    pub(crate) fingerprints: Option<Says<wire::FingerprintResponse>>,
    pub(crate) fingerprints_opened: u32,
    pub(crate) events: Option<Says<wire::DriverTaskEvent>>,
    /// The position from which each stream of events was requested.
    pub(crate) events_after: Vec<String>,
    /// The name of its stream of events, if it keeps positions, and what it has in its journal.
    pub(crate) stream: Option<String>,
    pub(crate) journal: Vec<wire::DriverTaskEvent>,
    pub(crate) configs: Vec<base::SetConfigRequest>,
    pub(crate) refuses_config: Option<Status>,
    /// The answer to `StartTask`; without it the call hangs.
    pub(crate) start: Option<Result<wire::StartTaskResponse, Status>>,
    pub(crate) start_takes: Duration,
    pub(crate) wait: Option<Result<wire::WaitTaskResponse, Status>>,
    pub(crate) shutdown_requests: u32,
    /// Whether it ends when it is politely requested to.
    pub(crate) is_polite: bool,
}

/// A plugin. Its clones, in all of its processes, share one state.
#[derive(Clone)]
pub(crate) struct Plugin {
    book: Arc<Mutex<Book>>,
    leaves: Arc<Notify>,
}

impl Plugin {
    pub(crate) fn new() -> Self {
        let book = Book {
            fingerprint: healthy(),
            fingerprints: None,
            fingerprints_opened: 0,
            events: None,
            events_after: Vec::new(),
            stream: Some("s".to_owned()),
            journal: Vec::new(),
            configs: Vec::new(),
            refuses_config: None,
            start: None,
            start_takes: Duration::ZERO,
            wait: None,
            shutdown_requests: 0,
            is_polite: true,
        };
        Self { book: Arc::new(Mutex::new(book)), leaves: Arc::default() }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    pub(crate) fn fingerprint(&self, item: Result<wire::FingerprintResponse, Status>) {
        self.book().fingerprints.as_ref().expect("a stream is open").send(item).expect("there is a listener");
    }

    /// Ends the stream of fingerprints without an error.
    pub(crate) fn end_fingerprints(&self) {
        drop(self.book().fingerprints.take());
    }

    /// Ends the stream of events, if one is open: with this status, or without an error.
    pub(crate) fn end_events(&self, how: Option<Status>) {
        let says = self.book().events.take();
        if let (Some(says), Some(status)) = (says, how) {
            let _ = says.send(Err(status));
        }
    }

    /// Sends an event, marked if the plugin keeps positions.
    pub(crate) fn event(&self, task: &str, message: &str) {
        let mut book = self.book();
        let mut event = wire::DriverTaskEvent {
            task_id: format!("alloc/{task}"),
            alloc_id: "alloc".to_owned(),
            task_name: task.to_owned(),
            message: message.to_owned(),
            ..Default::default()
        };
        if let Some(stream) = &book.stream {
            let sequence = book.journal.len() + 1;
            event.annotations.insert("callboard.stream".to_owned(), stream.clone());
            event.annotations.insert("callboard.sequence".to_owned(), sequence.to_string());
            book.journal.push(event.clone());
        }
        if let Some(events) = &book.events {
            let _ = events.send(Ok(event));
        }
    }

    /// Serves until it is requested to leave. A dead process sends nothing more: the future is dropped.
    pub(crate) async fn serve(self, socket: &Path) {
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).expect("a place for the socket");
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_service_status("plugin", tonic_health::ServingStatus::Serving).await;
        let leaves = Arc::clone(&self.leaves);
        let serving = Server::builder()
            .add_service(health)
            .add_service(BasePluginServer::new(self.clone()))
            .add_service(GrpcControllerServer::new(self.clone()))
            .add_service(DriverServer::new(self))
            .serve_with_incoming(UnixListenerStream::new(listener));
        tokio::select! {
            served = serving => served.expect("it serves"),
            () = leaves.notified() => {}
        }
    }
}

pub(crate) fn healthy() -> wire::FingerprintResponse {
    wire::FingerprintResponse { health: 2, ..Default::default() }
}

#[tonic::async_trait]
impl BasePlugin for Plugin {
    async fn plugin_info(
        &self,
        _: Request<base::PluginInfoRequest>,
    ) -> Result<Response<base::PluginInfoResponse>, Status> {
        Ok(Response::new(base::PluginInfoResponse {
            r#type: 2,
            plugin_api_versions: vec!["v0.1.0".to_owned()],
            plugin_version: "1.2.3".to_owned(),
            name: "exec".to_owned(),
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
        request: Request<base::SetConfigRequest>,
    ) -> Result<Response<base::SetConfigResponse>, Status> {
        let mut book = self.book();
        book.configs.push(request.into_inner());
        match &book.refuses_config {
            Some(status) => Err(status.clone()),
            None => Ok(Response::new(base::SetConfigResponse::default())),
        }
    }
}

#[tonic::async_trait]
impl GrpcController for Plugin {
    async fn shutdown(&self, _: Request<goplugin::Empty>) -> Result<Response<goplugin::Empty>, Status> {
        let mut book = self.book();
        book.shutdown_requests += 1;
        if book.is_polite {
            self.leaves.notify_one();
        }
        Ok(Response::new(goplugin::Empty::default()))
    }
}

type Boxed<T> = tonic::codegen::BoxStream<T>;

/// A stream that sends these items at once, and then what it receives.
fn stream<T: Send + 'static>(first: impl IntoIterator<Item = T>) -> (Says<T>, Boxed<T>) {
    let (says, said) = mpsc::unbounded_channel();
    for item in first {
        let _ = says.send(Ok(item));
    }
    (says, Box::pin(UnboundedReceiverStream::new(said)))
}

#[tonic::async_trait]
impl Driver for Plugin {
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
        let capabilities = Some(wire::DriverCapabilities { exec: true, ..Default::default() });
        Ok(Response::new(wire::CapabilitiesResponse { capabilities }))
    }

    async fn fingerprint(
        &self,
        _: Request<wire::FingerprintRequest>,
    ) -> Result<Response<Boxed<wire::FingerprintResponse>>, Status> {
        let mut book = self.book();
        let (says, said) = stream([book.fingerprint.clone()]);
        book.fingerprints = Some(says);
        book.fingerprints_opened += 1;
        Ok(Response::new(said))
    }

    async fn start_task(
        &self,
        _: Request<wire::StartTaskRequest>,
    ) -> Result<Response<wire::StartTaskResponse>, Status> {
        let answer = self.book().start.clone();
        let takes = self.book().start_takes;
        tokio::time::sleep(takes).await;
        match answer {
            Some(answer) => answer.map(Response::new),
            None => std::future::pending().await,
        }
    }

    async fn wait_task(
        &self,
        _: Request<wire::WaitTaskRequest>,
    ) -> Result<Response<wire::WaitTaskResponse>, Status> {
        let answer = self.book().wait.clone();
        match answer {
            Some(answer) => answer.map(Response::new),
            None => std::future::pending().await,
        }
    }

    async fn task_stats(
        &self,
        request: Request<wire::TaskStatsRequest>,
    ) -> Result<Response<Boxed<wire::TaskStatsResponse>>, Status> {
        let stats = wire::TaskStats { id: request.into_inner().task_id, ..Default::default() };
        let answer = wire::TaskStatsResponse { stats: Some(stats) };
        Ok(Response::new(Box::pin(tokio_stream::iter([Ok(answer.clone()), Ok(answer)]))))
    }

    async fn exec_task_streaming(
        &self,
        request: Request<Streaming<wire::ExecTaskStreamingRequest>>,
    ) -> Result<Response<Boxed<wire::ExecTaskStreamingResponse>>, Status> {
        Ok(Response::new(Box::pin(echo(request.into_inner()))))
    }

    async fn task_events(
        &self,
        request: Request<wire::TaskEventsRequest>,
    ) -> Result<Response<Boxed<wire::DriverTaskEvent>>, Status> {
        let after = request.metadata().get("callboard-events-after");
        let after = after.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let mut book = self.book();
        let had = match (&book.stream, after.rsplit_once(':')) {
            (Some(stream), Some((of, sequence))) if of == stream => sequence.parse().unwrap(),
            (Some(_), _) => 0,
            (None, _) => book.journal.len(),
        };
        book.events_after.push(after);
        let (says, said) = stream(book.journal[had..].iter().cloned());
        book.events = Some(says);
        let mut response = Response::new(said);
        if let Some(stream) = &book.stream {
            response.metadata_mut().insert("callboard-events-stream", stream.parse().unwrap());
        }
        Ok(response)
    }
}

/// A command that writes back its input, prints the size of its terminal, and ends with code 3 when its input is closed.
fn echo(
    mut questions: Streaming<wire::ExecTaskStreamingRequest>,
) -> impl Stream<Item = Result<wire::ExecTaskStreamingResponse, Status>> {
    let (tell, told) = mpsc::channel(4);
    tokio::spawn(async move {
        let data = |data: Vec<u8>| wire::ExecTaskStreamingIoOperation { data, close: false };
        while let Ok(Some(question)) = questions.message().await {
            let mut answer = wire::ExecTaskStreamingResponse::default();
            if let Some(size) = question.tty_size {
                answer.stderr = Some(data(format!("{}x{}", size.height, size.width).into_bytes()));
            }
            if let Some(stdin) = question.stdin {
                if stdin.close {
                    answer.exited = true;
                    answer.result = Some(wire::ExitResult { exit_code: 3, ..Default::default() });
                } else {
                    answer.stdout = Some(data(stdin.data));
                }
            }
            if tell.send(Ok(answer)).await.is_err() {
                return;
            }
        }
    });
    ReceiverStream::new(told)
}
