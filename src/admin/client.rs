//! The client of the admin socket.

use std::future::{Ready, ready};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::task::{Context, Poll};
use std::time::Duration;

use callboard_actors::vocabulary::{SocketPath, milliseconds};
use callboard_proto::admin::v1 as wire;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status, Streaming};
use wire::admin_client::AdminClient as WireClient;

use super::error::AdminError;

/// The authority of every call.
const AUTHORITY: &str = "http://localhost";
/// The timeout of a call that does not wait for the end of a process.
const QUICK: Duration = Duration::from_secs(10);
/// Largest status that is read: ten thousand allocations fit with room to spare.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A connection to a running host.
#[derive(Debug)]
pub struct AdminClient {
    socket: SocketPath,
    pub(super) client: WireClient<Channel>,
    /// Whether a host has answered on this connection.
    has_answered: bool,
}

impl AdminClient {
    /// Connects to the host that serves this socket.
    ///
    /// # Errors
    /// [`AdminError`] reports whether there is no host, no permission, or something else behind the socket.
    pub async fn connect(socket: &SocketPath) -> Result<Self, AdminError> {
        let stream =
            UnixStream::connect(socket.as_path()).await.map_err(|error| not_connected(socket, error))?;
        let channel = Endpoint::from_static(AUTHORITY).connect_with_connector(OneStream(Some(stream))).await;
        let channel = channel.map_err(|error| protocol(socket, error.to_string()))?;
        let client = WireClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        Ok(Self { socket: socket.clone(), client, has_answered: false })
    }

    /// The whole status.
    ///
    /// # Errors
    /// As for every request to a host.
    pub async fn status(&mut self) -> Result<wire::GetStatusResponse, AdminError> {
        self.status_with_events_of("").await
    }

    /// The whole status, with the last events of everything with this name and of what belongs to it.
    ///
    /// # Errors
    /// As for every request to a host.
    pub async fn status_with_events_of(&mut self, name: &str) -> Result<wire::GetStatusResponse, AdminError> {
        let answer = self.client.get_status(wire::GetStatusRequest { name: name.to_owned() });
        let answer = within(QUICK, answer).await;
        self.answered(answer)
    }

    /// The tree of actors.
    ///
    /// # Errors
    /// As for every request to a host.
    pub async fn tree(&mut self) -> Result<wire::TreeNode, AdminError> {
        let answer = self.client.get_tree(wire::GetTreeRequest {});
        let answer = within(QUICK, answer).await;
        let root = self.answered(answer)?.root;
        root.ok_or_else(|| protocol(&self.socket, "its tree has no root".to_owned()))
    }

    /// Starts an allocation or a task.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when there is no allocation or task of that name, or it already runs.
    pub async fn start(&mut self, name: &str) -> Result<(), AdminError> {
        let answer = self.client.start_allocation(wire::StartAllocationRequest { name: name.to_owned() });
        let answer = within(QUICK, answer).await;
        self.answered(answer).map(drop)
    }

    /// Stops an allocation or a task in order and waits for its end. On request, an allocation is stopped even while volumes of its plugin
    /// are in use: mounts stay, and are undone only when the plugin is back.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when there is no allocation or task of that name, it does not run, or volumes of its plugin are in use.
    pub async fn stop(
        &mut self,
        name: &str,
        even_if_used: bool,
    ) -> Result<Vec<wire::ChildEnding>, AdminError> {
        let request = wire::StopAllocationRequest { name: name.to_owned(), even_if_used };
        let answer = self.client.stop_allocation(request);
        let answer = as_long_as_it_takes(answer).await;
        self.answered(answer).map(|answer| answer.report)
    }

    /// Replaces an allocation with another one of the same plugin, which is started if it does not run. The old one stops when the new
    /// one has been healthy for `healthy_for`, at most after `within`; otherwise the new one stops. Waits for the end of either.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when the old one was not replaced; it runs as before.
    pub async fn replace(
        &mut self,
        name: &str,
        with: &str,
        healthy_for: Duration,
        within: Duration,
    ) -> Result<Vec<wire::ChildEnding>, AdminError> {
        let answer = self.client.replace_allocation(wire::ReplaceAllocationRequest {
            name: name.to_owned(),
            with: with.to_owned(),
            healthy_for_ms: milliseconds(healthy_for),
            within_ms: milliseconds(within),
        });
        let answer = as_long_as_it_takes(answer).await;
        self.answered(answer).map(|answer| answer.report)
    }

    /// Restarts a driver, or resolves its plugin again if the plugin could not be used.
    ///
    /// # Errors
    /// [`AdminError::Refused`] when there is no driver of that name, it is being ended, or no other process of it would be launched.
    pub async fn restart_driver(&mut self, name: &str) -> Result<wire::RestartDriverResponse, AdminError> {
        let answer = self.client.restart_driver(wire::RestartDriverRequest { name: name.to_owned() });
        let answer = within(QUICK, answer).await;
        self.answered(answer)
    }

