//! Stores registrations: in the database, or, for benches and scripts, in memory.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;
use tokio::time::Instant;

use super::row::{RegistrationRow, key};
use super::{Image, Registry, Stored, StoredChange, first_number};
use crate::persister::{Disk, Operation, Owner, Settled, UnwrittenRow, decode};
use crate::shell::{Database, Ledger, Store, Ticket, Written};
use crate::vocabulary::{Registration, RegistrationNumber, RunNumber};

/// The owner of these writes.
pub const OWNER: Owner = Owner::new("registry");

/// Stores registrations in the database. Damaged records that are found on loading are posted as notices (RES-08).
#[derive(Debug, Clone)]
pub struct DurableStore {
    ledger: Ledger,
    /// The run number of the host. Reopening the database does not change it, so confirmed registrations stay confirmed.
    run: RunNumber,
    begun: Instant,
    /// The first number beyond all numbers that were handed over in this run.
    ceiling: Rc<Cell<u64>>,
    /// The registrations for their names, while a sick disk does not take the write of their end.
    names: Rc<RefCell<BTreeMap<RegistrationNumber, Arc<Registration>>>>,
}

impl DurableStore {
    /// A store in this database, created when the run of the host begins.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self {
            ledger: database.ledger(OWNER),
            run: database.run(),
            begun: Instant::now(),
            ceiling: Rc::default(),
            names: Rc::default(),
        }
    }

    fn called(&self, number: RegistrationNumber) -> String {
        self.names.borrow().get(&number).map(|registration| name_of(registration)).unwrap_or_default()
    }
}

impl Store<Registry> for DurableStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.ledger.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.ledger.disk())
    }

    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        self.ceiling.set(self.ceiling.get().max(change.ceiling()));
        let named = change.put.iter().map(|stored| (stored.number, Arc::clone(&stored.registration)));
        self.names.borrow_mut().extend(named);
        let deleted = change.delete.clone();
        let operations = operations_of(change, |number| self.called(number));
        self.names.borrow_mut().retain(|number, _| !deleted.contains(number));
        self.ledger.write(ticket, operations)
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Image, String>> {
        let Self { ledger, run, begun, ceiling, names } = self.clone();
        Box::pin(async move {
            let opening = ledger.reopen().await?;
            // Numbers that were reported but not handed over before a crash of the database are not in `ceiling`.
            let given = ceiling.get().max(first_number(opening));
            let rows = ledger.rows::<RegistrationRow>().await?.into_iter().map(|(_, row)| row);
            let image = image_of(rows, given, run, begun.elapsed());
            let named = image.stored.iter().map(|stored| (stored.number, Arc::clone(&stored.registration)));
            names.borrow_mut().extend(named);
            Ok(image)
        })
    }
}

/// The database operations of a change; `called` gives the name of a registration for people.
pub fn operations_of(change: StoredChange, called: impl Fn(RegistrationNumber) -> String) -> Vec<Operation> {
    let StoredChange { put, delete, merged: _ } = change;
    let mut operations = Vec::with_capacity(put.len() + delete.len());
    let delete_row = |number| Operation::delete_named::<RegistrationRow>(key(number), called(number));
    operations.extend(delete.into_iter().map(delete_row));
    operations
        .extend(put.into_iter().map(|stored| Operation::put(key(stored.number), &RegistrationRow(stored))));
    operations
}

/// The name of a registration for people.
fn name_of(Registration { plugin, allocation, .. }: &Registration) -> String {
    format!("{plugin} of {allocation}")
}

/// The name, for people, of the registration of a row that is not on disk; `None` if the row does not contain it.
#[must_use]
pub fn name_of_row(row: &UnwrittenRow) -> Option<String> {
    match &row.record {
        Some(record) => decode::<RegistrationRow>(record).ok().map(|row| name_of(&row.0.registration)),
        None => Some(row.name.clone()).filter(|name| !name.is_empty()),
    }
}

/// Builds the image of a registry from its rows. `given` is beyond all numbers that were handed over in this run.
pub fn image_of(
    rows: impl Iterator<Item = RegistrationRow>,
    given: u64,
    run: RunNumber,
    run_age: Duration,
) -> Image {
    Image::of(rows.map(|row| row.0).collect(), given, run, run_age)
}

/// Stores registrations in memory. Clones share the content, so a test can start the next registry on the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    kept: Rc<RefCell<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    stored: BTreeMap<RegistrationNumber, Stored>,
    ceiling: u64,
    run: RunNumber,
    begun: Option<Instant>,
}

impl MemoryStore {
    /// Begins a new run of the host: all stored registrations become provisional (R8).
    pub fn begin_run(&self) {
        let mut kept = self.kept.borrow_mut();
        kept.run = kept.run.next();
        kept.begun = Some(Instant::now());
    }
}

impl Store<Registry> for MemoryStore {
    fn write(&mut self, _ticket: Ticket, change: StoredChange) -> Written {
        let mut kept = self.kept.borrow_mut();
        kept.ceiling = kept.ceiling.max(change.ceiling());
        for number in &change.delete {
            kept.stored.remove(number);
        }
        kept.stored.extend(change.put.into_iter().map(|stored| (stored.number, stored)));
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Image, String>> {
        let kept = self.kept.borrow();
        let stored = kept.stored.values().cloned().collect();
        let run_age = kept.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let image = Image::of(stored, kept.ceiling, kept.run, run_age);
        Box::pin(std::future::ready(Ok(image)))
    }
}
