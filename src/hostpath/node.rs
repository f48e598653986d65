//! The node service, for volumes on the plugin's node.

use callboard_actors::csi::Call;
use callboard_proto::csi::v1 as wire;
use tonic::{Request, Response, Status};
use wire::node_server::Node;
use wire::node_service_capability::rpc::Type as Claim;
use wire::node_service_capability::{Rpc as Capability, Type};

use super::calls::service;
use super::faults::{Garbage, UNKNOWN_CAPABILITY};
use super::serve::Plugin;
use super::volumes::{publish, stage, usage};

/// The claims of a node with volumes, unless its claims are given.
const CLAIMS: [Claim; 5] = [
    Claim::StageUnstageVolume,
    Claim::GetVolumeStats,
    Claim::ExpandVolume,
    Claim::VolumeCondition,
    Claim::SingleNodeMultiWriter,
];

/// The claims with these arguments.
pub(super) fn claimed(told: &[Claim], has_volumes: bool) -> Vec<Claim> {
    if told.is_empty() && has_volumes { CLAIMS.to_vec() } else { told.to_vec() }
}

impl Plugin {
    fn claims_on_node(&self, claim: Claim) -> bool {
        self.node_claims.contains(&claim)
    }
}

service! {
    Node for plugin {
        node_stage_volume(NodeStageVolumeRequest) -> NodeStageVolumeResponse {
            NodeStageVolume if plugin.claims_on_node(Claim::StageUnstageVolume), on |it| it.volume_id.clone(), do stage::stage
        }
        node_unstage_volume(NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse {
            NodeUnstageVolume if plugin.claims_on_node(Claim::StageUnstageVolume), on |it| it.volume_id.clone(), do stage::unstage
        }
        node_publish_volume(NodePublishVolumeRequest) -> NodePublishVolumeResponse {
            NodePublishVolume if plugin.has_volumes(), on |it| it.volume_id.clone(), do publish::publish
        }
        node_unpublish_volume(NodeUnpublishVolumeRequest) -> NodeUnpublishVolumeResponse {
            NodeUnpublishVolume if plugin.has_volumes(), on |it| it.volume_id.clone(), do publish::unpublish
        }
        node_get_volume_stats(NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse {
            NodeGetVolumeStats if plugin.claims_on_node(Claim::GetVolumeStats), on |it| it.volume_id.clone(), do usage::statistics
        }
        node_expand_volume(NodeExpandVolumeRequest) -> NodeExpandVolumeResponse {
            NodeExpandVolume if plugin.claims_on_node(Claim::ExpandVolume), on |it| it.volume_id.clone(), do usage::expand
        }
    }

    async fn node_get_capabilities(
        &self,
        _: Request<wire::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<wire::NodeGetCapabilitiesResponse>, Status> {
        self.faults.before(Call::NodeGetCapabilities).await?;
        let claimed = self.node_claims.iter().map(|claimed| *claimed as i32);
        let unknown = self.faults.garbage(Garbage::UnknownCapabilities).then_some(UNKNOWN_CAPABILITY);
        let capabilities = claimed.chain(unknown).map(capability).collect();
        Ok(Response::new(wire::NodeGetCapabilitiesResponse { capabilities }))
    }

    // The id of the node, its limit of volumes (0: no limit, C147) and its topology (C148).
    async fn node_get_info(
        &self,
        _: Request<wire::NodeGetInfoRequest>,
    ) -> Result<Response<wire::NodeGetInfoResponse>, Status> {
        let plan = self.faults.before(Call::NodeGetInfo).await?;
        let segments = self.args.topology().map(|topology| topology.into_iter().collect());
        let node_id = self.args.node_id();
        Ok(Response::new(wire::NodeGetInfoResponse {
            node_id: if plan.lies() { format!("not-{node_id}") } else { node_id },
            max_volumes_per_node: self.args.max_volumes,
            accessible_topology: segments.map(|segments| wire::Topology { segments }),
        }))
    }
}

fn capability(number: i32) -> wire::NodeServiceCapability {
    wire::NodeServiceCapability { r#type: Some(Type::Rpc(Capability { r#type: number })) }
}
