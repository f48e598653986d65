//! Calls of the controller about one volume.

use callboard_proto::csi::v1 as wire;
use wire::controller_get_volume_response::VolumeStatus as WireStatus;
use wire::validate_volume_capabilities_response::Confirmed as WireConfirmed;

use super::parts::{
    capabilities, capabilities_from, capability, capability_from, condition, condition_from, map, map_from,
    number, number_from, optional, range, range_from, required, required_capability, requirement,
    requirement_from, secrets, secrets_from, source, source_from, volume, volume_from,
};
use super::{WireRequest, empty_answer};
use crate::csi::{
    Confirmed, Context, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse,
    ControllerGetVolumeRequest, ControllerGetVolumeResponse, ControllerModifyVolumeRequest,
    ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateVolumeRequest,
    DeleteVolumeRequest, UnpublishFrom, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse, Volume, VolumeStatus,
};
use crate::rpc::Fault;

impl WireRequest for CreateVolumeRequest {
    type Message = wire::CreateVolumeRequest;
    type AnswerMessage = wire::CreateVolumeResponse;

    fn to_wire(&self) -> Self::Message {
        wire::CreateVolumeRequest {
            name: self.name.clone(),
            capacity_range: self.capacity_range.as_ref().map(range),
            volume_capabilities: capabilities(&self.volume_capabilities),
            parameters: map(&self.parameters),
            secrets: secrets(&self.secrets),
            volume_content_source: self.volume_content_source.as_ref().map(source),
            accessibility_requirements: self.accessibility_requirements.as_ref().map(requirement),
            mutable_parameters: map(&self.mutable_parameters),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            name: message.name,
            capacity_range: message.capacity_range.map(range_from).transpose()?,
            volume_capabilities: capabilities_from(message.volume_capabilities)?,
            parameters: map_from(message.parameters),
            secrets: secrets_from(message.secrets),
            volume_content_source: message.volume_content_source.map(source_from).transpose()?,
            accessibility_requirements: message.accessibility_requirements.map(requirement_from),
            mutable_parameters: map_from(message.mutable_parameters),
        })
    }

    fn answer_to_wire(answer: &Volume) -> Self::AnswerMessage {
        wire::CreateVolumeResponse { volume: Some(volume(answer)) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<Volume, Fault> {
        volume_from(message.volume)
    }
}

impl WireRequest for DeleteVolumeRequest {
    type Message = wire::DeleteVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        wire::DeleteVolumeRequest { volume_id: self.volume_id.clone(), secrets: secrets(&self.secrets) }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self { volume_id: message.volume_id, secrets: secrets_from(message.secrets) })
    }

    empty_answer!(wire::DeleteVolumeResponse);
}

impl WireRequest for ControllerPublishVolumeRequest {
    type Message = wire::ControllerPublishVolumeRequest;
    type AnswerMessage = wire::ControllerPublishVolumeResponse;

    fn to_wire(&self) -> Self::Message {
        wire::ControllerPublishVolumeRequest {
            volume_id: self.volume_id.clone(),
            node_id: self.node_id.clone(),
            volume_capability: Some(capability(&self.volume_capability)),
            readonly: self.readonly,
            secrets: secrets(&self.secrets),
            volume_context: map(&self.volume_context),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            node_id: message.node_id,
            volume_capability: required_capability(message.volume_capability)?,
            readonly: message.readonly,
            secrets: secrets_from(message.secrets),
            volume_context: map_from(message.volume_context),
        })
    }

    fn answer_to_wire(answer: &Context) -> Self::AnswerMessage {
        wire::ControllerPublishVolumeResponse { publish_context: map(answer) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<Context, Fault> {
        Ok(map_from(message.publish_context))
    }
}

impl WireRequest for ControllerUnpublishVolumeRequest {
    type Message = wire::ControllerUnpublishVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        let node_id = match &self.from {
            UnpublishFrom::Node(node_id) => node_id.clone(),
            UnpublishFrom::AllNodes => String::new(),
        };
        wire::ControllerUnpublishVolumeRequest {
            volume_id: self.volume_id.clone(),
            node_id,
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            from: optional(message.node_id).map_or(UnpublishFrom::AllNodes, UnpublishFrom::Node),
            secrets: secrets_from(message.secrets),
        })
    }

    empty_answer!(wire::ControllerUnpublishVolumeResponse);
}

impl WireRequest for ValidateVolumeCapabilitiesRequest {
    type Message = wire::ValidateVolumeCapabilitiesRequest;
    type AnswerMessage = wire::ValidateVolumeCapabilitiesResponse;

