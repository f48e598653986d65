//! The metadata of the file: its schema, its run number, and its last holder.
//!
//! It is stored twice, each with a checksum, because a run number that went back would repeat generations.

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::lock::Holder;

/// The schema of the whole file: its tables and the layout of their rows. It is raised together with the schema of any
/// record, so that an older program refuses the file before it has changed anything.
pub const FILE_SCHEMA: u32 = 1;

const TABLE: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("meta");
const COPIES: [&str; 2] = ["first", "second"];
const BYTES: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) run: u64,
    pub(super) holder: Holder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Meta(Meta),
    Newer { theirs: u32 },
    Damaged,
}

fn read_from(table: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Found, redb::StorageError> {
    let mut found = Found::Damaged;
    for copy in COPIES {
        let Some(bytes) = table.get(copy)? else { continue };
        match (found, decode(bytes.value())) {
            (_, newer @ Found::Newer { .. }) => return Ok(newer),
            (Found::Meta(one), Found::Meta(other)) if one.run >= other.run => {}
            (_, Found::Meta(meta)) => found = Found::Meta(meta),
            (_, Found::Damaged) => {}
        }
    }
    Ok(found)
}

/// Reads the metadata of a file; `None` if it has no table for it.
pub(super) fn read(transaction: &redb::ReadTransaction) -> Result<Option<Found>, redb::Error> {
    match transaction.open_table(TABLE) {
        Ok(table) => Ok(Some(read_from(&table)?)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Stores a new run, and returns its number.
pub(super) fn begin_run(transaction: &WriteTransaction, holder: Holder) -> Result<u64, redb::Error> {
    let mut table = transaction.open_table(TABLE)?;
    let last = match read_from(&table)? {
        Found::Meta(meta) => meta.run,
        Found::Newer { .. } | Found::Damaged => 0,
    };
    let run = last + 1;
    let bytes = encode(Meta { run, holder });
    for copy in COPIES {
        table.insert(copy, bytes.as_slice())?;
    }
    Ok(run)
}

fn encode(meta: Meta) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[4..8].copy_from_slice(&FILE_SCHEMA.to_le_bytes());
    bytes[8..16].copy_from_slice(&meta.run.to_le_bytes());
    bytes[16..20].copy_from_slice(&meta.holder.pid.unwrap_or_default().to_le_bytes());
    bytes[20..28].copy_from_slice(&meta.holder.since.unwrap_or_default().to_le_bytes());
    let checksum = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// In every schema, checksum and schema come first; the rest may change.
fn decode(bytes: &[u8]) -> Found {
    let Some((checksum, rest)) = bytes.split_first_chunk::<4>() else { return Found::Damaged };
    let Some((schema, facts)) = rest.split_first_chunk::<4>() else { return Found::Damaged };
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return Found::Damaged;
    }
    match u32::from_le_bytes(*schema) {
        theirs if theirs > FILE_SCHEMA => Found::Newer { theirs },
        _ => decode_facts(facts).map_or(Found::Damaged, Found::Meta),
    }
}

fn decode_facts(facts: &[u8]) -> Option<Meta> {
    let (run, rest) = facts.split_first_chunk::<8>()?;
    let (pid, rest) = rest.split_first_chunk::<4>()?;
    let since: [u8; 8] = rest.try_into().ok()?;
    let holder = Holder { pid: Some(u32::from_le_bytes(*pid)), since: Some(u64::from_le_bytes(since)) };
    Some(Meta { run: u64::from_le_bytes(*run), holder })
}
