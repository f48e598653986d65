//! The controller service, for volumes independent of a node.

use callboard_actors::csi::Rpc;
use callboard_proto::csi::v1::controller_server::Controller;
use callboard_proto::csi::v1::controller_service_capability::{Rpc as Capability, Type};
use callboard_proto::csi::v1::{
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse, ControllerServiceCapability,
};
use tonic::{Request, Response, Status};

use super::faults::{Garbage, UNKNOWN_CAPABILITY};
use super::serve::Plugin;

#[tonic::async_trait]
impl Controller for Plugin {
    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        self.faults.before(Rpc::ControllerCapabilities).await?;
        let claimed = self.args.controller_capability.iter().map(|claimed| *claimed as i32);
        let unknown = self.faults.garbage(Garbage::UnknownCapabilities).then_some(UNKNOWN_CAPABILITY);
        let capabilities = claimed.chain(unknown).map(capability).collect();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }
}

fn capability(number: i32) -> ControllerServiceCapability {
    ControllerServiceCapability { r#type: Some(Type::Rpc(Capability { r#type: number })) }
}
