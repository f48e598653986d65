//! Creates a gRPC channel over one stream to a plugin: it ends with that stream.

use core::net::SocketAddr;
use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tonic::Request;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};

use super::cause::Cause;
use super::socket::{Listener, not_connected, owner_of};
use super::status::told;
use crate::vocabulary::SocketPath;

/// The authority of every call. Strict servers refuse a call without an authority, or with a path as authority (SEC-04).
const AUTHORITY: &str = "http://localhost";

/// How much longer the deadline is that the plugin receives. Our own deadline thus always expires first, and the outcome of
/// a call never depends on a race of two clocks (LOG-05).
const GRACE: Duration = Duration::from_secs(1);

/// The size limit of headers, in bytes: the message of an error is one of them, and plugins put the whole output of a
/// command there. If the advertised limit is too small, a plugin resets the call instead, and its code is lost.
const HEADERS_BYTES_MAX: u32 = 1024 * 1024;

pub(crate) async fn connect_to_socket(endpoint: &SocketPath) -> Result<Channel, Cause> {
    let stream = UnixStream::connect(endpoint.as_path());
    over(stream.await.map_err(|error| not_connected(endpoint, &error))?).await
}

/// Connects to a socket of a plugin, and sends only after `prove` has accepted the listener. A symlink is refused.
pub(crate) async fn connect_to_proven_socket(
    endpoint: &SocketPath,
    prove: impl FnOnce(&Listener) -> Result<(), String>,
) -> Result<Channel, Cause> {
    let file_owner = owner_of(endpoint)?;
    let stream = UnixStream::connect(endpoint.as_path());
    let stream = stream.await.map_err(|error| not_connected(endpoint, &error))?;
    let peer = stream.peer_cred().map_err(|error| Cause::System { detail: error.to_string() })?;
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let listener = Listener::Socket { pid, user: peer.uid(), file_owner };
    prove(&listener).map_err(|detail| Cause::Stranger { detail })?;
    over(stream).await
}

/// Connects to a port of a plugin, and sends only after `prove` has accepted the listener.
pub(crate) async fn connect_to_proven_port(
    address: SocketAddr,
    prove: impl FnOnce(&Listener) -> Result<(), String>,
) -> Result<Channel, Cause> {
    let stream = stream_to_port(address).await?;
    prove(&Listener::Port(address)).map_err(|detail| Cause::Stranger { detail })?;
    over(stream).await
}

/// Connects to a port of a plugin. Small messages are sent at once (no Nagle), and keepalive detects a vanished peer (D42).
pub(crate) async fn connect_to_port(address: SocketAddr) -> Result<Channel, Cause> {
    over(stream_to_port(address).await?).await
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

/// A request with the deadline for the plugin.
pub(crate) fn asked<W>(question: W, deadline: Duration) -> Request<W> {
    let mut request = Request::new(question);
    request.set_timeout(deadline.saturating_add(GRACE));
    request
}

async fn over<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: S) -> Result<Channel, Cause> {
    let localhost = Endpoint::from_static(AUTHORITY).http2_max_header_list_size(HEADERS_BYTES_MAX);
    let channel = localhost.connect_with_connector(OneStream(Some(stream)));
    channel.await.map_err(|error| Cause::Disconnected { detail: told(&error) })
}

/// A connector with one stream. When that has ended there is no other.
struct OneStream<S>(Option<S>);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Service<Uri> for OneStream<S> {
    type Response = TokioIo<S>;
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
