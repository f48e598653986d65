//! Where the records of processes are kept: in the database, or, for tests, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;

use super::row::{ProcessRow, key};
use super::state::{Processes, ProcessesChange};
use crate::persister::{Damaged, OpenLedger, Operation, Owner, Persister, Settled, Write};
use crate::process::{ProcessName, ProcessRecord};
use crate::shell::{Notice, Notices, Store, Ticket, Written};

/// Whose writes these are.
pub const OWNER: Owner = Owner("processes");

/// Keeps records in the database.
#[derive(Debug, Clone)]
pub struct DurableRecords {
    present: watch::Receiver<Option<Persister>>,
    /// The database that was loaded from last, and that is written to.
    used: Rc<RefCell<Option<Persister>>>,
    settled: Option<Recipient<Settled>>,
    notices: Notices,
}

impl DurableRecords {
    /// A store on this database. Damaged records that are found on loading are posted as notices (RES-08); their processes
    /// are found by their marks.
    #[must_use]
    pub fn new(persister: Persister, notices: Notices) -> Self {
        // Nobody will ever open another one, and what was put in first can be read without its sender.
        let (_, present) = watch::channel(Some(persister));
        Self::following(present, notices)
    }

    /// A store on a database that may be closed and opened again while the host goes on. Loading waits until it is open.
    #[must_use]
    pub fn following(present: watch::Receiver<Option<Persister>>, notices: Notices) -> Self {
        Self { present, used: Rc::default(), settled: None, notices }
    }
}

impl Store<Processes> for DurableRecords {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.settled = Some(settled);
    }

    fn write(&mut self, ticket: Ticket, change: ProcessesChange) -> Written {
        let operations = match change {
            ProcessesChange::Keep(records) => records
                .into_iter()
                .map(|record| Operation::put(key(&record.name), &ProcessRow(record)))
                .collect(),
            ProcessesChange::Forget(name) => vec![Operation::delete::<ProcessRow>(key(&name))],
        };
        let Ticket { epoch, sequence } = ticket;
        match &*self.used.borrow() {
            Some(persister) => {
                persister.write(Write { owner: OWNER, epoch, sequence, operations });
                Written::Later
            }
            None => Written::Failed("nothing was read from the database yet".to_owned()),
        }
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Vec<ProcessRecord>, String>> {
        let Self { mut present, used, settled, notices } = self.clone();
        Box::pin(async move {
            let persister = match present.wait_for(Option::is_some).await {
                Ok(persister) => persister.clone(),
                Err(_) => None,
            };
            let persister = persister.ok_or("the database is closed and will not be opened again")?;
            if let Some(settled) = settled {
                persister.open_ledger(OpenLedger { owner: OWNER, settled });
            }
            let rows = persister.load::<ProcessRow>();
            used.replace(Some(persister.clone()));
            let rows = rows.await.map_err(|error| error.to_string())?;
            for Damaged { table, key, reason, .. } in rows.damaged {
                let key = key.iter().map(|byte| format!("{byte:02x}")).collect();
                let (table, reason) = (table.0.to_owned(), reason.to_string());
                notices.post(Notice::Quarantined { table, key, reason });
            }
            Ok(rows.rows.into_iter().map(|(_, row)| row.0).collect())
        })
    }
}

/// Keeps records in memory. Clones share what they keep, so that a test can end the owner of the processes, change what it
/// left, and start the next on the same store.
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

    /// Puts a record in place of the one of its name.
    pub fn put(&self, record: ProcessRecord) {
        self.kept.borrow_mut().insert(record.name.clone(), record);
    }

    /// Loses the record of this name.
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
