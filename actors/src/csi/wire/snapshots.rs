//! Calls about snapshots.

use callboard_proto::csi::v1 as wire;
use wire::list_snapshots_response::Entry;

use super::parts::{
    entries_max, entries_max_from, map, map_from, number, number_from, required, secrets, secrets_from, time,
    time_from,
};
use super::{WireRequest, empty_answer};
use crate::csi::{
    CreateSnapshotRequest, DeleteSnapshotRequest, GetSnapshotRequest, ListSnapshotsRequest,
    ListSnapshotsResponse, Snapshot,
};
use crate::rpc::Fault;

pub(super) fn snapshot(snapshot: &Snapshot) -> wire::Snapshot {
    wire::Snapshot {
        size_bytes: number(snapshot.size_bytes),
        snapshot_id: snapshot.snapshot_id.clone(),
        source_volume_id: snapshot.source_volume_id.clone(),
        creation_time: snapshot.creation_time.map(time),
        ready_to_use: snapshot.ready_to_use,
        group_snapshot_id: snapshot.group_snapshot_id.clone(),
    }
}

pub(super) fn snapshot_from(snapshot: wire::Snapshot) -> Result<Snapshot, Fault> {
    Ok(Snapshot {
        size_bytes: number_from("C102", "size_bytes", snapshot.size_bytes)?,
        snapshot_id: snapshot.snapshot_id,
        source_volume_id: snapshot.source_volume_id,
        creation_time: snapshot.creation_time.map(time_from).transpose()?,
        ready_to_use: snapshot.ready_to_use,
        group_snapshot_id: snapshot.group_snapshot_id,
    })
}

/// The snapshot of an answer, which must be there.
fn required_snapshot(snapshot: Option<wire::Snapshot>) -> Result<Snapshot, Fault> {
    snapshot_from(required("C059", "snapshot", snapshot)?)
}

impl WireRequest for CreateSnapshotRequest {
    type Message = wire::CreateSnapshotRequest;
    type AnswerMessage = wire::CreateSnapshotResponse;

    fn to_wire(&self) -> Self::Message {
        wire::CreateSnapshotRequest {
            source_volume_id: self.source_volume_id.clone(),
            name: self.name.clone(),
            secrets: secrets(&self.secrets),
            parameters: map(&self.parameters),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            source_volume_id: message.source_volume_id,
            name: message.name,
            secrets: secrets_from(message.secrets),
            parameters: map_from(message.parameters),
        })
    }

    fn answer_to_wire(answer: &Snapshot) -> Self::AnswerMessage {
        wire::CreateSnapshotResponse { snapshot: Some(snapshot(answer)) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<Snapshot, Fault> {
        required_snapshot(message.snapshot)
    }
}

impl WireRequest for DeleteSnapshotRequest {
    type Message = wire::DeleteSnapshotRequest;

    fn to_wire(&self) -> Self::Message {
        wire::DeleteSnapshotRequest { snapshot_id: self.snapshot_id.clone(), secrets: secrets(&self.secrets) }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self { snapshot_id: message.snapshot_id, secrets: secrets_from(message.secrets) })
    }

    empty_answer!(wire::DeleteSnapshotResponse);
}

impl WireRequest for ListSnapshotsRequest {
    type Message = wire::ListSnapshotsRequest;
    type AnswerMessage = wire::ListSnapshotsResponse;

    fn to_wire(&self) -> Self::Message {
        wire::ListSnapshotsRequest {
            max_entries: entries_max(self.max_entries),
            starting_token: self.starting_token.clone(),
            source_volume_id: self.source_volume_id.clone(),
            snapshot_id: self.snapshot_id.clone(),
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            max_entries: entries_max_from("C091", "max_entries", message.max_entries)?,
            starting_token: message.starting_token,
            source_volume_id: message.source_volume_id,
            snapshot_id: message.snapshot_id,
            secrets: secrets_from(message.secrets),
        })
    }

    fn answer_to_wire(answer: &ListSnapshotsResponse) -> Self::AnswerMessage {
        let entry = |entry: &Snapshot| Entry { snapshot: Some(snapshot(entry)) };
        wire::ListSnapshotsResponse {
            entries: answer.entries.iter().map(entry).collect(),
            next_token: answer.next_token.clone(),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<ListSnapshotsResponse, Fault> {
        let entries = message.entries.into_iter().map(|entry| required_snapshot(entry.snapshot));
        Ok(ListSnapshotsResponse {
            entries: entries.collect::<Result<_, _>>()?,
            next_token: message.next_token,
        })
    }
}

impl WireRequest for GetSnapshotRequest {
    type Message = wire::GetSnapshotRequest;
    type AnswerMessage = wire::GetSnapshotResponse;

    fn to_wire(&self) -> Self::Message {
        wire::GetSnapshotRequest { snapshot_id: self.snapshot_id.clone(), secrets: secrets(&self.secrets) }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self { snapshot_id: message.snapshot_id, secrets: secrets_from(message.secrets) })
    }

    fn answer_to_wire(answer: &Snapshot) -> Self::AnswerMessage {
        wire::GetSnapshotResponse { snapshot: Some(snapshot(answer)) }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<Snapshot, Fault> {
        required_snapshot(message.snapshot)
    }
}
