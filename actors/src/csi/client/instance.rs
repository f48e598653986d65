//! The calls about the plugin itself. An instance makes them, too; their results are in
//! [`Lease::fingerprint`](crate::lease::Lease::fingerprint).

use std::time::Duration;

use callboard_proto::csi::v1 as wire;
use tonic::{Response, Status};

use super::{Client, answered};
use crate::csi::check::Leeway;
use crate::csi::{Call, FailedCall, Failure, Readiness, convert};
use crate::rpc::{Fault, asked};
use crate::vocabulary::{
    ControllerCapability, Expansion, GroupControllerCapability, Identity, NodeCapability, NodeInfo,
    PluginCapability,
};

impl Client {
    /// Calls `GetPluginInfo`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn get_plugin_info(&self, deadline: Duration) -> Result<Identity, FailedCall> {
        let mut client = self.lease.identity();
        let answer = client.get_plugin_info(asked(wire::GetPluginInfoRequest {}, deadline));
        self.ask(Call::GetPluginInfo, deadline, answer, convert::identity).await
    }

    /// Calls `GetPluginCapabilities`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn get_plugin_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<(Vec<PluginCapability>, Vec<Expansion>), FailedCall> {
        let mut client = self.lease.identity();
        let answer = client.get_plugin_capabilities(asked(wire::GetPluginCapabilitiesRequest {}, deadline));
        self.ask(Call::GetPluginCapabilities, deadline, answer, convert::plugin_capabilities).await
    }

    /// Calls `Probe`. The instance of the plugin probes it already; further probes have a cost (C037).
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn probe(&self, deadline: Duration) -> Result<Readiness, FailedCall> {
        let mut client = self.lease.identity();
        let answer = client.probe(asked(wire::ProbeRequest {}, deadline));
        self.ask(Call::Probe, deadline, answer, convert::readiness).await
    }

    /// Calls `ControllerGetCapabilities`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn controller_get_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<Vec<ControllerCapability>, FailedCall> {
        let mut client = self.lease.controller();
        let request = asked(wire::ControllerGetCapabilitiesRequest {}, deadline);
        let answer = client.controller_get_capabilities(request);
        self.ask(Call::ControllerGetCapabilities, deadline, answer, convert::controller_capabilities).await
    }

    /// Calls `GroupControllerGetCapabilities`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn group_controller_get_capabilities(
        &self,
        deadline: Duration,
    ) -> Result<Vec<GroupControllerCapability>, FailedCall> {
        let mut client = self.lease.group_controller();
        let request = asked(wire::GroupControllerGetCapabilitiesRequest {}, deadline);
        let answer = client.group_controller_get_capabilities(request);
        let convert = convert::group_controller_capabilities;
        self.ask(Call::GroupControllerGetCapabilities, deadline, answer, convert).await
    }

    /// Calls `NodeGetCapabilities`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn node_get_capabilities(&self, deadline: Duration) -> Result<Vec<NodeCapability>, FailedCall> {
        let mut client = self.lease.node();
        let answer = client.node_get_capabilities(asked(wire::NodeGetCapabilitiesRequest {}, deadline));
        self.ask(Call::NodeGetCapabilities, deadline, answer, convert::node_capabilities).await
    }

    /// Calls `NodeGetInfo` (C146).
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn node_get_info(&self, deadline: Duration) -> Result<NodeInfo, FailedCall> {
        let mut client = self.lease.node();
        let answer = client.node_get_info(asked(wire::NodeGetInfoRequest {}, deadline));
        self.ask(Call::NodeGetInfo, deadline, answer, convert::node_info).await
    }

    /// Makes a call whose request is empty. Harmless deviations of the answer are accepted.
    async fn ask<W, T>(
        &self,
        call: Call,
        deadline: Duration,
        answer: impl Future<Output = Result<Response<W>, Status>>,
        convert: fn(W, &mut Leeway) -> Result<T, Fault>,
    ) -> Result<T, FailedCall> {
        let outcome = async {
            call.check_offered(self.lease.fingerprint()).map_err(Failure::Request)?;
            let message = answered(deadline, answer, &[]).await?;
            convert(message, &mut Leeway::default()).map_err(Failure::Answer)
        };
        self.noted(call, outcome).await
    }
}
