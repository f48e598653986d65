//! A connection to one plugin process.

use std::fmt;
use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use tonic::{Response, Status};
use wire::controller_client::ControllerClient;
use wire::group_controller_client::GroupControllerClient;
use wire::identity_client::IdentityClient;
use wire::node_client::NodeClient;

use super::check::Leeway;
use super::convert;
use super::{Answer, CallError, Limits, Readiness, Rpc, Step};
use crate::pauses;
use crate::rpc::{Cause, Channel, Fault, Listener, SocketFile, asked, connect_to_socket, socket_file};
use crate::vocabulary::{
    ControllerCapability, Expansion, GroupControllerCapability, Identity, NodeCapability, NodeInfo,
    PluginCapability, SocketPath,
};

/// An answer, with remarks about it.
type Heard<T> = Result<(T, Vec<String>), CallError>;

fn with<T, U>(wrap: impl FnOnce(T) -> U) -> impl FnOnce((T, Vec<String>)) -> (U, Vec<String>) {
    |(answer, remarks)| (wrap(answer), remarks)
}

fn without_remarks<T>((answer, _): (T, Vec<String>)) -> T {
    answer
}

/// The rule that an undecodable answer breaks.
const UNREADABLE_RULE: &str = "C011";

/// A connection to one plugin process, cheap to clone.
///
/// It ends with that process and never reconnects: every later call fails with
/// [`Class::Disconnected`](super::Class::Disconnected). Dropping a call stops waiting for it, which the plugin need not
/// treat as a cancellation (C015). Calls may be concurrent.
#[derive(Clone)]
pub struct Connection {
    endpoint: SocketPath,
    file: SocketFile,
    limits: Limits,
    channel: Channel,
}

impl Connection {
    /// Connects to the socket of a plugin, whichever process listens there.
    ///
    /// # Errors
    /// No file at the path, another file type, no permission, no listener, a full queue and a timeout are each a separate
    /// [`Cause`] (REG-10, SEC-03).
    pub async fn dial(endpoint: &SocketPath, limits: Limits) -> Result<Self, CallError> {
        Self::dial_proven(endpoint, limits, async |_| Ok(()), |_| ()).await
    }

    /// Like [`Self::dial`], but sends only after `prove` has accepted the listener that the kernel reports. `on_end` is called once when
    /// the connection has ended, by either side; its argument is the reason if the plugin was cut off.
    ///
    /// # Errors
    /// As [`Self::dial`], and [`Cause::Stranger`] for a listener that is not accepted.
    pub(crate) async fn dial_proven(
        endpoint: &SocketPath,
        limits: Limits,
        prove: impl AsyncFnOnce(&Listener) -> Result<(), String>,
        on_end: impl FnOnce(Option<String>) + Send + 'static,
    ) -> Result<Self, CallError> {
        let dialled = pauses::within(limits.dial_deadline, connect_to_socket(endpoint, prove, on_end)).await;
        match dialled.unwrap_or(Err(Cause::DeadlineExceeded)) {
            Ok((file, channel)) => Ok(Self { endpoint: endpoint.clone(), file, limits, channel }),
            Err(cause) => Err(CallError::new(Step::Dial, endpoint.clone(), limits.dial_deadline, cause)),
        }
    }

    /// Its channel.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The socket that it is connected to.
    #[must_use]
    pub const fn endpoint(&self) -> &SocketPath {
        &self.endpoint
    }

    /// The socket file at the time of the connect (REG-10).
    #[must_use]
    pub const fn socket_file(&self) -> SocketFile {
        self.file
    }

    /// Checks that the socket is still the one that it is connected to.
    ///
    /// # Errors
    /// [`Cause::SocketLost`] when it was deleted or replaced. A path that cannot be looked at proves nothing.
    pub fn check_socket(&self) -> Result<(), CallError> {
        let found = match socket_file(&self.endpoint) {
            Ok(file) if file.is_same_file(&self.file) => return Ok(()),
            Ok(_) => "another socket is",
            Err(Cause::Absent) => "nothing is",
            Err(Cause::NotASocket { what: _ }) => "another file is",
            Err(Cause::Link { .. }) => "a link is",
            Err(_) => return Ok(()),
        };
        let cause = Cause::SocketLost { found };
        Err(CallError::new(Step::Dial, self.endpoint.clone(), self.limits.dial_deadline, cause))
    }

    /// Makes any call. Returns the answer, with remarks about harmless deviations from the specification.
    ///
    /// # Errors
    /// Those of the method for this call.
    pub async fn call(&self, rpc: Rpc, deadline: Duration) -> Result<(Answer, Vec<String>), CallError> {
        match rpc {
            Rpc::PluginInfo => self.ask_plugin_info(deadline).await.map(with(Answer::PluginInfo)),
            Rpc::PluginCapabilities => {
                let answer =
                    |(capabilities, expansion)| Answer::PluginCapabilities { capabilities, expansion };
                self.ask_plugin_capabilities(deadline).await.map(with(answer))
            }
            Rpc::Probe => self.ask_probe(deadline).await.map(with(Answer::Probe)),
            Rpc::ControllerCapabilities => {
                self.ask_controller_capabilities(deadline).await.map(with(Answer::ControllerCapabilities))
            }
            Rpc::GroupControllerCapabilities => {
                let answer = self.ask_group_controller_capabilities(deadline).await;
                answer.map(with(Answer::GroupControllerCapabilities))
            }
            Rpc::NodeCapabilities => {
                self.ask_node_capabilities(deadline).await.map(with(Answer::NodeCapabilities))
            }
            Rpc::NodeInfo => self.ask_node_info(deadline).await.map(with(Answer::NodeInfo)),
        }
    }

