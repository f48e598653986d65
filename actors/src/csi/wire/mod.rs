//! Converts requests and answers about volumes and snapshots to messages of the wire, in both directions and without a loss (V10).
//!
//! Both directions are public for requests and answers: a host sends requests and reads answers, a plugin or a test the other way round.
//!
//! A message is refused when it cannot be one of our types: a required part is missing, a number is negative, a value of an enum is
//! unknown. Sizes and formats are checked later, by [`Request::check`] and [`Request::check_answer`].

mod field;

mod messages;
mod parts;

use callboard_proto::csi::v1 as wire;

use self::field::{At, Field};
use super::Request;
use crate::rpc::Fault;

/// A request with a message of the wire for itself and for its answer.
pub trait WireRequest: Request + Sized {
    /// The message of the request.
    type Message;
    /// The message of the answer.
    type AnswerMessage;

    /// The message of the request. Numbers above the limit of the wire, which [`Request::check`] refuses, become that limit.
    fn to_wire(&self) -> Self::Message;

    /// The request of a message.
    ///
    /// # Errors
    /// The field that makes the message invalid as a request.
    fn from_wire(message: Self::Message) -> Result<Self, Fault>;

    /// The message of an answer.
    fn answer_to_wire(answer: &Self::Answer) -> Self::AnswerMessage;

    /// The answer of a message.
    ///
    /// # Errors
    /// The field that makes the message invalid as an answer.
    fn answer_from_wire(message: Self::AnswerMessage) -> Result<Self::Answer, Fault>;
}

/// The requests, each with the message of its answer.
macro_rules! requests {
    ($($request:ident -> $answer:ident,)*) => {$(
        impl WireRequest for crate::csi::$request {
            type Message = wire::$request;
            type AnswerMessage = wire::$answer;

            fn to_wire(&self) -> Self::Message {
                self.put()
            }

            fn from_wire(message: Self::Message) -> Result<Self, Fault> {
                Field::take(message, At { rule: "C011", field: stringify!($request) })
            }

            fn answer_to_wire(answer: &Self::Answer) -> Self::AnswerMessage {
                answer.put()
            }

            fn answer_from_wire(message: Self::AnswerMessage) -> Result<Self::Answer, Fault> {
                Field::take(message, At { rule: "C011", field: stringify!($answer) })
            }
        }
    )*};
}

requests! {
    CreateVolumeRequest -> CreateVolumeResponse,
    DeleteVolumeRequest -> DeleteVolumeResponse,
    ControllerPublishVolumeRequest -> ControllerPublishVolumeResponse,
    ControllerUnpublishVolumeRequest -> ControllerUnpublishVolumeResponse,
    ValidateVolumeCapabilitiesRequest -> ValidateVolumeCapabilitiesResponse,
    ListVolumesRequest -> ListVolumesResponse,
    GetCapacityRequest -> GetCapacityResponse,
    CreateSnapshotRequest -> CreateSnapshotResponse,
    DeleteSnapshotRequest -> DeleteSnapshotResponse,
    ListSnapshotsRequest -> ListSnapshotsResponse,
    GetSnapshotRequest -> GetSnapshotResponse,
    ControllerExpandVolumeRequest -> ControllerExpandVolumeResponse,
    ControllerGetVolumeRequest -> ControllerGetVolumeResponse,
    ControllerModifyVolumeRequest -> ControllerModifyVolumeResponse,
    CreateVolumeGroupSnapshotRequest -> CreateVolumeGroupSnapshotResponse,
    DeleteVolumeGroupSnapshotRequest -> DeleteVolumeGroupSnapshotResponse,
    GetVolumeGroupSnapshotRequest -> GetVolumeGroupSnapshotResponse,
    GetMetadataAllocatedRequest -> GetMetadataAllocatedResponse,
    GetMetadataDeltaRequest -> GetMetadataDeltaResponse,
    NodeStageVolumeRequest -> NodeStageVolumeResponse,
    NodeUnstageVolumeRequest -> NodeUnstageVolumeResponse,
    NodePublishVolumeRequest -> NodePublishVolumeResponse,
    NodeUnpublishVolumeRequest -> NodeUnpublishVolumeResponse,
    NodeGetVolumeStatsRequest -> NodeGetVolumeStatsResponse,
    NodeExpandVolumeRequest -> NodeExpandVolumeResponse,
}

#[cfg(test)]
mod tests;
