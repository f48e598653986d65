//! Loads a table, and cleans up migrated and damaged records.

use std::time::{SystemTime, UNIX_EPOCH};

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::codec::{self, DecodeError};
use super::commit::{self, definition};
use super::messages::{Damaged, Loaded};
use super::quarantine;
use super::record::{self, Read, Record};

pub(super) enum Scan<R> {
    /// Its records, and the indices of those that were migrated.
    Read { loaded: Loaded<R>, migrated: Vec<usize> },
    /// A record of a schema that is newer than this program. The table must not be changed.
    Newer { theirs: u16, ours: u16 },
}

pub(super) fn scan<R: Record>(database: &Database) -> Result<Scan<R>, redb::Error> {
    let mut loaded = Loaded { rows: Vec::new(), damaged: Vec::new() };
    let mut migrated = Vec::new();
    let table = match database.begin_read()?.open_table(definition(R::TABLE)) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Scan::Read { loaded, migrated }),
        Err(error) => return Err(error.into()),
    };
    for row in table.iter()? {
        let (key, bytes) = row?;
        let key = key.value();
        match record::unseal(key, bytes.value()) {
            Ok(Read::Present(record)) => loaded.rows.push((key.to_vec(), record)),
            Ok(Read::Migrated(record)) => {
                migrated.push(loaded.rows.len());
                loaded.rows.push((key.to_vec(), record));
            }
            Err(DecodeError::Newer { theirs, ours }) => return Ok(Scan::Newer { theirs, ours }),
            Err(reason) => loaded.damaged.push(Damaged { table: R::TABLE, key: key.to_vec(), reason }),
        }
    }
    let seen = loaded.rows.len() + loaded.damaged.len();
    let records = table.len()?.saturating_sub(u64::try_from(seen).unwrap_or(u64::MAX));
    if records > 0 {
        let reason = DecodeError::Missing { records };
        loaded.damaged.push(Damaged { table: R::TABLE, key: Vec::new(), reason });
    }
    Ok(Scan::Read { loaded, migrated })
}

/// Whether the load leaves records to write back or to quarantine.
pub(super) fn is_untidy<R>(loaded: &Loaded<R>, migrated: &[usize]) -> bool {
    !migrated.is_empty() || loaded.damaged.iter().any(can_be_moved)
}

fn can_be_moved(damaged: &Damaged) -> bool {
    !matches!(damaged.reason, DecodeError::Missing { .. })
}

/// Writes migrated records back in the present schema and moves damaged ones to quarantine, in one transaction.
pub(super) fn tidy<R: Record>(
    database: &Database,
    loaded: &Loaded<R>,
    migrated: &[usize],
) -> Result<(), redb::Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(definition(R::TABLE))?;
        for (key, record) in migrated.iter().map(|place| &loaded.rows[*place]) {
            commit::put(&mut table, R::TABLE, key, &codec::encode(record))?;
        }
    }
    for damaged in loaded.damaged.iter().filter(|damaged| can_be_moved(damaged)) {
        quarantine::set_aside(&transaction, damaged, now)?;
    }
    transaction.commit()?;
    Ok(())
}
