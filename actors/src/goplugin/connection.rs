//! A connection to one plugin process (D40 to D43, D50, D51, D60, D65).

use std::fmt;
use std::path::Path;
use std::time::Duration;

use callboard_proto::goplugin as wire;
use callboard_proto::{base, hclspec};
use tonic::{Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use wire::grpc_controller_client::GrpcControllerClient;

use super::PluginEndpoint;
use super::info::{PluginConfig, PluginInfo};
use super::stdio::Stdio;
use crate::pauses;
use crate::rpc::{
    self, Cause, Channel, Code, Fault, Listener, asked, connect_to_port, connect_to_proven_port,
    connect_to_socket,
};
use crate::vocabulary::SocketPath;

/// The service name for gRPC health checks of a plugin (D50).
const HEALTH_SERVICE: &str = "plugin";

/// The rule that is broken by an answer that cannot be decoded or exceeds the size limit (D41).
const UNREADABLE_RULE: &str = "D41";

/// The size limit of answers to calls of this module, in bytes: names, versions and a schema are small. Answers of a
/// plugin's own service have the larger limit of the connection.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The connect timeout.
    pub dial_deadline: Duration,
    /// The size limit of messages to and from a plugin's own service, in bytes. Go's host permits 2 GiB (D41).
    pub message_bytes_max: usize,
}

impl Default for Limits {
    /// Five seconds, and 64 MiB.
    fn default() -> Self {
        Self { dial_deadline: Duration::from_secs(5), message_bytes_max: 64 * 1024 * 1024 }
    }
}

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Connecting.
    Dial,
    /// A call, by its name in the protocol.
    Call(&'static str),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dial => f.write_str("Dial"),
            Self::Call(name) => f.write_str(name),
        }
    }
}

/// A failed operation on a plugin.
pub type CallError = rpc::CallError<Step, PluginEndpoint>;

/// The result of the shutdown call (D51).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShutdownAnswer {
    /// It answered. Only its exit proves that it has ended.
    Answered,
    /// It ended, or closed the connection, before its answer arrived, as many plugins do.
    HungUp {
        /// The error of the transport.
        detail: String,
    },
}

/// A connection to one plugin process, cheap to clone.
///
/// It ends with that process and never reconnects: every later call fails with
/// [`Class::Disconnected`](crate::rpc::Class::Disconnected), and its owner dials again once it has verified the listener
/// again. Calls may be concurrent, and are not encrypted.
#[derive(Clone)]
pub struct Connection {
    endpoint: PluginEndpoint,
    limits: Limits,
    channel: Channel,
}

impl Connection {
    /// Connects to a plugin, without retries. A plugin listens before it prints its handshake line, so the first attempt
    /// succeeds or shows a fault (D32, D42).
    ///
    /// # Errors
    /// No file at the path, another file type, no permission, no listener, a full queue and a timeout are each a separate
    /// [`Cause`].
    pub async fn dial(endpoint: &PluginEndpoint, limits: Limits) -> Result<Self, CallError> {
        Self::dialled(endpoint, limits, connect(endpoint)).await
    }

    /// Connects to a plugin, without retries, and sends only after `prove` has accepted the listener that the kernel
    /// reports. The error of `prove` names the actual listener and the remedy.
    ///
    /// # Errors
    /// As [`Self::dial`], and [`Cause::Stranger`] for a listener that is not proven.
    pub async fn dial_proven(
        endpoint: &PluginEndpoint,
        limits: Limits,
        prove: impl AsyncFnOnce(&Listener) -> Result<(), String>,
    ) -> Result<Self, CallError> {
        Self::dialled(endpoint, limits, connect_proven(endpoint, prove)).await
    }

    async fn dialled(
        endpoint: &PluginEndpoint,
        limits: Limits,
        connecting: impl Future<Output = Result<Channel, Cause>>,
    ) -> Result<Self, CallError> {
        let dialled = pauses::within(limits.dial_deadline, connecting).await;
        match dialled.unwrap_or(Err(Cause::DeadlineExceeded)) {
            Ok(channel) => Ok(Self { endpoint: endpoint.clone(), limits, channel }),
            Err(cause) => Err(CallError::new(Step::Dial, endpoint.clone(), limits.dial_deadline, cause)),
        }
    }

    /// The endpoint that it is connected to.
    #[must_use]
    pub const fn endpoint(&self) -> &PluginEndpoint {
        &self.endpoint
    }

    /// Its limits. Clients of a plugin's own service must set the message limits themselves.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// The channel, for clients of a plugin's own service.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Checks whether the plugin answers at all. As in every go-plugin host, the reported health status is ignored (D50).
    ///
    /// # Errors
    /// When no answer arrives within the deadline, or an error is returned.
    pub async fn ping(&self, deadline: Duration) -> Result<(), CallError> {
        let mut client = HealthClient::new(self.channel()).max_decoding_message_size(ANSWER_BYTES_MAX);
        let question = HealthCheckRequest { service: HEALTH_SERVICE.to_owned() };
        self.within("Check", deadline, client.check(asked(question, deadline)), |_| Ok(())).await
    }

