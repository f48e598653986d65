//! The messages of the calls about volumes and snapshots, field by field.

use callboard_proto::csi::v1 as wire;
use wire::volume_usage::Unit;

use super::field::{At, Field, empty, message, required_part, single_field};
use crate::csi::rules::malformed;
use crate::csi::*;
use crate::rpc::Fault;

// === Controller ===

message!(
    CreateVolumeRequest = wire::CreateVolumeRequest {
        name,
        capacity_range,
        volume_capabilities,
        parameters,
        secrets,
        volume_content_source,
        accessibility_requirements,
        mutable_parameters,
    }
);

message!(DeleteVolumeRequest = wire::DeleteVolumeRequest { volume_id, secrets });

message!(
    ControllerPublishVolumeRequest = wire::ControllerPublishVolumeRequest {
        volume_id,
        node_id,
        volume_capability: "C009",
        readonly,
        secrets,
        volume_context,
    }
);

impl Field<wire::ControllerUnpublishVolumeRequest> for ControllerUnpublishVolumeRequest {
    fn put(&self) -> wire::ControllerUnpublishVolumeRequest {
        let node_id = match &self.from {
            UnpublishFrom::Node(node_id) => node_id.clone(),
            UnpublishFrom::AllNodes => String::new(),
        };
        wire::ControllerUnpublishVolumeRequest {
            volume_id: self.volume_id.clone(),
            node_id,
            secrets: self.secrets.put(),
        }
    }

    fn take(message: wire::ControllerUnpublishVolumeRequest, at: At) -> Result<Self, Fault> {
        let node_id: Option<String> = Field::take(message.node_id, at)?;
        Ok(Self {
            volume_id: message.volume_id,
            from: node_id.map_or(UnpublishFrom::AllNodes, UnpublishFrom::Node),
            secrets: Field::take(message.secrets, at)?,
        })
    }
}

message!(
    ValidateVolumeCapabilitiesRequest = wire::ValidateVolumeCapabilitiesRequest {
        volume_id,
        volume_context,
        volume_capabilities,
        parameters,
        secrets,
        mutable_parameters,
    }
);

message!(
    Confirmed = wire::validate_volume_capabilities_response::Confirmed {
        volume_context,
        volume_capabilities,
        parameters,
        mutable_parameters,
    }
);

message!(
    ValidateVolumeCapabilitiesResponse = wire::ValidateVolumeCapabilitiesResponse { confirmed, message }
);

message!(
    ControllerExpandVolumeRequest =
        wire::ControllerExpandVolumeRequest { volume_id, capacity_range: "C009", secrets, volume_capability }
);

message!(
    ControllerExpandVolumeResponse =
        wire::ControllerExpandVolumeResponse { capacity_bytes: "C052", node_expansion_required }
);

message!(
    ControllerModifyVolumeRequest =
        wire::ControllerModifyVolumeRequest { volume_id, secrets, mutable_parameters }
);

message!(ControllerGetVolumeRequest = wire::ControllerGetVolumeRequest { volume_id });

message!(ControllerGetVolumeResponse = wire::ControllerGetVolumeResponse { volume: "C059", status });

message!(
    VolumeStatus =
        wire::controller_get_volume_response::VolumeStatus { published_node_ids, volume_condition }
);

message!(ListVolumesRequest = wire::ListVolumesRequest { max_entries: "C091", starting_token });

message!(ListVolumesResponse = wire::ListVolumesResponse { entries, next_token });

message!(ListVolumesEntry = wire::list_volumes_response::Entry { volume: "C059", status });

message!(VolumeStatus = wire::list_volumes_response::VolumeStatus { published_node_ids, volume_condition });

message!(
    GetCapacityRequest = wire::GetCapacityRequest { volume_capabilities, parameters, accessible_topology }
);

message!(
    GetCapacityResponse = wire::GetCapacityResponse {
        available_capacity: "C097",
        maximum_volume_size: "C097",
        minimum_volume_size: "C097",
    }
);

// === Snapshots ===

message!(CreateSnapshotRequest = wire::CreateSnapshotRequest { source_volume_id, name, secrets, parameters });

message!(DeleteSnapshotRequest = wire::DeleteSnapshotRequest { snapshot_id, secrets });

message!(
    ListSnapshotsRequest = wire::ListSnapshotsRequest {
        max_entries: "C091",
        starting_token,
        source_volume_id,
        snapshot_id,
        secrets,
    }
);

message!(ListSnapshotsResponse = wire::ListSnapshotsResponse { entries, next_token });

message!(GetSnapshotRequest = wire::GetSnapshotRequest { snapshot_id, secrets });

message!(
    Snapshot = wire::Snapshot {
        size_bytes: "C102",
        snapshot_id,
        source_volume_id,
        creation_time,
        ready_to_use,
        group_snapshot_id,
    }
);

message!(
    CreateVolumeGroupSnapshotRequest =
        wire::CreateVolumeGroupSnapshotRequest { name, source_volume_ids, secrets, parameters }
);

message!(
    DeleteVolumeGroupSnapshotRequest =
        wire::DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets }
);

message!(
    GetVolumeGroupSnapshotRequest =
        wire::GetVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, secrets }
);

