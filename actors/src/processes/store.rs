//! The store of process records: in the database, or, for tests, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;

use super::row::{ProcessRow, key};
use super::{Processes, ProcessesChange};
use crate::persister::{Disk, Operation, Owner, Settled};
use crate::process::{ProcessName, ProcessRecord};
use crate::shell::{Database, Ledger, Store, Ticket, Written};

/// The owner of these writes.
pub const OWNER: Owner = Owner::new("processes");

/// Stores records in the database. Damaged ones that are found on loading are posted as notices (RES-08); their processes
/// are found by their owner variable.
#[derive(Debug, Clone)]
pub struct DurableRecords(Ledger);

impl DurableRecords {
    /// Records in this database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self(database.ledger(OWNER))
    }
}

impl Store<Processes> for DurableRecords {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.0.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.0.disk())
    }

    fn write(&mut self, ticket: Ticket, change: ProcessesChange) -> Written {
        let operations = match change {
            ProcessesChange::Keep(records) => records
                .into_iter()
                .map(|record| Operation::put(key(&record.name), &ProcessRow(record)))
                .collect(),
            ProcessesChange::Forget(name) => vec![Operation::delete::<ProcessRow>(key(&name))],
        };
        self.0.write(ticket, operations)
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Vec<ProcessRecord>, String>> {
        let ledger = self.0.clone();
        Box::pin(async move {
            ledger.reopen().await?;
            let rows = ledger.rows::<ProcessRow>().await?;
            Ok(rows.into_iter().map(|(_, row)| row.0).collect())
        })
    }
}

/// Stores records in memory. Clones share the content, so that a test can end the owner of the processes, change its
/// leftovers, and start the next on the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryRecords {
    kept: Rc<RefCell<BTreeMap<ProcessName, ProcessRecord>>>,
}

impl MemoryRecords {
    /// Every record, by name.
    #[must_use]
    pub fn all(&self) -> Vec<ProcessRecord> {
        self.kept.borrow().values().cloned().collect()
    }

    /// Inserts or replaces the record of its name.
    pub fn put(&self, record: ProcessRecord) {
        self.kept.borrow_mut().insert(record.name.clone(), record);
    }

    /// Removes the record of this name.
    pub fn lose(&self, name: &ProcessName) {
        self.kept.borrow_mut().remove(name);
    }
}

impl Store<Processes> for MemoryRecords {
    fn write(&mut self, _ticket: Ticket, change: ProcessesChange) -> Written {
        match change {
            ProcessesChange::Keep(records) => records.into_iter().for_each(|record| self.put(record)),
            ProcessesChange::Forget(name) => self.lose(&name),
        }
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Vec<ProcessRecord>, String>> {
        Box::pin(std::future::ready(Ok(self.all())))
    }
}
