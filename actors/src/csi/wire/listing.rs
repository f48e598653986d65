//! Lists of volumes, and free capacity.

use callboard_proto::csi::v1 as wire;
use wire::list_volumes_response::{Entry, VolumeStatus as WireStatus};

use super::WireRequest;
use super::parts::{
    capabilities, capabilities_from, condition, condition_from, entries_max, entries_max_from, map, map_from,
    number, number_from, topology, topology_from, volume, volume_from,
};
use crate::csi::{
    GetCapacityRequest, GetCapacityResponse, ListVolumesEntry, ListVolumesRequest, ListVolumesResponse,
    VolumeStatus,
};
use crate::rpc::Fault;

impl WireRequest for ListVolumesRequest {
    type Message = wire::ListVolumesRequest;
    type AnswerMessage = wire::ListVolumesResponse;

    fn to_wire(&self) -> Self::Message {
        wire::ListVolumesRequest {
            max_entries: entries_max(self.max_entries),
            starting_token: self.starting_token.clone(),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            max_entries: entries_max_from("C091", "max_entries", message.max_entries)?,
            starting_token: message.starting_token,
        })
    }

    fn answer_to_wire(answer: &ListVolumesResponse) -> Self::AnswerMessage {
        let status = |status: &VolumeStatus| WireStatus {
            published_node_ids: status.published_node_ids.clone(),
            volume_condition: status.volume_condition.as_ref().map(condition),
        };
        let entry = |entry: &ListVolumesEntry| Entry {
            volume: Some(volume(&entry.volume)),
            status: entry.status.as_ref().map(status),
        };
        wire::ListVolumesResponse {
            entries: answer.entries.iter().map(entry).collect(),
            next_token: answer.next_token.clone(),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<ListVolumesResponse, Fault> {
        let status = |status: WireStatus| VolumeStatus {
            published_node_ids: status.published_node_ids,
            volume_condition: status.volume_condition.map(condition_from),
        };
        let entry = |entry: Entry| {
            let volume = volume_from(entry.volume)?;
            Ok(ListVolumesEntry { volume, status: entry.status.map(status) })
        };
        let entries = message.entries.into_iter().map(entry).collect::<Result<_, Fault>>()?;
        Ok(ListVolumesResponse { entries, next_token: message.next_token })
    }
}

impl WireRequest for GetCapacityRequest {
    type Message = wire::GetCapacityRequest;
    type AnswerMessage = wire::GetCapacityResponse;

    fn to_wire(&self) -> Self::Message {
        wire::GetCapacityRequest {
            volume_capabilities: capabilities(&self.volume_capabilities),
            parameters: map(&self.parameters),
            accessible_topology: self.accessible_topology.as_ref().map(topology),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            volume_capabilities: capabilities_from(message.volume_capabilities)?,
            parameters: map_from(message.parameters),
            accessible_topology: message.accessible_topology.map(topology_from),
        })
    }

    fn answer_to_wire(answer: &GetCapacityResponse) -> Self::AnswerMessage {
        wire::GetCapacityResponse {
            available_capacity: number(answer.available_capacity),
            maximum_volume_size: answer.maximum_volume_size.map(number),
            minimum_volume_size: answer.minimum_volume_size.map(number),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<GetCapacityResponse, Fault> {
        let read = |field, value| number_from("C097", field, value);
        let size = |field, value: Option<i64>| value.map(|value| read(field, value)).transpose();
        Ok(GetCapacityResponse {
            available_capacity: read("available_capacity", message.available_capacity)?,
            maximum_volume_size: size("maximum_volume_size", message.maximum_volume_size)?,
            minimum_volume_size: size("minimum_volume_size", message.minimum_volume_size)?,
        })
    }
}
