//! A conversation with one plugin process.

use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use wire::controller_client::ControllerClient;
use wire::identity_client::IdentityClient;
use wire::node_client::NodeClient;

use super::convert;
use super::error::{CallError, Cause, Step};
use super::fault::Fault;
use super::rpc::{Answer, Readiness, Rpc};
use super::socket::{SocketFile, not_connected};
use super::status::{cause, told};
use crate::vocabulary::{
    ControllerCapability, Expansion, Identity, NodeCapability, NodeInfo, PluginCapability, SocketPath,
};

/// What every call claims to be addressed to. Strict servers refuse a call that names no authority, or a path (SEC-04).
const AUTHORITY: &str = "http://localhost";

/// How much longer than we wait a plugin is told that it has. Ours thus runs out first, always, and what came of the call
/// is never in doubt between two clocks (LOG-05).
const GRACE: Duration = Duration::from_secs(1);

/// Largest set of headers that is read, in bytes: an error's message is one of them, and plugins put the whole output of a
/// command there. A plugin that is told of less than it wants to say breaks the call off instead, and its code is lost.
const HEADERS_BYTES_MAX: u32 = 1024 * 1024;

/// Limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long connecting may take.
    pub dial_deadline: Duration,
    /// Largest answer that is read, in bytes. A larger one is a fault of the plugin (C011).
    pub answer_bytes_max: usize,
}

impl Default for Limits {
    /// Five seconds, and 4 MiB.
    fn default() -> Self {
        Self { dial_deadline: Duration::from_secs(5), answer_bytes_max: 4 * 1024 * 1024 }
    }
}

/// A connection to one plugin process, cheap to clone.
///
/// It ends with that process and never connects to another one: every later call fails with
/// [`Class::Disconnected`](super::Class::Disconnected). Dropping a call gives up waiting for it, which the plugin need not
/// take as a request to stop (C015). Calls may overlap.
#[derive(Clone)]
pub struct Connection {
    endpoint: SocketPath,
    file: SocketFile,
    limits: Limits,
    channel: Channel,
}

impl Connection {
    /// Connects to the socket of a plugin.
    ///
    /// # Errors
    /// Nothing at the path, something else at the path, no permission, nobody listening, a full queue and a slow answer are
    /// each a [`Cause`] of their own (REG-10, SEC-03).
    pub async fn dial(endpoint: &SocketPath, limits: Limits) -> Result<Self, CallError> {
        let outcome = match SocketFile::at(endpoint) {
            Ok(file) => {
                let dialled = timeout(limits.dial_deadline, connect(endpoint)).await;
                dialled.unwrap_or(Err(Cause::DeadlineExceeded)).map(|channel| (file, channel))
            }
            Err(cause) => Err(cause),
        };
        match outcome {
            Ok((file, channel)) => Ok(Self { endpoint: endpoint.clone(), file, limits, channel }),
            Err(cause) => Err(CallError::new(Step::Dial, endpoint.clone(), limits.dial_deadline, cause)),
        }
    }

    /// The socket it was made to.
    #[must_use]
    pub const fn endpoint(&self) -> &SocketPath {
        &self.endpoint
    }

    /// The file that lay at the path when it was made (REG-10).
    #[must_use]
    pub const fn socket_file(&self) -> SocketFile {
        self.file
    }

    /// Asks any question.
    ///
    /// # Errors
    /// As the call of that name.
    pub async fn call(&self, rpc: Rpc, deadline: Duration) -> Result<Answer, CallError> {
        match rpc {
            Rpc::PluginInfo => self.plugin_info(deadline).await.map(Answer::PluginInfo),
            Rpc::PluginCapabilities => {
                let offers = self.plugin_capabilities(deadline).await;
                offers.map(|(capabilities, expansion)| Answer::PluginCapabilities { capabilities, expansion })
            }
            Rpc::Probe => self.probe(deadline).await.map(Answer::Probe),
            Rpc::ControllerCapabilities => {
                self.controller_capabilities(deadline).await.map(Answer::ControllerCapabilities)
            }
            Rpc::NodeCapabilities => self.node_capabilities(deadline).await.map(Answer::NodeCapabilities),
            Rpc::NodeInfo => self.node_info(deadline).await.map(Answer::NodeInfo),
        }
    }

