//! The `Record` trait, and the layout of a record on disk.
//!
//! ```text
//! | checksum (4 bytes) | schema (2 bytes) | content (bincode 2, standard configuration) |
//!   '- CRC-32 of table, key, schema and content; numbers are little-endian
//! ```
//!
//! The checksum also covers the key and the table, so that a record is never returned under a wrong key.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{self, DecodeError};
use super::messages::{Operation, Table};

pub(super) const SEAL_BYTES: usize = 4;

/// A row type: the records of one table of the database.
///
/// Rows are not domain types (a domain type may change freely, a row may not): each owner converts at its boundary. Never
/// add, remove or reorder fields without a new schema number, since the encoding is not self-describing.
pub trait Record: Serialize + DeserializeOwned {
    /// The table that holds these records, and no others.
    const TABLE: Table;

    /// The schema number of the present layout. Raise it with every change of the layout.
    const SCHEMA: u16;

    /// Migrates the content of an older schema. [`decode_payload`](super::decode_payload) decodes the content.
    ///
    /// # Errors
    ///
    /// Any error quarantines the record as damaged. Without an implementation that is every older record.
    fn migrate(schema: u16, payload: &[u8]) -> Result<Self, DecodeError> {
        let _ = payload;
        Err(DecodeError::UnknownSchema { schema })
    }

    /// The operation in the transaction that quarantines a damaged record with this key. Its owner finds the result instead, and knows that
    /// there was a record. None by default.
    #[must_use]
    fn instead_of_damaged(key: &[u8]) -> Option<Operation> {
        let _ = key;
        None
    }
}

fn checksum(table: Table, key: &[u8], record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(table.0.as_bytes());
    hasher.update(&u64::try_from(key.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(key);
    hasher.update(record);
    hasher.finalize()
}

/// The seal of an encoded record: its checksum.
#[must_use]
pub fn seal(table: Table, key: &[u8], record: &[u8]) -> [u8; SEAL_BYTES] {
    checksum(table, key, record).to_le_bytes()
}

/// A decoded record, and whether it was migrated.
#[derive(Debug, PartialEq, Eq)]
pub enum Read<R> {
    /// Of the present schema.
    Present(R),
    /// Of an older one.
    Migrated(R),
}

/// Verifies and decodes a sealed record.
///
/// # Errors
///
/// As [`decode`](super::decode), and when the seal does not fit.
pub fn unseal<R: Record>(key: &[u8], bytes: &[u8]) -> Result<Read<R>, DecodeError> {
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

#[cfg(test)]
mod tests {
    use super::super::codec::{RECORD_BYTES_MAX, encode};
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    struct Part {
        name: String,
        lines: Vec<u32>,
        doubled_by: Option<String>,
    }

    impl Record for Part {
        const TABLE: Table = Table("parts");
        const SCHEMA: u16 = 3;
    }

    fn hamlet() -> Part {
        Part { name: "Hamlet".to_owned(), lines: vec![1, 250, 70_000], doubled_by: None }
    }

    fn sealed(key: &[u8], part: &Part) -> Vec<u8> {
        let record = encode(part);
        [&seal(Part::TABLE, key, &record)[..], &record].concat()
    }

    #[test]
    fn a_record_has_these_bytes_whatever_library_writes_them() {
        let expected = [
            3, 0, // schema
            6, b'H', b'a', b'm', b'l', b'e', b't', // text: length, bytes
            3, 1, 250, 252, 112, 17, 1,
            0, // list: length, numbers (above 250 with a mark of their size)
            0, // no option
        ];
        assert_eq!(encode(&hamlet()), expected);
    }

    #[test]
    fn res_08_any_bit_that_flips_is_noticed() {
        let sound = sealed(b"key", &hamlet());
        assert_eq!(unseal::<Part>(b"key", &sound), Ok(Read::Present(hamlet())));
        for bit in 0..sound.len() * 8 {
            let mut damaged = sound.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let checksum = matches!(unseal::<Part>(b"key", &damaged), Err(DecodeError::Checksum { .. }));
            assert!(checksum, "bit {bit}");
        }
    }

    #[test]
    fn res_08_a_record_that_was_cut_short_or_has_bytes_too_many_is_noticed() {
        let mut bytes = sealed(b"key", &hamlet());
        for length in 0..bytes.len() {
            assert!(unseal::<Part>(b"key", &bytes[..length]).is_err(), "{length} bytes");
        }
        bytes.push(0);
        assert!(unseal::<Part>(b"key", &bytes).is_err());
    }

    #[test]
    fn res_08_a_record_under_another_key_is_noticed() {
        let bytes = sealed(b"key", &hamlet());
        assert!(matches!(unseal::<Part>(b"kez", &bytes), Err(DecodeError::Checksum { .. })));
    }

    #[test]
    fn what_decodes_must_decode_to_its_last_byte() {
        let mut bytes = encode(&hamlet());
        bytes.push(0);
        assert_eq!(codec::decode::<Part>(&bytes), Err(DecodeError::LeftOver { bytes: 1 }));
        assert_eq!(codec::decode::<Part>(&[3]), Err(DecodeError::TooShort { bytes: 1 }));
    }

    #[test]
    fn lengths_that_lie_claim_no_memory() {
        let length = [253, 255, 255, 255, 255, 255, 255, 255, 127];
        for lie in [&[&[3, 0][..], &length].concat(), &[&[3, 0, 0][..], &length].concat()] {
            assert!(matches!(codec::decode::<Part>(lie), Err(DecodeError::Malformed { .. })));
        }
    }

    #[test]
    fn a_record_as_long_as_any_may_be_comes_back() {
        let part = Part { name: "x".repeat(RECORD_BYTES_MAX - 32), ..hamlet() };
        assert_eq!(codec::decode::<Part>(&encode(&part)), Ok(part));
        let part = Part { lines: vec![1; RECORD_BYTES_MAX - 32], ..hamlet() };
        assert_eq!(codec::decode::<Part>(&encode(&part)), Ok(part));
    }

    #[test]
    fn schemas_that_are_not_ours_are_named() {
        assert_eq!(codec::decode::<Part>(&[4, 0, 1]), Err(DecodeError::Newer { theirs: 4, ours: 3 }));
        assert_eq!(codec::decode::<Part>(&[2, 0, 1]), Err(DecodeError::UnknownSchema { schema: 2 }));
    }
}