    fn to_wire(&self) -> Self::Message {
        wire::ValidateVolumeCapabilitiesRequest {
            volume_id: self.volume_id.clone(),
            volume_context: map(&self.volume_context),
            volume_capabilities: capabilities(&self.volume_capabilities),
            parameters: map(&self.parameters),
            secrets: secrets(&self.secrets),
            mutable_parameters: map(&self.mutable_parameters),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            volume_context: map_from(message.volume_context),
            volume_capabilities: capabilities_from(message.volume_capabilities)?,
            parameters: map_from(message.parameters),
            secrets: secrets_from(message.secrets),
            mutable_parameters: map_from(message.mutable_parameters),
        })
    }

    fn answer_to_wire(answer: &ValidateVolumeCapabilitiesResponse) -> Self::AnswerMessage {
        let confirmed = |confirmed: &Confirmed| WireConfirmed {
            volume_context: map(&confirmed.volume_context),
            volume_capabilities: capabilities(&confirmed.volume_capabilities),
            parameters: map(&confirmed.parameters),
            mutable_parameters: map(&confirmed.mutable_parameters),
        };
        wire::ValidateVolumeCapabilitiesResponse {
            confirmed: answer.confirmed.as_ref().map(confirmed),
            message: answer.message.clone(),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<ValidateVolumeCapabilitiesResponse, Fault> {
        let confirmed = |confirmed: WireConfirmed| {
            Ok(Confirmed {
                volume_context: map_from(confirmed.volume_context),
                volume_capabilities: capabilities_from(confirmed.volume_capabilities)?,
                parameters: map_from(confirmed.parameters),
                mutable_parameters: map_from(confirmed.mutable_parameters),
            })
        };
        Ok(ValidateVolumeCapabilitiesResponse {
            confirmed: message.confirmed.map(confirmed).transpose()?,
            message: message.message,
        })
    }
}

impl WireRequest for ControllerExpandVolumeRequest {
    type Message = wire::ControllerExpandVolumeRequest;
    type AnswerMessage = wire::ControllerExpandVolumeResponse;

    fn to_wire(&self) -> Self::Message {
        wire::ControllerExpandVolumeRequest {
            volume_id: self.volume_id.clone(),
            capacity_range: Some(range(&self.capacity_range)),
            secrets: secrets(&self.secrets),
            volume_capability: self.volume_capability.as_ref().map(capability),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            capacity_range: range_from(required("C009", "capacity_range", message.capacity_range)?)?,
            secrets: secrets_from(message.secrets),
            volume_capability: message.volume_capability.map(capability_from).transpose()?,
        })
    }

    fn answer_to_wire(answer: &ControllerExpandVolumeResponse) -> Self::AnswerMessage {
        wire::ControllerExpandVolumeResponse {
            capacity_bytes: number(answer.capacity_bytes),
            node_expansion_required: answer.node_expansion_required,
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<ControllerExpandVolumeResponse, Fault> {
        Ok(ControllerExpandVolumeResponse {
            capacity_bytes: number_from("C052", "capacity_bytes", message.capacity_bytes)?,
            node_expansion_required: message.node_expansion_required,
        })
    }
}

impl WireRequest for ControllerModifyVolumeRequest {
    type Message = wire::ControllerModifyVolumeRequest;

    fn to_wire(&self) -> Self::Message {
        wire::ControllerModifyVolumeRequest {
            volume_id: self.volume_id.clone(),
            secrets: secrets(&self.secrets),
            mutable_parameters: map(&self.mutable_parameters),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_id: message.volume_id,
            secrets: secrets_from(message.secrets),
            mutable_parameters: map_from(message.mutable_parameters),
        })
    }

    empty_answer!(wire::ControllerModifyVolumeResponse);
}

impl WireRequest for ControllerGetVolumeRequest {
    type Message = wire::ControllerGetVolumeRequest;
    type AnswerMessage = wire::ControllerGetVolumeResponse;

    fn to_wire(&self) -> Self::Message {
        wire::ControllerGetVolumeRequest { volume_id: self.volume_id.clone() }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self { volume_id: message.volume_id })
    }

    fn answer_to_wire(answer: &ControllerGetVolumeResponse) -> Self::AnswerMessage {
        let status = |status: &VolumeStatus| WireStatus {
            published_node_ids: status.published_node_ids.clone(),
            volume_condition: status.volume_condition.as_ref().map(condition),
        };
        wire::ControllerGetVolumeResponse {
            volume: Some(volume(&answer.volume)),
            status: answer.status.as_ref().map(status),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<ControllerGetVolumeResponse, Fault> {
        let status = |status: WireStatus| VolumeStatus {
            published_node_ids: status.published_node_ids,
            volume_condition: status.volume_condition.map(condition_from),
        };
        Ok(ControllerGetVolumeResponse {
            volume: volume_from(message.volume)?,
            status: message.status.map(status),
        })
    }
}
