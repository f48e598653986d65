//! Calls to a CSI plugin, their checked answers and their errors: plain data, so that machines can express calls and outcomes.
//!
//! The client that makes these calls is `callboard_actors::csi`.
//!
//! ```text
//!  calls of an instance         Rpc ─────► Answer
//!  calls about volumes          Request ─► check, check_capabilities ─► sent ─► check_answer ─► Request::Answer
//!                                              │                                    │
//!                                         RequestError                            Fault
//!  a call that failed           FailedCall ─► Outcome { effect, reaction }   (table C.6, V4)
//! ```
//!
//! Requests and answers have the names and fields of the specification. Unsigned numbers, exclusive fields as enums and
//! [`Secrets`] have types of their own; where zero or an empty text means "not set" there, it does here, too (C010).

mod rpc;

mod limits;

mod error;

mod continuity;

mod call;

mod secrets;

pub mod rules;

mod volume;

mod request;

mod controller;

mod creation;

mod listing;

mod snapshots;

mod groups;

mod metadata;

mod node;

mod failure;

mod outcome;

#[cfg(test)]
pub(crate) mod fixtures;

pub use crate::rpc::{Cause, Class, Code, Denial, Fault, Problem, SocketFile};
pub use crate::vocabulary::text::{TEXT_BYTES_MAX, quoted};
pub use call::{Call, Service};
pub use continuity::{check_same_plugin, check_same_provider};
pub(crate) use controller::can as controller_can;
pub use controller::{
    Confirmed, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerGetVolumeRequest,
    ControllerGetVolumeResponse, ControllerModifyVolumeRequest, ControllerPublishVolumeRequest,
    ControllerUnpublishVolumeRequest, UnpublishFrom, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse,
};
pub use creation::{CreateVolumeRequest, DeleteVolumeRequest};
pub use error::{CallError, Step};
pub use failure::{FailedCall, Failure};
pub use groups::{
    CreateVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotRequest,
    VolumeGroupSnapshot,
};
pub use limits::Limits;
pub use listing::{
    GetCapacityRequest, GetCapacityResponse, ListVolumesEntry, ListVolumesRequest, ListVolumesResponse,
};
pub use metadata::{
    BlockMetadata, BlockMetadataBatch, BlockMetadataType, GetMetadataAllocatedRequest,
    GetMetadataDeltaRequest, MetadataStream,
};
pub use node::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse,
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
    UsageUnit, VolumeUsage,
};
pub use outcome::{Effect, Outcome, Reaction};
pub use request::{Request, RequestError};
pub use rpc::{Answer, Readiness, Rpc};
pub use secrets::{MountFlags, Secrets, redacted};
pub use snapshots::{
    CreateSnapshotRequest, DeleteSnapshotRequest, GetSnapshotRequest, ListSnapshotsRequest,
    ListSnapshotsResponse, Snapshot,
};
pub use volume::{
    AccessMode, AccessType, CapacityRange, Context, MountVolume, TopologyRequirement, Volume,
    VolumeCapability, VolumeCondition, VolumeContentSource, VolumeStatus, check_secrets,
};
