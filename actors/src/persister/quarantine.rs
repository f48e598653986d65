//! The table for records that could not be decoded, for later inspection (RES-08).

use callboard_machines::persister::{Damaged, RECORD_BYTES_MAX, Record, Table, encode};
use redb::{ReadableTable, WriteTransaction};
use serde::{Deserialize, Serialize};

use super::commit::{self, definition};

/// A damaged record in quarantine. `persister.load::<Quarantined>()` returns them all, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The table of the record.
    pub table: String,
    /// Its key.
    pub key: Vec<u8>,
    /// Its bytes, checksum included, truncated to the first 512 KiB.
    pub bytes: Vec<u8>,
    /// The decode error.
    pub reason: String,
    /// When it was quarantined, in seconds since the Unix epoch.
    pub at: u64,
}

impl Record for Quarantined {
    const TABLE: Table = Table("quarantine");
    const SCHEMA: u16 = 1;
}

/// Moves a damaged record out of its table, within a transaction.
pub(super) fn set_aside(
    transaction: &WriteTransaction,
    damaged: &Damaged,
    at: u64,
) -> Result<(), redb::Error> {
    let quarantined = Quarantined {
        table: damaged.table.0.to_owned(),
        key: damaged.key.clone(),
        bytes: take(transaction, damaged)?,
        reason: damaged.reason.to_string(),
        at,
    };
    let mut quarantine = transaction.open_table(definition(Quarantined::TABLE))?;
    let last = quarantine.last()?.and_then(|(key, _)| key.value().try_into().ok());
    let key = last.map_or(0, u64::from_be_bytes).saturating_add(1).to_be_bytes();
    commit::put(&mut quarantine, Quarantined::TABLE, &key, &encode(&quarantined))
}

fn take(transaction: &WriteTransaction, damaged: &Damaged) -> Result<Vec<u8>, redb::Error> {
    let mut table = transaction.open_table(definition(damaged.table))?;
    let bytes = table.remove(damaged.key.as_slice())?;
    Ok(bytes.map_or_else(Vec::new, |bytes| {
        let bytes = bytes.value();
        bytes[..bytes.len().min(RECORD_BYTES_MAX / 2)].to_vec()
    }))
}
