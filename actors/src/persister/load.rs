//! Loads a table, and cleans up migrated and damaged records.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use callboard_machines::persister::{Damaged, DecodeError, Loaded, Operations, Read, Record, encode, unseal};
use redb::{Database, ReadableDatabase, ReadableTableMetadata};

use super::commit::{self, definition};
use super::quarantine;

pub(super) enum Scan<R> {
    /// Its records, and the indices of those that were migrated.
    Read { loaded: Loaded<R>, migrated: Vec<usize> },
    /// A record of a schema that is newer than this program. The table must not be changed.
    Newer { theirs: u16, ours: u16 },
}

/// Reads the records of a table whose keys have this prefix, as if these operations were on disk already.
pub(super) fn scan<R: Record>(
    database: &Database,
    unwritten: Option<&Operations>,
    prefix: &[u8],
) -> Result<Scan<R>, redb::Error> {
    let mut reading = Reading::new();
    // The last operation on a key applies.
    let of_table = unwritten.into_iter().flat_map(Operations::iter).filter(|change| change.table == R::TABLE);
    let below = of_table.filter(|change| change.key.starts_with(prefix));
    let above: BTreeMap<_, _> = below.map(|change| (change.key, change.sealed)).collect();
    match database.begin_read()?.open_table(definition(R::TABLE)) {
        Ok(table) => {
            for row in table.range(prefix..)? {
                let (key, bytes) = row?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                reading.seen += 1;
                if !above.contains_key(key.value()) {
                    reading.read(key.value(), bytes.value());
                }
            }
            if prefix.is_empty() {
                reading.miss(table.len()?);
            }
        }
        Err(redb::TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    for (key, sealed) in &above {
        sealed.iter().for_each(|sealed| reading.read(key, sealed));
    }
    Ok(reading.done(!above.is_empty()))
}

/// The records of a table that were read so far.
struct Reading<R> {
    loaded: Loaded<R>,
    migrated: Vec<usize>,
    newer: Option<(u16, u16)>,
    seen: u64,
}

impl<R: Record> Reading<R> {
    const fn new() -> Self {
        let loaded = Loaded { rows: Vec::new(), damaged: Vec::new() };
        Self { loaded, migrated: Vec::new(), newer: None, seen: 0 }
    }

    fn read(&mut self, key: &[u8], bytes: &[u8]) {
        match unseal(key, bytes) {
            Ok(Read::Present(record)) => self.loaded.rows.push((key.to_vec(), record)),
            Ok(Read::Migrated(record)) => {
                self.migrated.push(self.loaded.rows.len());
                self.loaded.rows.push((key.to_vec(), record));
            }
            Err(DecodeError::Newer { theirs, ours }) => self.newer = self.newer.or(Some((theirs, ours))),
            Err(reason) => self.loaded.damaged.push(Damaged { table: R::TABLE, key: key.to_vec(), reason }),
        }
    }

    /// Compares with the number of records in the table, and reports missing ones as damaged.
    fn miss(&mut self, records: u64) {
        let records = records.saturating_sub(self.seen);
        if records > 0 {
            let reason = DecodeError::Missing { records };
            self.loaded.damaged.push(Damaged { table: R::TABLE, key: Vec::new(), reason });
        }
    }

    fn done(self, is_mixed: bool) -> Scan<R> {
        let Self { mut loaded, migrated, newer, seen: _ } = self;
        if let Some((theirs, ours)) = newer {
            return Scan::Newer { theirs, ours };
        }
        if is_mixed {
            loaded.rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        Scan::Read { loaded, migrated }
    }
}

/// Whether the load leaves records to write back or to quarantine.
pub(super) fn is_untidy<R>(loaded: &Loaded<R>, migrated: &[usize]) -> bool {
    !migrated.is_empty() || loaded.damaged.iter().any(can_be_moved)
}

fn can_be_moved(damaged: &Damaged) -> bool {
    !matches!(damaged.reason, DecodeError::Missing { .. })
}

/// Writes migrated records back in the present schema and moves damaged ones to quarantine, in one transaction with
/// the records that are written in their place.
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
            commit::put(&mut table, R::TABLE, key, &encode(record))?;
        }
    }
    for damaged in loaded.damaged.iter().filter(|damaged| can_be_moved(damaged)) {
        quarantine::set_aside(&transaction, damaged, now)?;
        if let Some(instead) = R::instead_of_damaged(&damaged.key) {
            let mut operations = Operations::default();
            operations.push(&instead);
            commit::apply(&transaction, &operations)?;
        }
    }
    transaction.commit()?;
    Ok(())
}