    /// Asks a plugin who it is. Its name and limits are checked (C004, C005, C030).
    ///
    /// # Errors
    /// When no answer comes within the deadline, when the plugin refuses, or when its answer breaks a rule.
    pub async fn plugin_info(&self, deadline: Duration) -> Result<Identity, CallError> {
        let mut client = self.identity();
        let answer = client.get_plugin_info(asked(wire::GetPluginInfoRequest {}, deadline));
        self.within(Rpc::PluginInfo, deadline, answer, convert::identity).await
    }

    /// Asks a plugin what it offers as a whole.
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn plugin_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<(Vec<PluginCapability>, Vec<Expansion>), CallError> {
        let mut client = self.identity();
        let answer = client.get_plugin_capabilities(asked(wire::GetPluginCapabilitiesRequest {}, deadline));
        self.within(Rpc::PluginCapabilities, deadline, answer, convert::plugin_capabilities).await
    }

    /// Asks a plugin whether it is ready (C038, C039).
    ///
    /// # Errors
    /// As [`Self::plugin_info`]. Any error means that the plugin is not healthy (C040, C041).
    pub async fn probe(&self, deadline: Duration) -> Result<Readiness, CallError> {
        let mut client = self.identity();
        let answer = client.probe(asked(wire::ProbeRequest {}, deadline));
        self.within(Rpc::Probe, deadline, answer, convert::readiness).await
    }

    /// Asks a controller what it can do. To be asked of plugins with a controller service only (C033).
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn controller_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<Vec<ControllerCapability>, CallError> {
        let mut client = ControllerClient::new(self.channel.clone())
            .max_decoding_message_size(self.limits.answer_bytes_max);
        let request = asked(wire::ControllerGetCapabilitiesRequest {}, deadline);
        let answer = client.controller_get_capabilities(request);
        self.within(Rpc::ControllerCapabilities, deadline, answer, convert::controller_capabilities).await
    }

    /// Asks a node plugin what it can do.
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn node_capabilities(&self, deadline: Duration) -> Result<Vec<NodeCapability>, CallError> {
        let mut client = self.node();
        let answer = client.node_get_capabilities(asked(wire::NodeGetCapabilitiesRequest {}, deadline));
        self.within(Rpc::NodeCapabilities, deadline, answer, convert::node_capabilities).await
    }

    /// Asks a node plugin which node this is (C006, C055, C146 to C148).
    ///
    /// # Errors
    /// As [`Self::plugin_info`]. A plugin that need not answer says so with
    /// [`Class::Unimplemented`](super::Class::Unimplemented) (I7).
    pub async fn node_info(&self, deadline: Duration) -> Result<NodeInfo, CallError> {
        let mut client = self.node();
        let answer = client.node_get_info(asked(wire::NodeGetInfoRequest {}, deadline));
        self.within(Rpc::NodeInfo, deadline, answer, convert::node_info).await
    }

    fn identity(&self) -> IdentityClient<Channel> {
        IdentityClient::new(self.channel.clone()).max_decoding_message_size(self.limits.answer_bytes_max)
    }

    fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.channel.clone()).max_decoding_message_size(self.limits.answer_bytes_max)
    }

    async fn within<W, T>(
        &self,
        rpc: Rpc,
        deadline: Duration,
        answer: impl Future<Output = Result<Response<W>, Status>>,
        convert: fn(W) -> Result<T, Fault>,
    ) -> Result<T, CallError> {
        let outcome = match timeout(deadline, answer).await {
            Ok(Ok(answer)) => convert(answer.into_inner()).map_err(Cause::Fault),
            Ok(Err(status)) => Err(cause(&status)),
            Err(_) => Err(Cause::DeadlineExceeded),
        };
        outcome.map_err(|cause| CallError::new(Step::Call(rpc), self.endpoint.clone(), deadline, cause))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

fn asked<W>(question: W, deadline: Duration) -> Request<W> {
    let mut request = Request::new(question);
    request.set_timeout(deadline.saturating_add(GRACE));
    request
}

async fn connect(endpoint: &SocketPath) -> Result<Channel, Cause> {
    let stream = UnixStream::connect(endpoint.as_path());
    let stream = stream.await.map_err(|error| not_connected(endpoint, &error))?;
    let localhost = Endpoint::from_static(AUTHORITY).http2_max_header_list_size(HEADERS_BYTES_MAX);
    let channel = localhost.connect_with_connector(OneStream(Some(stream)));
    channel.await.map_err(|error| Cause::Disconnected { detail: told(&error) })
}

/// Gives a channel its one stream. When that has ended there is no other.
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
