//! Encodes and decodes records. The only file that names bincode.
//!
//! bincode is unmaintained. Two crates write the same bytes for the same configuration (`wincode` with variable integers and
//! `bincode-next`), so either can replace it without touching a file on disk.
//!
//! Two defaults of bincode would be fatal on damaged bytes, and are prevented: without a limit it allocates as much memory
//! as a damaged length claims and aborts the process, and it accepts trailing bytes.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::Record;

/// The size limit of an encoded record: 1 MiB. A write with a longer one is refused.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// The memory limit for decoding one record: 16 MiB.
const DECODE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The initial capacity of the buffer, enough for most records, so that encoding does not reallocate.
const USUAL_BYTES: usize = 256;

const SCHEMA_BYTES: usize = 2;

const CONFIGURATION: Configuration<LittleEndian, Varint, Limit<DECODE_BYTES_MAX>> =
    bincode::config::standard().with_limit::<DECODE_BYTES_MAX>();

/// Why bytes cannot be decoded as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are shorter than an empty record.
    #[error("it has only {bytes} bytes, fewer than any record")]
    TooShort {
        /// The number of bytes.
        bytes: usize,
    },
    /// The bytes are corrupt, or stored under the wrong key or in the wrong table.
    #[error("its checksum is {found:08x}, expected {expected:08x}")]
    Checksum {
        /// The checksum that was stored.
        found: u32,
        /// The checksum of the bytes, their key and their table.
        expected: u32,
    },
    /// The record was written by a newer version of this program.
    #[error("its schema {theirs} is newer than {ours}, the newest known here")]
    Newer {
        /// The schema of the record.
        theirs: u16,
        /// The newest schema that this program supports.
        ours: u16,
    },
    /// The record has a schema for which there is no migration.
    #[error("no migration from its schema {schema} is known")]
    UnknownSchema {
        /// The schema of the record.
        schema: u16,
    },
    /// The bytes after the schema cannot be parsed as the type.
    #[error("its content is malformed: {reason}")]
    Malformed {
        /// The error of the decoder or of a migration.
        reason: String,
    },
    /// The table counts more records than can be read: a page of the file is damaged.
    #[error("{records} records exist but cannot be found, because a page of the file is damaged")]
    Missing {
        /// The number of missing records.
        records: u64,
    },
    /// The record is complete, but bytes follow it.
    #[error("{bytes} extra bytes follow its content")]
    LeftOver {
        /// The number of trailing bytes.
        bytes: usize,
    },
}

/// Encodes a record: its schema (two bytes, little-endian) and its content.
///
/// # Panics
///
/// If the type cannot be serialised at all (a sequence of unknown length, a serialiser that fails), which the first test of
/// the type shows.
#[must_use]
pub fn encode<R: Record>(record: &R) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    bytes.extend_from_slice(&R::SCHEMA.to_le_bytes());
    append(record, &mut bytes);
    bytes
}

/// Decodes the output of [`encode`], and migrates older schemas.
///
/// # Errors
///
/// Describes what is wrong with the bytes. Never panics and never claims more memory than 16 MiB, whatever the bytes are.
pub fn decode<R: Record>(bytes: &[u8]) -> Result<R, DecodeError> {
    let (schema, payload) = split(bytes)?;
    match schema.cmp(&R::SCHEMA) {
        std::cmp::Ordering::Equal => decode_payload(payload),
        std::cmp::Ordering::Less => R::migrate(schema, payload),
        std::cmp::Ordering::Greater => Err(DecodeError::Newer { theirs: schema, ours: R::SCHEMA }),
    }
}

/// Decodes the content of a record, to its last byte. Migrations use it with the types of their older schemas.
///
/// # Errors
///
/// Describes what is wrong with the bytes, as [`decode`] does.
pub fn decode_payload<T: DeserializeOwned>(payload: &[u8]) -> Result<T, DecodeError> {
    let (content, consumed) = bincode::serde::decode_from_slice(payload, CONFIGURATION)
        .map_err(|error| DecodeError::Malformed { reason: error.to_string() })?;
    match payload.len() - consumed {
        0 => Ok(content),
        bytes => Err(DecodeError::LeftOver { bytes }),
    }
}

pub(super) fn schema_of(bytes: &[u8]) -> Result<u16, DecodeError> {
    split(bytes).map(|(schema, _)| schema)
}

fn split(bytes: &[u8]) -> Result<(u16, &[u8]), DecodeError> {
    match bytes.split_first_chunk::<SCHEMA_BYTES>() {
        Some((schema, payload)) => Ok((u16::from_le_bytes(*schema), payload)),
        None => Err(DecodeError::TooShort { bytes: bytes.len() }),
    }
}

fn append<T: Serialize>(content: &T, bytes: &mut Vec<u8>) {
    bincode::serde::encode_into_std_write(content, bytes, CONFIGURATION).expect(
        "a vector takes every byte, and a record type that cannot be serialised fails its first test",
    );
}
