//! A conversation with one plugin process.

use std::fmt;
use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Response, Status};
use wire::controller_client::ControllerClient;
use wire::identity_client::IdentityClient;
use wire::node_client::NodeClient;

use super::convert;
use super::error::{CallError, Step};
use super::rpc::{Answer, Readiness, Rpc};
use crate::rpc::{Cause, Fault, SocketFile, asked, cause, connect_to_socket};
use crate::vocabulary::{
    ControllerCapability, Expansion, Identity, NodeCapability, NodeInfo, PluginCapability, SocketPath,
};

/// The rule that an answer breaks which cannot be read as one.
const UNREADABLE_RULE: &str = "C011";

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
                let dialled = timeout(limits.dial_deadline, connect_to_socket(endpoint)).await;
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
            Ok(Err(status)) => Err(cause(&status, UNREADABLE_RULE)),
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
