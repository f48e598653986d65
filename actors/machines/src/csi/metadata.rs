//! Streams of the blocks of a snapshot that are in use, with the answers checked in their order; alpha.

use super::call::Call;
use super::request::Request;
use super::rules::{self, inconsistent};
use super::secrets::Secrets;
use super::volume::{check_secrets, withheld};
use crate::rpc::Fault;

/// Streams the blocks of a snapshot that hold data. Answered with a stream of [`BlockMetadataBatch`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetMetadataAllocatedRequest {
    /// The snapshot.
    pub snapshot_id: String,
    /// The first byte of interest. After a stream that broke off, [`MetadataStream::resume_at`] (C161).
    pub starting_offset: u64,
    /// The most blocks of one answer; zero leaves it to the plugin (C163).
    pub max_results: u32,
    /// Secrets for this call.
    pub secrets: Secrets,
}

impl Request for GetMetadataAllocatedRequest {
    type Answer = BlockMetadataBatch;
    const CALL: Call = Call::GetMetadataAllocated;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("snapshot_id", &self.snapshot_id)?;
        rules::number("C161", "starting_offset", self.starting_offset)?;
        rules::entries_max("C163", "max_results", self.max_results)?;
        check_secrets(&self.secrets)
    }
}

/// Streams the blocks in which two snapshots of one volume differ. Answered with a stream of [`BlockMetadataBatch`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetMetadataDeltaRequest {
    /// The older snapshot.
    pub base_snapshot_id: String,
    /// The newer snapshot.
    pub target_snapshot_id: String,
    /// The first byte of interest. After a stream that broke off, [`MetadataStream::resume_at`] (C161).
    pub starting_offset: u64,
    /// The most blocks of one answer; zero leaves it to the plugin (C163).
    pub max_results: u32,
    /// Secrets for this call.
    pub secrets: Secrets,
}

impl Request for GetMetadataDeltaRequest {
    type Answer = BlockMetadataBatch;
    const CALL: Call = Call::GetMetadataDelta;

    fn withheld(&self) -> Vec<&str> {
        withheld(&self.secrets, &[])
    }

    fn check(&self) -> Result<(), Fault> {
        rules::plugin_id("base_snapshot_id", &self.base_snapshot_id)?;
        rules::plugin_id("target_snapshot_id", &self.target_snapshot_id)?;
        rules::number("C161", "starting_offset", self.starting_offset)?;
        rules::entries_max("C163", "max_results", self.max_results)?;
        check_secrets(&self.secrets)
    }
}

/// Whether the blocks of a stream have one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockMetadataType {
    /// All blocks have the same length.
    FixedLength,
    /// The length varies.
    VariableLength,
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockMetadata {
    /// Its first byte.
    pub byte_offset: u64,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// One answer of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockMetadataBatch {
    /// The same in all answers of a stream.
    pub block_metadata_type: BlockMetadataType,
    /// The size of the volume, in bytes.
    pub volume_capacity_bytes: u64,
    /// Blocks in the order of their offsets.
    pub block_metadata: Vec<BlockMetadata>,
}

/// Checks the answers of one stream in their order (C162, C163). Only the normal end of a stream proves that it is complete (C160).
#[derive(Debug, Clone)]
pub struct MetadataStream {
    max_results: u32,
    style: Option<(BlockMetadataType, u64)>,
    next_offset: u64,
    received: u64,
}

impl MetadataStream {
    /// A stream whose request has this limit and this first offset.
    #[must_use]
    pub const fn new(max_results: u32, starting_offset: u64) -> Self {
        Self { max_results, style: None, next_offset: 0, received: starting_offset }
    }

    /// The offset for a new request after the stream broke off: behind the last block that was accepted (C161).
    #[must_use]
    pub const fn resume_at(&self) -> u64 {
        self.received
    }

