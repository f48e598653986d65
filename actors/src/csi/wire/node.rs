//! Calls of the node service about one volume.

use callboard_proto::csi::v1 as wire;
use wire::volume_usage::Unit;

use super::parts::{
    capability, capability_from, condition, condition_from, map, map_from, number, number_from, optional,
    range, range_from, required_capability, secrets, secrets_from,
};
use super::{WireRequest, empty_answer};
use crate::csi::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse,
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
    UsageUnit, VolumeUsage,
};
use crate::rpc::Fault;

impl WireRequest for NodeStageVolumeRequest {
    type Message = wire::NodeStageVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        wire::NodeStageVolumeRequest {
            volume_id: self.volume_id.clone(),
            publish_context: map(&self.publish_context),
            staging_target_path: self.staging_target_path.clone(),
            volume_capability: Some(capability(&self.volume_capability)),
            secrets: secrets(&self.secrets),
            volume_context: map(&self.volume_context),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            publish_context: map_from(message.publish_context),
            staging_target_path: message.staging_target_path,
            volume_capability: required_capability(message.volume_capability)?,
            secrets: secrets_from(message.secrets),
            volume_context: map_from(message.volume_context),
        })
    }

    empty_answer!(wire::NodeStageVolumeResponse);
}

impl WireRequest for NodeUnstageVolumeRequest {
    type Message = wire::NodeUnstageVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        wire::NodeUnstageVolumeRequest {
            volume_id: self.volume_id.clone(),
            staging_target_path: self.staging_target_path.clone(),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self { volume_id: message.volume_id, staging_target_path: message.staging_target_path })
    }

    empty_answer!(wire::NodeUnstageVolumeResponse);
}

impl WireRequest for NodePublishVolumeRequest {
    type Message = wire::NodePublishVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        wire::NodePublishVolumeRequest {
            volume_id: self.volume_id.clone(),
            publish_context: map(&self.publish_context),
            staging_target_path: self.staging_target_path.clone().unwrap_or_default(),
            target_path: self.target_path.clone(),
            volume_capability: Some(capability(&self.volume_capability)),
            readonly: self.readonly,
            secrets: secrets(&self.secrets),
            volume_context: map(&self.volume_context),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            publish_context: map_from(message.publish_context),
            staging_target_path: optional(message.staging_target_path),
            target_path: message.target_path,
            volume_capability: required_capability(message.volume_capability)?,
            readonly: message.readonly,
            secrets: secrets_from(message.secrets),
            volume_context: map_from(message.volume_context),
        })
    }

    empty_answer!(wire::NodePublishVolumeResponse);
}

impl WireRequest for NodeUnpublishVolumeRequest {
    type Message = wire::NodeUnpublishVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        wire::NodeUnpublishVolumeRequest {
            volume_id: self.volume_id.clone(),
            target_path: self.target_path.clone(),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self { volume_id: message.volume_id, target_path: message.target_path })
    }

    empty_answer!(wire::NodeUnpublishVolumeResponse);
}

fn unit(unit: UsageUnit) -> i32 {
    match unit {
        UsageUnit::Bytes => Unit::Bytes.into(),
        UsageUnit::Inodes => Unit::Inodes.into(),
        UsageUnit::Other(number) => number,
    }
}

fn unit_from(number: i32) -> UsageUnit {
    match Unit::try_from(number) {
        Ok(Unit::Bytes) => UsageUnit::Bytes,
        Ok(Unit::Inodes) => UsageUnit::Inodes,
        Ok(Unit::Unknown) | Err(_) => UsageUnit::Other(number),
    }
}

fn usage_from(usage: wire::VolumeUsage) -> Result<VolumeUsage, Fault> {
    Ok(VolumeUsage {
        available: number_from("C145", "available", usage.available)?,
        total: number_from("C145", "total", usage.total)?,
        used: number_from("C145", "used", usage.used)?,
        unit: unit_from(usage.unit),
    })
}

impl WireRequest for NodeGetVolumeStatsRequest {
    type Message = wire::NodeGetVolumeStatsRequest;
    type AnswerMessage = wire::NodeGetVolumeStatsResponse;

    fn to_wire(&self) -> Self::Message {
        wire::NodeGetVolumeStatsRequest {
            volume_id: self.volume_id.clone(),
            volume_path: self.volume_path.clone(),
            staging_target_path: self.staging_target_path.clone().unwrap_or_default(),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            volume_path: message.volume_path,
            staging_target_path: optional(message.staging_target_path),
        })
    }

    fn answer_to_wire(answer: &NodeGetVolumeStatsResponse) -> Self::AnswerMessage {
        let usage = |usage: &VolumeUsage| wire::VolumeUsage {
            available: number(usage.available),
            total: number(usage.total),
            used: number(usage.used),
            unit: unit(usage.unit),
        };
        wire::NodeGetVolumeStatsResponse {
            usage: answer.usage.iter().map(usage).collect(),
            volume_condition: answer.volume_condition.as_ref().map(condition),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<NodeGetVolumeStatsResponse, Fault> {
        Ok(NodeGetVolumeStatsResponse {
            usage: message.usage.into_iter().map(usage_from).collect::<Result<_, _>>()?,
            volume_condition: message.volume_condition.map(condition_from),
        })
    }
}

impl WireRequest for NodeExpandVolumeRequest {
    type Message = wire::NodeExpandVolumeRequest;
    type AnswerMessage = wire::NodeExpandVolumeResponse;

    fn to_wire(&self) -> Self::Message {
        wire::NodeExpandVolumeRequest {
            volume_id: self.volume_id.clone(),
            volume_path: self.volume_path.clone(),
            capacity_range: self.capacity_range.as_ref().map(range),
            staging_target_path: self.staging_target_path.clone().unwrap_or_default(),
            volume_capability: self.volume_capability.as_ref().map(capability),
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            volume_path: message.volume_path,
            capacity_range: message.capacity_range.map(range_from).transpose()?,
            staging_target_path: optional(message.staging_target_path),
            volume_capability: message.volume_capability.map(capability_from).transpose()?,
            secrets: secrets_from(message.secrets),
        })
    }

    fn answer_to_wire(answer: &NodeExpandVolumeResponse) -> Self::AnswerMessage {
        wire::NodeExpandVolumeResponse { capacity_bytes: number(answer.capacity_bytes) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<NodeExpandVolumeResponse, Fault> {
        let capacity_bytes = number_from("C052", "capacity_bytes", message.capacity_bytes)?;
        Ok(NodeExpandVolumeResponse { capacity_bytes })
    }
}
