//! The store of registrations: in the database, or, for benches and scripts, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;
use tokio::time::Instant;

use super::row::{COUNTER_KEY, CounterRow, RegistrationRow, key};
use super::{Image, Registry, Stored, StoredChange};
use crate::persister::{Loaded, Operation, Owner, Quarantined, Record, Settled};
use crate::shell::{Database, Ledger, Store, Ticket, Written};
use crate::vocabulary::{RegistrationNumber, RunNumber};

/// The owner of these writes.
pub const OWNER: Owner = Owner("registry");

/// Stores registrations in the database. Damaged records that are found on loading are posted as notices (RES-08).
#[derive(Debug, Clone)]
pub struct DurableStore {
    ledger: Ledger,
    /// The run number of the host. Reopening the database does not change it, so confirmed registrations stay confirmed.
    run: RunNumber,
    begun: Instant,
}

impl DurableStore {
    /// A store in this database, created when the run of the host begins.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self { ledger: database.ledger(OWNER), run: database.run(), begun: Instant::now() }
    }
}

impl Store<Registry> for DurableStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.ledger.open(settled);
    }

    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        self.ledger.write(ticket, operations_of(change))
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Image, String>> {
        let Self { ledger, run, begun } = self.clone();
        Box::pin(async move {
            let opening = ledger.reopen().await?;
            let rows = ledger.rows::<RegistrationRow>().await?;
            let counter = ledger.load::<CounterRow>().await?;
            // Each opening has a unique number, so this block of numbers was never used before.
            let safe = if is_lost(&counter, &ledger).await? { opening.get() << RUN_SHIFT } else { 0 };
            let rows = rows.into_iter().map(|(_, row)| row);
            let counter = counter.rows.into_iter().map(|(_, row)| row);
            Ok(image_of(rows, counter, safe, run, begun.elapsed()))
        })
    }
}

/// The database operations of a change.
pub fn operations_of(change: StoredChange) -> Vec<Operation> {
    let StoredChange { put, delete, ceiling } = change;
    let mut operations = Vec::with_capacity(put.len() + delete.len() + usize::from(ceiling.is_some()));
    if let Some(ceiling) = ceiling {
        operations.push(Operation::put(COUNTER_KEY, &CounterRow { ceiling }));
    }
    operations.extend(delete.into_iter().map(|number| Operation::delete::<RegistrationRow>(key(number))));
    operations
        .extend(put.into_iter().map(|stored| Operation::put(key(stored.number), &RegistrationRow(stored))));
    operations
}

/// Builds the image of a registry from its rows. `safe` is the ceiling if the counter was lost.
pub fn image_of(
    rows: impl Iterator<Item = RegistrationRow>,
    counter: impl Iterator<Item = CounterRow>,
    safe: u64,
    run: RunNumber,
    run_age: Duration,
) -> Image {
    let stored: Vec<Stored> = rows.map(|row| row.0).collect();
    let written = counter.map(|row| row.ceiling).max().unwrap_or(0);
    let ceiling = written.max(beyond(&stored)).max(safe);
    Image { ceiling, stored, run, run_age }
}

/// Whether the counter was ever unreadable: it stays lost until a new one is written.
async fn is_lost(counter: &Loaded<CounterRow>, ledger: &Ledger) -> Result<bool, String> {
    if !counter.rows.is_empty() {
        return Ok(false);
    }
    if !counter.damaged.is_empty() {
        return Ok(true);
    }
    let quarantine = ledger.rows::<Quarantined>().await?;
    Ok(quarantine.iter().any(|(_, row)| row.table == CounterRow::TABLE.0))
}

/// If the counter's record is lost, numbers continue from the run number shifted by this: no earlier run counted that far.
const RUN_SHIFT: u32 = 40;

fn beyond(stored: &[Stored]) -> u64 {
    let numbers = stored.iter().flat_map(|stored| {
        let generation = stored.generation.get();
        [stored.number.get(), generation]
    });
    numbers.max().map_or(0, |highest| highest + 1)
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
        for number in &change.delete {
            kept.stored.remove(number);
        }
        kept.stored.extend(change.put.into_iter().map(|stored| (stored.number, stored)));
        kept.ceiling = kept.ceiling.max(change.ceiling.unwrap_or(0));
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Image, String>> {
        let kept = self.kept.borrow();
        let stored = kept.stored.values().cloned().collect();
        let run_age = kept.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let image = Image { stored, ceiling: kept.ceiling, run: kept.run, run_age };
        Box::pin(std::future::ready(Ok(image)))
    }
}
