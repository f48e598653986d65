//! Calls about snapshots of several volumes at once.

use callboard_proto::csi::v1 as wire;

use super::parts::{map, map_from, required, secrets, secrets_from, time, time_from};
use super::snapshots::{snapshot, snapshot_from};
use super::{WireRequest, empty_answer};
use crate::csi::{
    CreateVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotRequest,
    VolumeGroupSnapshot,
};
use crate::rpc::Fault;

fn group(group: &VolumeGroupSnapshot) -> wire::VolumeGroupSnapshot {
    wire::VolumeGroupSnapshot {
        group_snapshot_id: group.group_snapshot_id.clone(),
        snapshots: group.snapshots.iter().map(snapshot).collect(),
        creation_time: group.creation_time.map(time),
        ready_to_use: group.ready_to_use,
    }
}

/// The group of an answer, which must be there.
fn group_from(group: Option<wire::VolumeGroupSnapshot>) -> Result<VolumeGroupSnapshot, Fault> {
    let group = required("C059", "group_snapshot", group)?;
    Ok(VolumeGroupSnapshot {
        group_snapshot_id: group.group_snapshot_id,
        snapshots: group.snapshots.into_iter().map(snapshot_from).collect::<Result<_, _>>()?,
        creation_time: group.creation_time.map(time_from).transpose()?,
        ready_to_use: group.ready_to_use,
    })
}

impl WireRequest for CreateVolumeGroupSnapshotRequest {
    type Message = wire::CreateVolumeGroupSnapshotRequest;
    type AnswerMessage = wire::CreateVolumeGroupSnapshotResponse;

    fn to_wire(&self) -> Self::Message {
        wire::CreateVolumeGroupSnapshotRequest {
            name: self.name.clone(),
            source_volume_ids: self.source_volume_ids.clone(),
            secrets: secrets(&self.secrets),
            parameters: map(&self.parameters),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            name: message.name,
            source_volume_ids: message.source_volume_ids,
            secrets: secrets_from(message.secrets),
            parameters: map_from(message.parameters),
        })
    }

    fn answer_to_wire(answer: &VolumeGroupSnapshot) -> Self::AnswerMessage {
        wire::CreateVolumeGroupSnapshotResponse { group_snapshot: Some(group(answer)) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<VolumeGroupSnapshot, Fault> {
        group_from(message.group_snapshot)
    }
}

impl WireRequest for DeleteVolumeGroupSnapshotRequest {
    type Message = wire::DeleteVolumeGroupSnapshotRequest;

    fn to_wire(&self) -> Self::Message {
        wire::DeleteVolumeGroupSnapshotRequest {
            group_snapshot_id: self.group_snapshot_id.clone(),
            snapshot_ids: self.snapshot_ids.clone(),
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            group_snapshot_id: message.group_snapshot_id,
            snapshot_ids: message.snapshot_ids,
            secrets: secrets_from(message.secrets),
        })
    }

    empty_answer!(wire::DeleteVolumeGroupSnapshotResponse);
}

impl WireRequest for GetVolumeGroupSnapshotRequest {
    type Message = wire::GetVolumeGroupSnapshotRequest;
    type AnswerMessage = wire::GetVolumeGroupSnapshotResponse;

    fn to_wire(&self) -> Self::Message {
        wire::GetVolumeGroupSnapshotRequest {
            group_snapshot_id: self.group_snapshot_id.clone(),
            snapshot_ids: self.snapshot_ids.clone(),
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            group_snapshot_id: message.group_snapshot_id,
            snapshot_ids: message.snapshot_ids,
            secrets: secrets_from(message.secrets),
        })
    }

    fn answer_to_wire(answer: &VolumeGroupSnapshot) -> Self::AnswerMessage {
        wire::GetVolumeGroupSnapshotResponse { group_snapshot: Some(group(answer)) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<VolumeGroupSnapshot, Fault> {
        group_from(message.group_snapshot)
    }
}
