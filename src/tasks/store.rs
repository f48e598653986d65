//! Stores tasks in the database of the host.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use actix::Recipient;
use callboard_actors::persister::{Disk, Operation, Owner, Settled};
use callboard_actors::shell::{Database, Ledger, Store, Ticket, Written};
use callboard_actors::topology::CpuList;
use callboard_actors::vocabulary::{AllocationId, DriverName};
use futures_util::future::LocalBoxFuture;

use super::kept_row::KeptRow;
use super::memory::TasksMemory;
use super::row::{LogRow, StateRow};
use super::{CoreLedger, DurableState, RunState, Tasks, TasksChange, TasksImage};

/// The owner of these writes.
const OWNER: Owner = Owner::new("tasks");

/// The store of tasks.
#[derive(Debug, Clone)]
pub struct TasksStore {
    ledger: Ledger,
    /// Whether this run of the host has read them yet.
    is_read: Rc<Cell<bool>>,
    /// Records the cores of running tasks when they are read.
    cores: CoreLedger,
    memory: TasksMemory,
}

impl TasksStore {
    /// Stores tasks in this database, records the cores of running tasks in `cores`, and the state that must survive the actor in `memory`.
    #[must_use]
    pub fn new(database: &Database, cores: CoreLedger, memory: TasksMemory) -> Self {
        Self { ledger: database.ledger(OWNER), is_read: Rc::default(), cores, memory }
    }
}

/// The names of all tasks on disk.
///
/// # Errors
/// If they cannot be read.
pub async fn recorded(database: &Database) -> Result<BTreeSet<AllocationId>, String> {
    Ok(states(&database.ledger(OWNER)).await?.into_keys().collect())
}

/// The names of the tasks with a run on disk: these may have processes.
///
/// # Errors
/// If they cannot be read.
pub async fn running(database: &Database) -> Result<BTreeSet<AllocationId>, String> {
    let states = states(&database.ledger(OWNER)).await?;
    Ok(states.into_iter().filter(|(_, durable)| durable.run.is_some()).map(|(name, _)| name).collect())
}

async fn states(ledger: &Ledger) -> Result<BTreeMap<AllocationId, DurableState>, String> {
    ledger.reopen().await?;
    let rows = ledger.rows::<StateRow>().await?;
    rows.into_iter().map(|(key, row)| Ok((name(&key)?, row.0))).collect()
}

fn key(name: &AllocationId) -> Vec<u8> {
    name.as_str().as_bytes().to_vec()
}

/// Decodes a row's key. A key that is not a name was not written by us.
fn name(key: &[u8]) -> Result<AllocationId, String> {
    let text = std::str::from_utf8(key).map_err(|error| error.to_string())?;
    AllocationId::new(text).map_err(|error| error.to_string())
}

fn driver_key(driver: &DriverName) -> Vec<u8> {
    driver.as_str().as_bytes().to_vec()
}

fn driver_name(key: &[u8]) -> Result<DriverName, String> {
    let text = std::str::from_utf8(key).map_err(|error| error.to_string())?;
    DriverName::new(text).map_err(|error| error.to_string())
}

impl Store<Tasks> for TasksStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.ledger.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.ledger.disk())
    }

    fn write(&mut self, ticket: Ticket, change: TasksChange) -> Written {
        self.memory.note(&change);
        let operations = match change {
            TasksChange::Returns(_) => return Written::Now,
            TasksChange::State(name, durable) => vec![Operation::put(key(&name), &StateRow(*durable))],
            TasksChange::Log(name, log) => vec![Operation::put(key(&name), &LogRow(*log))],
            TasksChange::Forget(name) => {
                vec![Operation::delete::<StateRow>(key(&name)), Operation::delete::<LogRow>(key(&name))]
            }
            TasksChange::KeepDriver(driver, kept) => {
                vec![Operation::put(driver_key(&driver), &KeptRow(*kept))]
            }
            TasksChange::ForgetDriver(driver) => vec![Operation::delete::<KeptRow>(driver_key(&driver))],
        };
        self.ledger.write(ticket, operations)
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<TasksImage, String>> {
        let (ledger, is_read) = (self.ledger.clone(), Rc::clone(&self.is_read));
        let (cores, memory) = (self.cores.clone(), self.memory.clone());
        Box::pin(async move {
            let states = states(&ledger).await?;
            let logs = ledger.rows::<LogRow>().await?;
            let drivers = ledger.rows::<KeptRow>().await?;
            let driver = |(key, row): (Vec<u8>, KeptRow)| Ok((driver_name(&key)?, row.0));
            let log = |(key, row): (Vec<u8>, LogRow)| Ok((name(&key)?, row.0));
            hold_cores(&states, &cores);
            let mut image = TasksImage {
                states,
                logs: logs.into_iter().map(log).collect::<Result<_, String>>()?,
                drivers: drivers.into_iter().map(driver).collect::<Result<_, String>>()?,
                returning: BTreeSet::new(),
                is_of_earlier_run: !is_read.replace(true),
            };
            memory.read(&mut image);
            Ok(image)
        })
    }
}

/// Records the cores of running tasks, before another task gets any.
fn hold_cores(states: &BTreeMap<AllocationId, DurableState>, cores: &CoreLedger) {
    for (name, durable) in states {
        if let Some(RunState::Started(handle)) = durable.run.as_ref().map(|run| &run.state)
            && let Ok(list) = CpuList::parse(handle.cores())
        {
            cores.hold(name, list);
        }
    }
}
