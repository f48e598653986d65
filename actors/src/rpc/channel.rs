//! Creates a gRPC channel over one stream to a plugin: it ends with that stream.

use core::net::SocketAddr;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::TryFutureExt;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::header::USER_AGENT;
use tonic::codegen::http::uri::{Authority, PathAndQuery, Scheme};
use tonic::codegen::http::{HeaderValue, Request, Response, Uri};

use super::metered::{Meter, Metered};
use super::socket::{HeldSocket, not_connected};
use super::status::{cause, told};
use super::{Cause, Listener, SocketFile};
use crate::vocabulary::SocketPath;

/// The authority of every call. Strict servers refuse a call without an authority, or with a path as authority (SEC-04).
const AUTHORITY: &str = "localhost";

/// The program that calls, for the logs of plugins.
const PROGRAM: &str = concat!("callboard/", env!("CARGO_PKG_VERSION"));

/// The margin added to the deadline that the plugin receives. Our own deadline thus always expires first, and the outcome of
/// a call never depends on a race of two clocks (LOG-05).
const GRACE: Duration = Duration::from_secs(1);

/// The longest deadline that a plugin receives: the header of a call has at most eight digits, of hours at most. These are 11,400 years.
const DEADLINE_MAX: Duration = Duration::from_secs(99_999_999 * 60 * 60);

/// The size limit of headers, in bytes: the message of an error is one of them, and plugins put the whole output of a
/// command there. If the advertised limit is too small, a plugin resets the call instead, and its code is lost.
const HEADERS_BYTES_MAX: u32 = 1024 * 1024;

/// Connects to a socket of a plugin, and sends only after `prove` has accepted the listener. A symlink is refused. Also returns the
/// file that it is connected to. `on_end` is called once when the connection has ended, by whichever side; its argument is the reason
/// if the plugin was cut off.
pub(crate) async fn connect_to_socket(
    endpoint: &SocketPath,
    prove: impl AsyncFnOnce(&Listener) -> Result<(), String>,
    on_end: impl FnOnce(Option<String>) + Send + 'static,
) -> Result<(SocketFile, Channel), Cause> {
    let socket = HeldSocket::open(endpoint)?;
    let stream = UnixStream::connect(socket.place());
    let stream = stream.await.map_err(|error| not_connected(endpoint, &error))?;
    let peer = stream.peer_cred().map_err(|error| Cause::System { detail: error.to_string() })?;
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let listener = Listener::Socket { pid, user: peer.uid(), file_owner: socket.owner };
    prove(&listener).await.map_err(|detail| Cause::Stranger { detail })?;
    Ok((socket.file, over(stream, on_end).await?))
}

/// Connects to a port of a plugin, and sends only after `prove` has accepted the listener.
pub(crate) async fn connect_to_proven_port(
    address: SocketAddr,
    prove: impl AsyncFnOnce(&Listener) -> Result<(), String>,
) -> Result<Channel, Cause> {
    let stream = stream_to_port(address).await?;
    prove(&Listener::Port(address)).await.map_err(|detail| Cause::Stranger { detail })?;
    over(stream, |_| ()).await
}

/// Connects to a port of a plugin. Small messages are sent at once (no Nagle), and keepalive detects a vanished peer (D42).
pub(crate) async fn connect_to_port(address: SocketAddr) -> Result<Channel, Cause> {
    over(stream_to_port(address).await?, |_| ()).await
}

async fn stream_to_port(address: SocketAddr) -> Result<TcpStream, Cause> {
    let system = |error: io::Error| Cause::System { detail: error.to_string() };
    let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Cause::Refused,
        _ => system(error),
    })?;
    stream.set_nodelay(true).map_err(system)?;
    rustix::net::sockopt::set_socket_keepalive(&stream, true).map_err(|error| system(error.into()))?;
    Ok(stream)
}

/// A request with the deadline for the plugin. A deadline that is too long for the header is sent as the longest possible one.
pub(crate) fn asked<W>(question: W, deadline: Duration) -> tonic::Request<W> {
    let mut request = tonic::Request::new(question);
    request.set_timeout(deadline.saturating_add(GRACE).min(DEADLINE_MAX));
    request
}

