//! Where registrations are kept: in the database, or, for benches and scripts, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::row::{COUNTER_KEY, CounterRow, RegistrationRow, key};
use super::state::{Image, Registry, Stored, StoredChange};
use crate::persister::{
    Damaged, Loaded, OpenLedger, Operation, Owner, Persister, Quarantined, Record, Settled, Write,
};
use crate::shell::{Notice, Notices, Store, Ticket, Written};
use crate::vocabulary::{RegistrationNumber, RunNumber};

/// Whose writes these are.
pub const OWNER: Owner = Owner("registry");

/// The database as it is open now; `None` while it is closed to be opened again.
pub type PresentDatabase = watch::Receiver<Option<Persister>>;

/// Keeps registrations in the database.
#[derive(Debug, Clone)]
pub struct DurableStore {
    present: PresentDatabase,
    /// The run of the host, however often the database is opened in it: a registration that was confirmed stays so.
    run: RunNumber,
    /// The database that was loaded from last, and that is written to.
    used: Rc<RefCell<Option<Persister>>>,
    settled: Option<Recipient<Settled>>,
    notices: Notices,
    begun: Instant,
}

impl DurableStore {
    /// A store on this database, made when the run of the host begins. Damaged records that are found on loading are posted
    /// as notices (RES-08).
    #[must_use]
    pub fn new(persister: Persister, notices: Notices) -> Self {
        let run = persister.run();
        // Nobody will ever open another one, and what was put in first can be read without its sender.
        let (_, present) = watch::channel(Some(persister));
        Self::following(present, run, notices)
    }

    /// A store on a database that may be closed and opened again while this run of the host goes on. Loading waits until it
    /// is open.
    #[must_use]
    pub fn following(present: PresentDatabase, run: RunNumber, notices: Notices) -> Self {
        Self { present, run, used: Rc::default(), settled: None, notices, begun: Instant::now() }
    }

    fn post(notices: &Notices, damaged: Vec<Damaged>) {
        for Damaged { table, key, reason, .. } in damaged {
            let key = key.iter().map(|byte| format!("{byte:02x}")).collect();
            notices.post(Notice::Quarantined { table: table.0.to_owned(), key, reason: reason.to_string() });
        }
    }
}

impl Store<Registry> for DurableStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.settled = Some(settled);
    }

    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        let StoredChange { put, delete, ceiling } = change;
        let mut operations = Vec::with_capacity(put.len() + delete.len() + usize::from(ceiling.is_some()));
        if let Some(ceiling) = ceiling {
            operations.push(Operation::put(COUNTER_KEY, &CounterRow { ceiling }));
        }
        operations.extend(delete.into_iter().map(|number| Operation::delete::<RegistrationRow>(key(number))));
        operations.extend(
            put.into_iter().map(|stored| Operation::put(key(stored.number), &RegistrationRow(stored))),
        );
        let Ticket { epoch, sequence } = ticket;
        match &*self.used.borrow() {
            Some(persister) => {
                persister.write(Write { owner: OWNER, epoch, sequence, operations });
                Written::Later
            }
            None => Written::Failed("nothing was read from the database yet".to_owned()),
        }
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Image, String>> {
        let Self { mut present, run, used, settled, notices, begun } = self.clone();
        Box::pin(async move {
            let persister = match present.wait_for(Option::is_some).await {
                Ok(persister) => persister.clone(),
                Err(_) => None,
            };
            let persister = persister.ok_or("the database is closed and will not be opened again")?;
            if let Some(settled) = settled {
                persister.open_ledger(OpenLedger { owner: OWNER, settled });
            }
            let rows = persister.load::<RegistrationRow>();
            let counter = persister.load::<CounterRow>();
            used.replace(Some(persister.clone()));
            let rows = rows.await.map_err(|error| error.to_string())?;
            let counter = counter.await.map_err(|error| error.to_string())?;
            // Each opening has a number of its own, so this one was never used before either.
            let opening = persister.run();
            let safe = if is_lost(&counter, &persister).await? { opening.get() << RUN_SHIFT } else { 0 };
            Self::post(&notices, rows.damaged);
            Self::post(&notices, counter.damaged);
            let stored: Vec<Stored> = rows.rows.into_iter().map(|(_, row)| row.0).collect();
            let written = counter.rows.into_iter().map(|(_, row)| row.ceiling).max().unwrap_or(0);
            let ceiling = written.max(beyond(&stored)).max(safe);
            Ok(Image { ceiling, stored, run, run_age: begun.elapsed() })
        })
    }
}

/// Whether there was a counter and it could not be read, now or earlier: it stays lost until a new one is written.
async fn is_lost(counter: &Loaded<CounterRow>, persister: &Persister) -> Result<bool, String> {
    if !counter.rows.is_empty() {
        return Ok(false);
    }
    if !counter.damaged.is_empty() {
        return Ok(true);
    }
    let quarantine = persister.load::<Quarantined>().await.map_err(|error| error.to_string())?;
    Ok(quarantine.rows.iter().any(|(_, row)| row.table == CounterRow::TABLE.0))
}

/// Should the counter's record have been lost, numbers go on from the run number shifted by this: no earlier run can have
/// counted that far.
const RUN_SHIFT: u32 = 40;

/// The first number beyond all that are seen in use.
fn beyond(stored: &[Stored]) -> u64 {
    let numbers = stored.iter().flat_map(|stored| {
        let generation = stored.activation.map_or(0, |activation| activation.generation.get());
        [stored.number.get(), generation]
    });
    numbers.max().map_or(0, |highest| highest + 1)
}

/// Keeps registrations in memory. Clones share what they keep, so a test can end a registry and start the next on the same
/// store.
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
    /// Begins a new run of the host: everything that is kept becomes provisional (R8).
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