message!(
    VolumeGroupSnapshot =
        wire::VolumeGroupSnapshot { group_snapshot_id, snapshots, creation_time, ready_to_use }
);

// === Blocks of snapshots ===

message!(
    GetMetadataAllocatedRequest = wire::GetMetadataAllocatedRequest {
        snapshot_id,
        starting_offset: "C161",
        max_results: "C163",
        secrets,
    }
);

message!(
    GetMetadataDeltaRequest = wire::GetMetadataDeltaRequest {
        base_snapshot_id,
        target_snapshot_id,
        starting_offset: "C161",
        max_results: "C163",
        secrets,
    }
);

message!(
    BlockMetadataBatch = wire::GetMetadataAllocatedResponse {
        block_metadata_type,
        volume_capacity_bytes: "C162",
        block_metadata,
    }
);

message!(
    BlockMetadataBatch =
        wire::GetMetadataDeltaResponse { block_metadata_type, volume_capacity_bytes: "C162", block_metadata }
);

message!(BlockMetadata = wire::BlockMetadata { byte_offset: "C162", size_bytes: "C162" });

impl Field<i32> for BlockMetadataType {
    fn put(&self) -> i32 {
        match self {
            Self::FixedLength => wire::BlockMetadataType::FixedLength.into(),
            Self::VariableLength => wire::BlockMetadataType::VariableLength.into(),
        }
    }

    fn take(number: i32, _: At) -> Result<Self, Fault> {
        match wire::BlockMetadataType::try_from(number) {
            Ok(wire::BlockMetadataType::FixedLength) => Ok(Self::FixedLength),
            Ok(wire::BlockMetadataType::VariableLength) => Ok(Self::VariableLength),
            Ok(wire::BlockMetadataType::Unknown) | Err(_) => {
                let expected = "a type that this version knows";
                Err(malformed("C162", "block_metadata_type", &number.to_string(), expected))
            }
        }
    }
}

// === Node ===

message!(
    NodeStageVolumeRequest = wire::NodeStageVolumeRequest {
        volume_id,
        publish_context,
        staging_target_path,
        volume_capability: "C009",
        secrets,
        volume_context,
    }
);

message!(NodeUnstageVolumeRequest = wire::NodeUnstageVolumeRequest { volume_id, staging_target_path });

message!(
    NodePublishVolumeRequest = wire::NodePublishVolumeRequest {
        volume_id,
        publish_context,
        staging_target_path,
        target_path,
        volume_capability: "C009",
        readonly,
        secrets,
        volume_context,
    }
);

message!(NodeUnpublishVolumeRequest = wire::NodeUnpublishVolumeRequest { volume_id, target_path });

message!(
    NodeGetVolumeStatsRequest =
        wire::NodeGetVolumeStatsRequest { volume_id, volume_path, staging_target_path }
);

message!(NodeGetVolumeStatsResponse = wire::NodeGetVolumeStatsResponse { usage, volume_condition });

message!(VolumeUsage = wire::VolumeUsage { available: "C145", total: "C145", used: "C145", unit });

impl Field<i32> for UsageUnit {
    fn put(&self) -> i32 {
        match *self {
            Self::Bytes => Unit::Bytes.into(),
            Self::Inodes => Unit::Inodes.into(),
            Self::Other(number) => number,
        }
    }

    fn take(number: i32, _: At) -> Result<Self, Fault> {
        Ok(match Unit::try_from(number) {
            Ok(Unit::Bytes) => Self::Bytes,
            Ok(Unit::Inodes) => Self::Inodes,
            Ok(Unit::Unknown) | Err(_) => Self::Other(number),
        })
    }
}

message!(
    NodeExpandVolumeRequest = wire::NodeExpandVolumeRequest {
        volume_id,
        volume_path,
        capacity_range,
        staging_target_path,
        volume_capability,
        secrets,
    }
);

message!(NodeExpandVolumeResponse = wire::NodeExpandVolumeResponse { capacity_bytes: "C052" });

// === Answers of one field, or of none ===

required_part! {
    Snapshot = wire::Snapshot,
    VolumeGroupSnapshot = wire::VolumeGroupSnapshot,
}

single_field! {
    Volume = wire::CreateVolumeResponse { volume: "C059" },
    Context = wire::ControllerPublishVolumeResponse { publish_context: "C074" },
    Snapshot = wire::CreateSnapshotResponse { snapshot: "C059" },
    Snapshot = wire::GetSnapshotResponse { snapshot: "C059" },
    Snapshot = wire::list_snapshots_response::Entry { snapshot: "C059" },
    VolumeGroupSnapshot = wire::CreateVolumeGroupSnapshotResponse { group_snapshot: "C059" },
    VolumeGroupSnapshot = wire::GetVolumeGroupSnapshotResponse { group_snapshot: "C059" },
}

empty! {
    wire::DeleteVolumeResponse,
    wire::ControllerUnpublishVolumeResponse,
    wire::ControllerModifyVolumeResponse,
    wire::DeleteSnapshotResponse,
    wire::DeleteVolumeGroupSnapshotResponse,
    wire::NodeStageVolumeResponse,
    wire::NodeUnstageVolumeResponse,
    wire::NodePublishVolumeResponse,
    wire::NodeUnpublishVolumeResponse,
}