    /// Queries the identity of a plugin (D102). Its type, name and versions are checked.
    ///
    /// # Errors
    /// When no answer arrives within the deadline, when the plugin returns an error, or when its answer breaks a rule. A
    /// process that is not such a plugin answers [`Class::Unimplemented`](crate::rpc::Class::Unimplemented).
    pub async fn plugin_info(&self, deadline: Duration) -> Result<PluginInfo, CallError> {
        let mut client = self.base();
        let answer = client.plugin_info(asked(base::PluginInfoRequest {}, deadline));
        self.within("PluginInfo", deadline, answer, PluginInfo::of_wire).await
    }

    /// Queries the configuration schema of a plugin; `None`: it takes no configuration (D102). The schema is returned as
    /// received: its size and nesting are bounded, its meaning must be checked by its reader.
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn config_schema(&self, deadline: Duration) -> Result<Option<hclspec::Spec>, CallError> {
        let mut client = self.base();
        let answer = client.config_schema(asked(base::ConfigSchemaRequest {}, deadline));
        self.within("ConfigSchema", deadline, answer, |answer| Ok(answer.spec)).await
    }

    /// Sends a plugin its configuration and the negotiated API version (D102).
    ///
    /// # Errors
    /// As [`Self::plugin_info`].
    pub async fn set_config(&self, config: PluginConfig, deadline: Duration) -> Result<(), CallError> {
        let mut client = self.base();
        let answer = client.set_config(asked(config.into_wire(), deadline));
        self.within("SetConfig", deadline, answer, |_| Ok(())).await
    }

    /// Asks a plugin to shut down. It may ignore this; only its exit proves that it has ended (D60).
    ///
    /// # Errors
    /// When no answer arrives within the deadline (D65), or an error that does not indicate an end: then waiting for one is
    /// useless.
    pub async fn shutdown(&self, deadline: Duration) -> Result<ShutdownAnswer, CallError> {
        let mut client =
            GrpcControllerClient::new(self.channel()).max_decoding_message_size(ANSWER_BYTES_MAX);
        let answer = client.shutdown(asked(wire::Empty {}, deadline));
        let Err(error) = self.within("Shutdown", deadline, answer, |_| Ok(())).await else {
            return Ok(ShutdownAnswer::Answered);
        };
        match error.cause() {
            Cause::Disconnected { detail } | Cause::CutOff { detail } => {
                Ok(ShutdownAnswer::HungUp { detail: detail.clone() })
            }
            Cause::Status { code: code @ (Code::Unavailable | Code::Cancelled), message } => {
                Ok(ShutdownAnswer::HungUp { detail: format!("{code} \"{message}\"") })
            }
            _ => Err(error),
        }
    }

    /// Reads the output of the plugin after its handshake line (D30, D55). Call it once and early: there is one such stream,
    /// and a plugin blocks if its output is not read.
    #[must_use]
    pub fn stdio(&self) -> Stdio {
        Stdio::new(self.channel(), self.endpoint.clone())
    }

    /// Runs a call with a deadline, and checks and converts its answer. For clients of a plugin's own service, to get
    /// uniform errors; the request sends the deadline to the plugin by itself or not at all.
    ///
    /// # Errors
    /// When no answer arrives within the deadline, when an error is returned, or when `convert` finds a fault.
    pub async fn within<W, T>(
        &self,
        call: &'static str,
        deadline: Duration,
        answer: impl Future<Output = Result<Response<W>, Status>>,
        convert: impl FnOnce(W) -> Result<T, Fault>,
    ) -> Result<T, CallError> {
        let outcome = match pauses::within(deadline, answer).await {
            Ok(Ok(answer)) => convert(answer.into_inner()).map_err(Cause::Fault),
            Ok(Err(status)) => Err(self.channel.cause(&status, UNREADABLE_RULE)),
            Err(_) => Err(Cause::DeadlineExceeded),
        };
        outcome.map_err(|cause| self.error(call, deadline, cause))
    }

    fn error(&self, call: &'static str, deadline: Duration, cause: Cause) -> CallError {
        CallError::new(Step::Call(call), self.endpoint.clone(), deadline, cause)
    }

    fn base(&self) -> base::base_plugin_client::BasePluginClient<Channel> {
        base::base_plugin_client::BasePluginClient::new(self.channel())
            .max_decoding_message_size(ANSWER_BYTES_MAX)
            .max_encoding_message_size(self.limits.message_bytes_max)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

async fn connect(endpoint: &PluginEndpoint) -> Result<Channel, Cause> {
    match endpoint {
        PluginEndpoint::Unix(path) => {
            let connected = connect_to_socket(&socket(path)?, async |_| Ok(()), |_| ()).await;
            connected.map(|(_, channel)| channel)
        }
        PluginEndpoint::Tcp(address) => connect_to_port(*address).await,
    }
}

async fn connect_proven(
    endpoint: &PluginEndpoint,
    prove: impl AsyncFnOnce(&Listener) -> Result<(), String>,
) -> Result<Channel, Cause> {
    match endpoint {
        PluginEndpoint::Unix(path) => {
            let connected = connect_to_socket(&socket(path)?, prove, |_| ()).await;
            connected.map(|(_, channel)| channel)
        }
        PluginEndpoint::Tcp(address) => connect_to_proven_port(*address, prove).await,
    }
}

/// A handshake contains valid paths only; an endpoint from elsewhere may not.
fn socket(path: &Path) -> Result<SocketPath, Cause> {
    let socket = path.to_str().and_then(|path| SocketPath::new(path).ok());
    socket.ok_or(Cause::NotASocket { what: "a path that no socket can have" })
}