    /// Checks the next answer.
    ///
    /// # Errors
    /// C162 when the style or the size of the volume changes, or a block is empty, overlaps or goes back; C163 when an answer has too many.
    pub fn accept(&mut self, batch: &BlockMetadataBatch) -> Result<(), Fault> {
        let told = |field, detail: &str| Err(inconsistent("C162", field, detail));
        let limit = usize::try_from(self.max_results).unwrap_or(usize::MAX);
        if limit > 0 && batch.block_metadata.len() > limit {
            let detail = format!("has {} blocks, at most {limit} were asked for", batch.block_metadata.len());
            return Err(inconsistent("C163", "block_metadata", detail));
        }
        match self.style.replace((batch.block_metadata_type, batch.volume_capacity_bytes)) {
            Some((style, _)) if style != batch.block_metadata_type => {
                return told("block_metadata_type", "changes within the stream");
            }
            Some((_, capacity)) if capacity != batch.volume_capacity_bytes => {
                return told("volume_capacity_bytes", "changes within the stream");
            }
            Some(_) | None => {}
        }
        for block in &batch.block_metadata {
            let Some(end) = block.byte_offset.checked_add(block.size_bytes) else {
                return told("size_bytes", "leads beyond every volume");
            };
            if block.size_bytes == 0 {
                return told("size_bytes", "is zero");
            }
            if block.byte_offset < self.next_offset {
                return told("byte_offset", "goes back, or into the block before");
            }
            self.next_offset = end;
            self.received = self.received.max(end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::fingerprint;
    use super::*;

    fn batch(style: BlockMetadataType, blocks: &[(u64, u64)]) -> BlockMetadataBatch {
        let block = |&(byte_offset, size_bytes)| BlockMetadata { byte_offset, size_bytes };
        BlockMetadataBatch {
            block_metadata_type: style,
            volume_capacity_bytes: 4096,
            block_metadata: blocks.iter().map(block).collect(),
        }
    }

    fn fixed(blocks: &[(u64, u64)]) -> BlockMetadataBatch {
        batch(BlockMetadataType::FixedLength, blocks)
    }

    #[test]
    fn offsets_grow_over_all_answers_of_a_stream_and_tell_where_to_resume_c161_c162() {
        let mut stream = MetadataStream::new(0, 5);
        assert_eq!(stream.resume_at(), 5);
        // A plugin may begin with the whole block around the first byte of interest.
        assert_eq!(stream.accept(&fixed(&[(0, 8), (8, 8)])), Ok(()));
        assert_eq!(stream.accept(&fixed(&[])), Ok(()));
        assert_eq!(stream.accept(&fixed(&[(32, 8)])), Ok(()));
        assert_eq!(stream.resume_at(), 40);
        assert_eq!(stream.accept(&fixed(&[(32, 8)])).expect_err("again").rule, "C162");
        assert_eq!(stream.resume_at(), 40);
    }

    #[test]
    fn a_stream_with_empty_overlapping_or_changing_blocks_is_a_fault_c162() {
        for blocks in [&[(0, 0)][..], &[(0, 8), (7, 8)], &[(8, 8), (0, 8)], &[(u64::MAX, 1)]] {
            assert_eq!(
                MetadataStream::new(0, 0).accept(&fixed(blocks)).expect_err("at fault").rule,
                "C162",
                "{blocks:?}"
            );
        }
        let mut stream = MetadataStream::new(0, 0);
        assert_eq!(stream.accept(&fixed(&[(0, 8)])), Ok(()));
        let other = batch(BlockMetadataType::VariableLength, &[(8, 8)]);
        assert_eq!(stream.clone().accept(&other).expect_err("another style").field, "block_metadata_type");
        let larger = BlockMetadataBatch { volume_capacity_bytes: 8192, ..fixed(&[(8, 8)]) };
        assert_eq!(stream.accept(&larger).expect_err("another size").field, "volume_capacity_bytes");
    }

    #[test]
    fn an_answer_has_no_more_blocks_than_asked_for_c163() {
        let mut stream = MetadataStream::new(1, 0);
        assert_eq!(stream.accept(&fixed(&[(0, 8)])), Ok(()));
        let fault = stream.accept(&fixed(&[(8, 8), (16, 8)])).expect_err("too many");
        assert_eq!(
            (fault.rule, &*fault.to_string()),
            ("C163", "block_metadata has 2 blocks, at most 1 were asked for")
        );
    }

    #[test]
    fn requests_for_streams_need_their_service_and_their_snapshots_c035() {
        let allocated =
            GetMetadataAllocatedRequest { snapshot_id: "s".into(), ..GetMetadataAllocatedRequest::default() };
        assert_eq!(allocated.validate(&fingerprint()), Ok(()));
        let mut plain = fingerprint();
        plain.plugin.clear();
        assert_eq!(allocated.validate(&plain).expect_err("no such service").fault.rule, "C035");
        let delta =
            GetMetadataDeltaRequest { base_snapshot_id: "s".into(), ..GetMetadataDeltaRequest::default() };
        assert_eq!(delta.check().expect_err("no target").field, "target_snapshot_id");
        let far = GetMetadataAllocatedRequest { starting_offset: 1 << 63, ..allocated };
        assert_eq!(far.check().expect_err("too far").rule, "C161");
    }
}
