//! The identity service, which every plugin has and which a host calls first.

use callboard_actors::csi::Call;
use callboard_proto::csi::v1::identity_server::Identity;
use callboard_proto::csi::v1::plugin_capability::service::Type as Offer;
use callboard_proto::csi::v1::plugin_capability::{Service, Type, VolumeExpansion};
use callboard_proto::csi::v1::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};
use tonic::{Request, Response, Status};

use super::faults::{Garbage, UNKNOWN_CAPABILITY};
use super::serve::Plugin;

#[tonic::async_trait]
impl Identity for Plugin {
    /// Returns the plugin's identity. The name is a domain name (C030) and never changes (C031).
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        self.faults.before(Call::GetPluginInfo).await?;
        Ok(Response::new(GetPluginInfoResponse {
            name: self.faults.name(&self.args.name),
            vendor_version: self.args.plugin_version.clone(),
            manifest: self.faults.manifest(),
        }))
    }

    /// Returns what the plugin offers as a whole. Both roles answer the same: a node, too, reports the controller (C032).
    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        self.faults.before(Call::GetPluginCapabilities).await?;
        let offered = [
            (!self.args.without_controller).then_some(Offer::ControllerService as i32),
            self.offers_groups().then_some(Offer::GroupControllerService as i32),
            (!self.args.topology.is_empty()).then_some(Offer::VolumeAccessibilityConstraints as i32),
            self.faults.garbage(Garbage::UnknownCapabilities).then_some(UNKNOWN_CAPABILITY),
        ];
        let expansion = self.volumes.as_ref().map(|_| PluginCapability {
            r#type: Some(Type::VolumeExpansion(VolumeExpansion { r#type: self.args.expansion() as i32 })),
        });
        let capabilities = offered.into_iter().flatten().map(capability).chain(expansion).collect();
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    /// Returns whether the plugin is ready. While it initializes it answers "not ready", which is not an error (C039).
    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        self.faults.before(Call::Probe).await?;
        Ok(Response::new(ProbeResponse { ready: Some(self.faults.ready()) }))
    }
}

fn capability(number: i32) -> PluginCapability {
    PluginCapability { r#type: Some(Type::Service(Service { r#type: number })) }
}
