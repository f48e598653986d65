//! Writes a batch to disk in one transaction.

use callboard_machines::persister::{Change, Operations, Table, seal};
use redb::{Database, TableDefinition, WriteTransaction};

pub(super) type OpenTable<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

pub(super) const fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.0)
}

/// Applies all operations in order in one transaction, and returns when they are on disk.
pub(super) fn commit(database: &Database, operations: &Operations) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    apply(&transaction, operations)?;
    transaction.commit()?;
    Ok(())
}

/// Applies all operations in order within a transaction.
pub(super) fn apply(transaction: &WriteTransaction, operations: &Operations) -> Result<(), redb::Error> {
    let mut tables = Tables { transaction, open: Vec::new() };
    for Change { table, key, sealed, .. } in operations.iter() {
        let open = tables.get(table)?;
        match sealed {
            Some(sealed) => open.insert(key, sealed)?,
            None => open.remove(key)?,
        };
    }
    Ok(())
}

pub(super) fn put(
    open: &mut OpenTable<'_>,
    table: Table,
    key: &[u8],
    record: &[u8],
) -> Result<(), redb::Error> {
    let sealed = [&seal(table, key, record), record].concat();
    open.insert(key, sealed.as_slice())?;
    Ok(())
}

/// The tables that a transaction has opened so far; each is opened once.
struct Tables<'t> {
    transaction: &'t WriteTransaction,
    open: Vec<(Table, OpenTable<'t>)>,
}

impl<'t> Tables<'t> {
    fn get(&mut self, table: Table) -> Result<&mut OpenTable<'t>, redb::Error> {
        let place = match self.open.iter().position(|(known, _)| *known == table) {
            Some(place) => place,
            None => {
                self.open.push((table, self.transaction.open_table(definition(table))?));
                self.open.len() - 1
            }
        };
        Ok(&mut self.open[place].1)
    }
}
