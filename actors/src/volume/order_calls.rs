//! The calls of orders.

use super::calls::{Admitted, text};
use super::{Brought, Failure, GrowArgs, OrderCall, VolumeSpec};
use crate::csi::{ControllerExpandVolumeRequest, NodeExpandVolumeRequest};

impl Admitted {
    pub(super) async fn order(self, spec: &VolumeSpec, call: OrderCall) -> Result<Brought, Failure> {
        let (volume_id, secrets) = (spec.volume_id.clone(), self.secrets.clone());
        match call {
            OrderCall::Expand { range: capacity_range, capability: volume_capability } => {
                let request =
                    ControllerExpandVolumeRequest { volume_id, capacity_range, secrets, volume_capability };
                let answer = self.send(&request).await?;
                let (capacity_bytes, is_node_next) = (answer.capacity_bytes, answer.node_expansion_required);
                Ok(Brought::Expanded { capacity_bytes, is_node_next })
            }
            OrderCall::Grow(args) => {
                let GrowArgs { volume_path, staging_path, range, capability } = args;
                let request = NodeExpandVolumeRequest {
                    volume_id,
                    volume_path: text(&volume_path)?,
                    capacity_range: Some(range),
                    staging_target_path: staging_path.as_deref().map(text).transpose()?,
                    volume_capability: Some(capability),
                    secrets,
                };
                let capacity_bytes = self.send(&request).await?.capacity_bytes;
                Ok(Brought::Grown { capacity_bytes })
            }
        }
    }
}
