//! Streams of the blocks of snapshots.

use callboard_proto::csi::v1 as wire;

use super::WireRequest;
use super::parts::{entries_max, entries_max_from, number, number_from, secrets, secrets_from};
use crate::csi::rules::malformed;
use crate::csi::{
    BlockMetadata, BlockMetadataBatch, BlockMetadataType, GetMetadataAllocatedRequest,
    GetMetadataDeltaRequest,
};
use crate::rpc::Fault;

fn style(style: BlockMetadataType) -> i32 {
    match style {
        BlockMetadataType::FixedLength => wire::BlockMetadataType::FixedLength.into(),
        BlockMetadataType::VariableLength => wire::BlockMetadataType::VariableLength.into(),
    }
}

fn style_from(number: i32) -> Result<BlockMetadataType, Fault> {
    match wire::BlockMetadataType::try_from(number) {
        Ok(wire::BlockMetadataType::FixedLength) => Ok(BlockMetadataType::FixedLength),
        Ok(wire::BlockMetadataType::VariableLength) => Ok(BlockMetadataType::VariableLength),
        Ok(wire::BlockMetadataType::Unknown) | Err(_) => {
            let expected = "a type that this version knows";
            Err(malformed("C162", "block_metadata_type", &number.to_string(), expected))
        }
    }
}

fn blocks(blocks: &[BlockMetadata]) -> Vec<wire::BlockMetadata> {
    let block = |block: &BlockMetadata| wire::BlockMetadata {
        byte_offset: number(block.byte_offset),
        size_bytes: number(block.size_bytes),
    };
    blocks.iter().map(block).collect()
}

fn batch_from(
    block_metadata_type: i32,
    volume_capacity_bytes: i64,
    blocks: Vec<wire::BlockMetadata>,
) -> Result<BlockMetadataBatch, Fault> {
    let read = |field, value| number_from("C162", field, value);
    let block = |block: wire::BlockMetadata| {
        Ok(BlockMetadata {
            byte_offset: read("byte_offset", block.byte_offset)?,
            size_bytes: read("size_bytes", block.size_bytes)?,
        })
    };
    Ok(BlockMetadataBatch {
        block_metadata_type: style_from(block_metadata_type)?,
        volume_capacity_bytes: read("volume_capacity_bytes", volume_capacity_bytes)?,
        block_metadata: blocks.into_iter().map(block).collect::<Result<_, Fault>>()?,
    })
}

impl WireRequest for GetMetadataAllocatedRequest {
    type Message = wire::GetMetadataAllocatedRequest;
    type AnswerMessage = wire::GetMetadataAllocatedResponse;

    fn to_wire(&self) -> Self::Message {
        wire::GetMetadataAllocatedRequest {
            snapshot_id: self.snapshot_id.clone(),
            starting_offset: number(self.starting_offset),
            max_results: entries_max(self.max_results),
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            snapshot_id: message.snapshot_id,
            starting_offset: number_from("C161", "starting_offset", message.starting_offset)?,
            max_results: entries_max_from("C163", "max_results", message.max_results)?,
            secrets: secrets_from(message.secrets),
        })
    }

    fn answer_to_wire(answer: &BlockMetadataBatch) -> Self::AnswerMessage {
        wire::GetMetadataAllocatedResponse {
            block_metadata_type: style(answer.block_metadata_type),
            volume_capacity_bytes: number(answer.volume_capacity_bytes),
            block_metadata: blocks(&answer.block_metadata),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<BlockMetadataBatch, Fault> {
        batch_from(message.block_metadata_type, message.volume_capacity_bytes, message.block_metadata)
    }
}

impl WireRequest for GetMetadataDeltaRequest {
    type Message = wire::GetMetadataDeltaRequest;
    type AnswerMessage = wire::GetMetadataDeltaResponse;

    fn to_wire(&self) -> Self::Message {
        wire::GetMetadataDeltaRequest {
            base_snapshot_id: self.base_snapshot_id.clone(),
            target_snapshot_id: self.target_snapshot_id.clone(),
            starting_offset: number(self.starting_offset),
            max_results: entries_max(self.max_results),
            secrets: secrets(&self.secrets),
        }
    }

    fn from_wire(message: Self::Message) -> Result<Self, Fault> {
        Ok(Self {
            base_snapshot_id: message.base_snapshot_id,
            target_snapshot_id: message.target_snapshot_id,
            starting_offset: number_from("C161", "starting_offset", message.starting_offset)?,
            max_results: entries_max_from("C163", "max_results", message.max_results)?,
            secrets: secrets_from(message.secrets),
        })
    }

    fn answer_to_wire(answer: &BlockMetadataBatch) -> Self::AnswerMessage {
        wire::GetMetadataDeltaResponse {
            block_metadata_type: style(answer.block_metadata_type),
            volume_capacity_bytes: number(answer.volume_capacity_bytes),
            block_metadata: blocks(&answer.block_metadata),
        }
    }

    fn answer_from_wire(message: Self::AnswerMessage) -> Result<BlockMetadataBatch, Fault> {
        batch_from(message.block_metadata_type, message.volume_capacity_bytes, message.block_metadata)
    }
}