/// Starts HTTP/2 over a stream. `on_end` is called once when the connection has ended, with the reason if the plugin was cut off.
async fn over<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    on_end: impl FnOnce(Option<String>) + Send + 'static,
) -> Result<Channel, Cause> {
    let (executor, meter) = (Executor::default(), Meter::new());
    let stream = Metered::new(stream, meter.clone());
    let mut http2 = http2::Builder::new(executor.clone());
    let connecting = http2.max_header_list_size(HEADERS_BYTES_MAX).handshake(TokioIo::new(stream));
    let (requests, connection) = connecting.await.map_err(|error| {
        let lost = Cause::Disconnected { detail: told(&error) };
        meter.cut_off().unwrap_or(lost)
    })?;
    let cut_off = meter.clone();
    let on_end = OnDrop(Some(move || on_end(cut_off.flood().map(|flood| flood.to_string()))));
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            // Every present and later call also fails with this error.
            tracing::debug!(error = %told(&error), "the connection to a plugin has ended");
        }
        drop(on_end);
    });
    Ok(Channel { requests, meter, stream: executor.0 })
}

/// Calls a function once, also if the task that holds it is dropped.
struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// Spawns the tasks of one connection, and keeps the first: the one that holds the stream, which hyper spawns during the handshake.
#[derive(Debug, Clone, Default)]
struct Executor(Arc<OnceLock<AbortHandle>>);

impl<F: Future<Output: Send + 'static> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, task: F) {
        let task = tokio::spawn(task).abort_handle();
        // Later ones belong to calls, and end with the stream.
        let _ = self.0.set(task);
    }
}

/// One HTTP/2 connection to one plugin process, cheap to clone. It never reconnects: when its stream ends, every call fails.
///
/// It carries any generated tonic client, since it is a [`Service`] of HTTP requests. Unlike a `tonic::transport::Channel` it has
/// no request queue and no task beside that of the connection.
#[derive(Debug, Clone)]
pub struct Channel {
    requests: http2::SendRequest<Body>,
    meter: Meter,
    /// The task that holds the stream.
    stream: Arc<OnceLock<AbortHandle>>,
}

impl Channel {
    /// Closes the stream at once, also for all clones. Calls in flight fail.
    pub(crate) fn close(&self) {
        if let Some(task) = self.stream.get() {
            task.abort();
        }
    }

    /// The cause of a call over it that failed with this status. An answer that cannot be decoded breaks the given rule.
    ///
    /// If the plugin was cut off, that is the cause, whatever the error of the call: a later call finds a closed connection.
    pub(crate) fn cause(&self, status: &Status, rule: &'static str) -> Cause {
        match cause(status, rule) {
            lost @ Cause::Disconnected { .. } => self.meter.cut_off().unwrap_or(lost),
            told => told,
        }
    }
}

/// The error of a request that got no response.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The connection had ended before the request was sent.
    #[error("the connection has ended")]
    Ended,
    /// The request or its response broke off.
    #[error(transparent)]
    Broken(hyper::Error),
}

impl From<hyper::Error> for ChannelError {
    fn from(error: hyper::Error) -> Self {
        if error.is_canceled() || error.is_closed() { Self::Ended } else { Self::Broken(error) }
    }
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = ChannelError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    /// Always ready: an error of the connection is returned by each call.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ChannelError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(Authority::from_static(AUTHORITY));
        uri.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
        *request.uri_mut() =
            Uri::from_parts(uri).expect("a scheme, an authority and a path are a whole address");
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(PROGRAM));
        self.meter.asked();
        Box::pin(self.requests.send_request(request).map_err(ChannelError::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_the_header_cannot_say_is_sent_as_the_longest_that_it_can() {
        let sent = |deadline| {
            let request = asked((), deadline);
            let header = request.metadata().get("grpc-timeout").expect("it has a deadline");
            header.to_str().expect("it is text").to_owned()
        };
        assert_eq!(sent(Duration::from_secs(5)), "6000000u");
        for longest in [DEADLINE_MAX, DEADLINE_MAX * 2, Duration::MAX] {
            assert_eq!(sent(longest), "99999999H", "{longest:?}");
        }
    }
}