    /// Stops the whole host in order and waits for its end. With `detach`, drivers that survive a host and their tasks are
    /// left running, and registrations and sockets stay for its next run.
    ///
    /// # Errors
    /// As for every request to a host.
    pub async fn shutdown(&mut self, detach: bool) -> Result<Vec<wire::ChildEnding>, AdminError> {
        let answer = self.client.shutdown(wire::ShutdownRequest { detach });
        let answer = as_long_as_it_takes(answer).await;
        self.answered(answer).map(|answer| answer.report)
    }

    /// The status, and then each of its changes.
    ///
    /// # Errors
    /// As for every request to a host.
    pub async fn watch(&mut self) -> Result<Told<wire::WatchResponse>, AdminError> {
        let answer = self.client.watch(wire::WatchRequest {});
        let answer = within(QUICK, answer).await;
        Ok(Told { socket: self.socket.clone(), stream: self.answered(answer)? })
    }

    /// The messages between actors from now on; with `gates` also when an actor begins and ends to wait for the disk.
    ///
    /// # Errors
    /// As for every request to a host.
    pub async fn timeline(&mut self, gates: bool) -> Result<Told<wire::Said>, AdminError> {
        let answer = self.client.timeline(wire::TimelineRequest { gates });
        let answer = within(QUICK, answer).await;
        Ok(Told { socket: self.socket.clone(), stream: self.answered(answer)? })
    }

    pub(super) fn answered<T>(&mut self, answer: Result<Response<T>, Unanswered>) -> Result<T, AdminError> {
        let error = match answer {
            Ok(answer) => {
                self.has_answered = true;
                return Ok(answer.into_inner());
            }
            Err(Unanswered::TimedOut(span)) => AdminError::TimedOut(span),
            Err(Unanswered::Status(status)) => refused(&self.socket, &status),
        };
        Err(match error {
            // When a connection ends before the first answer, a host that ended cannot be distinguished from something that is not a host.
            AdminError::Ended(detail) if !self.has_answered => protocol(&self.socket, detail),
            error => error,
        })
    }
}

/// A stream of responses from a host.
#[derive(Debug)]
pub struct Told<T> {
    socket: SocketPath,
    stream: Streaming<T>,
}

impl<T> Told<T> {
    /// Waits for the next response; `None` when the host has ended the stream. Dropping this future loses nothing.
    ///
    /// # Errors
    /// When the host ends meanwhile.
    pub async fn next(&mut self) -> Result<Option<T>, AdminError> {
        self.stream.message().await.map_err(|status| refused(&self.socket, &status))
    }
}

pub(super) enum Unanswered {
    TimedOut(Duration),
    Status(Box<Status>),
}

async fn within<T>(span: Duration, answer: impl Future<Output = Result<T, Status>>) -> Result<T, Unanswered> {
    match timeout(span, answer).await {
        Ok(answer) => answer.map_err(|status| Unanswered::Status(Box::new(status))),
        Err(_elapsed) => Err(Unanswered::TimedOut(span)),
    }
}

/// Waits for the end of something. The host bounds this time with the grace periods of its configuration, and the connection ends with the
/// host.
pub(super) async fn as_long_as_it_takes<T>(
    answer: impl Future<Output = Result<T, Status>>,
) -> Result<T, Unanswered> {
    answer.await.map_err(|status| Unanswered::Status(Box::new(status)))
}

fn not_connected(socket: &SocketPath, source: io::Error) -> AdminError {
    let path = socket.as_path().to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => AdminError::NoHost { path },
        io::ErrorKind::ConnectionRefused if is_no_socket(&path) => {
            AdminError::Connect { path, source: io::Error::other("it is not a socket") }
        }
        io::ErrorKind::ConnectionRefused => AdminError::Dead { path },
        io::ErrorKind::PermissionDenied => {
            AdminError::Denied { path, ours: rustix::process::geteuid().as_raw() }
        }
        _ => AdminError::Connect { path, source },
    }
}

fn is_no_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket())
}

fn protocol(socket: &SocketPath, detail: String) -> AdminError {
    AdminError::Protocol { path: socket.as_path().to_owned(), detail }
}

/// Converts a refusal. A status with a source was made on the client's side, from the state of the connection.
fn refused(socket: &SocketPath, status: &Status) -> AdminError {
    let text = status.message().to_owned();
    match status.code() {
        Code::Unimplemented => protocol(socket, text),
        _ if std::error::Error::source(status).is_some() => AdminError::Ended(text),
        _ => AdminError::Refused(text),
    }
}

/// Gives a channel its only stream. When that stream has ended, the host has ended too.
struct OneStream(Option<UnixStream>);

impl Service<Uri> for OneStream {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Ready<Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let ended = || io::Error::new(io::ErrorKind::NotConnected, "the connection has ended");
        ready(self.0.take().map(TokioIo::new).ok_or_else(ended))
    }
}
