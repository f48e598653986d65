//! The node service, for volumes on the plugin's node.

use callboard_actors::csi::Rpc;
use callboard_proto::csi::v1::node_server::Node;
use callboard_proto::csi::v1::node_service_capability::{Rpc as Capability, Type};
use callboard_proto::csi::v1::{
    NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeServiceCapability, Topology,
};
use tonic::{Request, Response, Status};

use super::faults::{Garbage, UNKNOWN_CAPABILITY};
use super::serve::Plugin;

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        self.faults.before(Rpc::NodeCapabilities).await?;
        let claimed = self.args.node_capability.iter().map(|claimed| *claimed as i32);
        let unknown = self.faults.garbage(Garbage::UnknownCapabilities).then_some(UNKNOWN_CAPABILITY);
        let capabilities = claimed.chain(unknown).map(capability).collect();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    /// Returns the id of the node, its limit of volumes (0: no limit, C147) and its topology (C148).
    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        self.faults.before(Rpc::NodeInfo).await?;
        let segments = self.args.topology().map(|topology| topology.into_iter().collect());
        Ok(Response::new(NodeGetInfoResponse {
            node_id: self.args.node_id(),
            max_volumes_per_node: self.args.max_volumes,
            accessible_topology: segments.map(|segments| Topology { segments }),
        }))
    }
}

fn capability(number: i32) -> NodeServiceCapability {
    NodeServiceCapability { r#type: Some(Type::Rpc(Capability { r#type: number })) }
}