    /// Calls `GetPluginInfo`. Name and sizes are checked (C004, C005, C030). [`Self::call`] also returns the remarks.
    ///
    /// # Errors
    /// When no answer comes within the deadline, when the plugin returns an error, or when its answer breaks a rule.
    pub async fn plugin_info(&self, deadline: Duration) -> Result<Identity, CallError> {
        self.ask_plugin_info(deadline).await.map(without_remarks)
    }

    /// Calls `GetPluginCapabilities`.
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn plugin_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<(Vec<PluginCapability>, Vec<Expansion>), CallError> {
        self.ask_plugin_capabilities(deadline).await.map(without_remarks)
    }

    /// Calls `Probe`: whether the plugin is ready (C038, C039).
    ///
    /// # Errors
    /// As [`Self::plugin_info`]. Any error means that the plugin is unhealthy (C040, C041).
    pub async fn probe(&self, deadline: Duration) -> Result<Readiness, CallError> {
        self.ask_probe(deadline).await.map(without_remarks)
    }

    /// Calls `ControllerGetCapabilities`. Only for plugins with a controller service (C033).
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn controller_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<Vec<ControllerCapability>, CallError> {
        self.ask_controller_capabilities(deadline).await.map(without_remarks)
    }

    /// Calls `GroupControllerGetCapabilities`. Only for plugins with a group controller service (C034).
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn group_controller_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<Vec<GroupControllerCapability>, CallError> {
        self.ask_group_controller_capabilities(deadline).await.map(without_remarks)
    }

    /// Calls `NodeGetCapabilities`.
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn node_capabilities(&self, deadline: Duration) -> Result<Vec<NodeCapability>, CallError> {
        self.ask_node_capabilities(deadline).await.map(without_remarks)
    }

    /// Calls `NodeGetInfo` (C006, C055, C146 to C148).
    ///
    /// # Errors
    /// As [`Self::plugin_info`]. A plugin that need not implement it returns [`Class::Unimplemented`](super::Class::Unimplemented) (I7).
    pub async fn node_info(&self, deadline: Duration) -> Result<NodeInfo, CallError> {
        self.ask_node_info(deadline).await.map(without_remarks)
    }

    async fn ask_plugin_info(&self, deadline: Duration) -> Heard<Identity> {
        let mut client = self.identity();
        let answer = client.get_plugin_info(asked(wire::GetPluginInfoRequest {}, deadline));
        self.within(Rpc::PluginInfo, deadline, answer, convert::identity).await
    }

    async fn ask_plugin_capabilities(
        &self,
        deadline: Duration,
    ) -> Heard<(Vec<PluginCapability>, Vec<Expansion>)> {
        let mut client = self.identity();
        let answer = client.get_plugin_capabilities(asked(wire::GetPluginCapabilitiesRequest {}, deadline));
        self.within(Rpc::PluginCapabilities, deadline, answer, convert::plugin_capabilities).await
    }

    async fn ask_probe(&self, deadline: Duration) -> Heard<Readiness> {
        let mut client = self.identity();
        let answer = client.probe(asked(wire::ProbeRequest {}, deadline));
        self.within(Rpc::Probe, deadline, answer, convert::readiness).await
    }

    async fn ask_controller_capabilities(&self, deadline: Duration) -> Heard<Vec<ControllerCapability>> {
        let mut client = ControllerClient::new(self.channel.clone())
            .max_decoding_message_size(self.limits.answer_bytes_max);
        let request = asked(wire::ControllerGetCapabilitiesRequest {}, deadline);
        let answer = client.controller_get_capabilities(request);
        self.within(Rpc::ControllerCapabilities, deadline, answer, convert::controller_capabilities).await
    }

    async fn ask_group_controller_capabilities(
        &self,
        deadline: Duration,
    ) -> Heard<Vec<GroupControllerCapability>> {
        let mut client = GroupControllerClient::new(self.channel.clone())
            .max_decoding_message_size(self.limits.answer_bytes_max);
        let request = asked(wire::GroupControllerGetCapabilitiesRequest {}, deadline);
        let answer = client.group_controller_get_capabilities(request);
        let convert = convert::group_controller_capabilities;
        self.within(Rpc::GroupControllerCapabilities, deadline, answer, convert).await
    }

    async fn ask_node_capabilities(&self, deadline: Duration) -> Heard<Vec<NodeCapability>> {
        let mut client = self.node();
        let answer = client.node_get_capabilities(asked(wire::NodeGetCapabilitiesRequest {}, deadline));
        self.within(Rpc::NodeCapabilities, deadline, answer, convert::node_capabilities).await
    }

    async fn ask_node_info(&self, deadline: Duration) -> Heard<NodeInfo> {
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
        convert: fn(W, &mut Leeway) -> Result<T, Fault>,
    ) -> Heard<T> {
        let mut leeway = Leeway { strict: self.limits.strict, ..Leeway::default() };
        let outcome = match pauses::within(deadline, answer).await {
            Ok(Ok(answer)) => convert(answer.into_inner(), &mut leeway).map_err(Cause::Fault),
            Ok(Err(status)) => Err(self.channel.cause(&status, UNREADABLE_RULE)),
            Err(_) => Err(Cause::DeadlineExceeded),
        };
        let error = |cause| CallError::new(Step::Call(rpc), self.endpoint.clone(), deadline, cause);
        outcome.map(|answer| (answer, leeway.remarks)).map_err(error)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
