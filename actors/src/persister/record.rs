//! What a record is, and how it lies on disk.
//!
//! ```text
//! | checksum (4 bytes) | schema (2 bytes) | content (bincode 2, standard configuration) |
//!   '- CRC-32 of table, key, schema and content; numbers are little-endian
//! ```
//!
//! The checksum covers the key and the table too, so that a record never comes back under a key that it wasn't given.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{self, DecodeError};
use super::messages::Table;

/// How many bytes lie before the record on disk.
pub(super) const SEAL_BYTES: usize = 4;

/// A row type: what one table of the database holds.
///
/// Rows are not domain types (a domain type may change at will, a row may not): whoever stores something has row types
/// beside it and converts at the edge. Fields may never be added, removed or reordered without a new schema number, since
/// the bytes do not describe themselves.
pub trait Record: Serialize + DeserializeOwned {
    /// The table that holds these records, and no others.
    const TABLE: Table;

    /// The number of the present layout. It grows with every change of it.
    const SCHEMA: u16;

    /// Makes a record out of the content of an older one. [`decode_payload`](super::decode_payload) reads the content.
    ///
    /// # Errors
    ///
    /// Any error sets the record aside, as a damaged one. Without an implementation that is every older record.
    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        let _ = payload;
        Err(DecodeError::UnknownSchema { schema })
    }
}

/// The checksum of an encoded record at its place.
pub(super) fn checksum(table: Table, key: &[u8], record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(table.0.as_bytes());
    hasher.update(&u64::try_from(key.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(key);
    hasher.update(record);
    hasher.finalize()
}

/// Writes an encoded record, behind its checksum, to where it will lie. The space is exactly as long as both.
pub(super) fn seal(table: Table, key: &[u8], record: &[u8], space: &mut [u8]) {
    let (seal, rest) = space.split_at_mut(SEAL_BYTES);
    seal.copy_from_slice(&checksum(table, key, record).to_le_bytes());
    rest.copy_from_slice(record);
}

/// A record that was read, and whether it was written by this schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<R> {
    /// It has the present schema.
    Present(R),
    /// It had an older schema and was migrated.
    Migrated(R),
}

/// Reads what [`seal`] wrote.
pub(super) fn unseal<R: Record>(key: &[u8], bytes: &[u8]) -> Result<Read<R>, DecodeError> {
    let Some((seal, record)) = bytes.split_first_chunk::<SEAL_BYTES>() else {
        return Err(DecodeError::TooShort { bytes: bytes.len() });
    };
    let (found, expected) = (u32::from_le_bytes(*seal), checksum(R::TABLE, key, record));
    if found != expected {
        return Err(DecodeError::Checksum { found, expected });
    }
    let present = codec::schema_of(record)? == R::SCHEMA;
    codec::decode(record).map(if present { Read::Present } else { Read::Migrated })
}
