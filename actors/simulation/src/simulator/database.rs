//! The optional database below a simulated registry: the queue and the store of production on a disk in memory.
//!
//! The [`RegistryDisk`](super::super::registry::RegistryDisk) is unchanged, and defines the required content in plain rows.

use std::collections::VecDeque;
use std::fmt;

use callboard_actors::persister::{DecodeError, DiskFault, Reached, Write, decode};
use callboard_actors::registry::{Image, OWNER, RegistrationRow, image_of, operations_of};

use super::super::database::{
    DatabaseModel, Job, PersisterFault, Reader, Row, Step, Trouble, Volume, read_table,
};
use super::super::law::Law;
use super::super::observed::Observed;
use super::super::stand_in::Settlement;
use super::super::writes::Outcome;
use super::event::EventKind;
use super::host_model::{HostModel, Signal};

/// The tables in the database of a registry.
const READERS: &[Reader] = &[read_table::<RegistrationRow>];

/// An event of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseDoing {
    /// This number of the waiting writes share a commit, during which a fault may begin.
    Commit(u32, Option<Trouble>),
    /// The registry is notified of the outcome of the oldest unreported commit.
    Tell,
    /// The registry reads, while a fault may begin.
    Load(Option<Trouble>),
    /// The host is killed during a commit, before one of the changes of the disk.
    Kill {
        /// How many writes are in the commit; 0 if none is in flight.
        committing: u32,
        /// How many of the writes of the owner of the processes had reached their disk.
        of_processes: u32,
        /// How often the disk was changed.
        change: u64,
        /// The part of the unsynced data that had reached the disk.
        reached: Reached,
    },
}

impl fmt::Display for DatabaseDoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trouble = match self {
            Self::Commit(count, trouble) => {
                write!(f, "commit {count}")?;
                *trouble
            }
            Self::Load(trouble) => {
                f.write_str("load")?;
                *trouble
            }
            Self::Tell => return f.write_str("tell-registry"),
            Self::Kill { committing, of_processes, change, reached } => {
                return write!(
                    f,
                    "kill-host committing={committing} change={change} reached={reached:?} processes={of_processes}"
                );
            }
        };
        match trouble {
            Some(Trouble { after, fault }) => write!(f, " {fault:?} after={after}"),
            None => Ok(()),
        }
    }
}

/// The database of a host, once its first host has opened it.
#[derive(Debug)]
pub(super) struct Database {
    fault: Option<PersisterFault>,
    database_model: Option<DatabaseModel<Volume>>,
    /// The outcomes on the plain disk of the commits that were not reported to the registry.
    settlements: VecDeque<Settlement>,
}

impl Database {
    /// A database that no host has opened.
    pub(super) const fn new(fault: Option<PersisterFault>) -> Self {
        Self { fault, database_model: None, settlements: VecDeque::new() }
    }

    fn database_model(&mut self) -> &mut DatabaseModel<Volume> {
        self.database_model.get_or_insert_with(|| DatabaseModel::new(Volume::new(READERS), self.fault))
    }
}

/// A run begins with a copy of a model whose first host has opened nothing yet.
impl Clone for Database {
    fn clone(&self) -> Self {
        assert!(self.database_model.is_none(), "an open database cannot be copied");
        Self::new(self.fault)
    }
}

impl HostModel {
    /// Applies an event of the database.
    pub(super) fn database_does(&mut self, doing: DatabaseDoing) {
        match doing {
            DatabaseDoing::Commit(count, trouble) => self.commit(count as usize, trouble),
            DatabaseDoing::Tell => self.tell_registry(),
            DatabaseDoing::Load(trouble) => self.load_database(trouble),
            DatabaseDoing::Kill { committing, of_processes, change, reached } => {
                self.kill_database(committing as usize, change, reached);
                self.end_run(0, of_processes as usize);
                self.signals.push(Signal::Ready(EventKind::Start));
            }
        }
    }

    /// The database, with all writes of the registry handed over to it. `None` without a database, or if no host has opened it.
    fn database_model(&mut self) -> Option<&mut DatabaseModel<Volume>> {
        let database = self.database.as_mut()?;
        let database_model = database.database_model();
        for (ticket, change) in self.registry.store.take_handed() {
            let operations = operations_of(change, |number| number.to_string());
            database_model.write(&Write {
                owner: OWNER,
                epoch: ticket.epoch,
                sequence: ticket.sequence,
                operations,
            });
        }
        database_model.is_open().then_some(database_model)
    }

    fn commit(&mut self, count: usize, trouble: Option<Trouble>) {
        let Some(database_model) = self.database_model() else { return };
        if count == 0 || !database_model.may_go_on() || !database_model.is_write_next() {
            return;
        }
        if !self.disk_takes() {
            return;
        }
        let Some(database_model) = self.database_model() else { return };
        if let Some(Trouble { after, fault }) = trouble {
            database_model.fails_after(after, fault);
        }
        let step = database_model.go_on(count);
        if trouble.is_some() {
            database_model.is_mended();
        }
        self.note_commit(count, step);
    }

    /// Applies the commit to the plain disk.
    fn note_commit(&mut self, count: usize, step: Step) {
        if let Step::Committed { is_written } = step {
            self.registry_disk(!is_written);
        }
        let store = &mut self.registry.store;
        let settlement = match step {
            Step::Committed { is_written: true } => store.settle(count, Outcome::Written),
            Step::Committed { is_written: false } => store.doubt(count),
            Step::Idle | Step::Loaded(..) | Step::Closed => return,
        };
        if let Some(database) = &mut self.database {
            database.settlements.extend(settlement);
        }
        self.resolve();
    }

    /// Records the outcomes of commits that were unknown until now.
    fn resolve(&mut self) {
        let Some(database_model) = self.database.as_mut().map(Database::database_model) else { return };
        for took_effect in std::mem::take(&mut database_model.took_effect) {
            self.registry.store.resolve(took_effect);
        }
    }

    /// A notification must equal that of the plain disk.
    fn tell_registry(&mut self) {
        let moment = self.moment();
        let Some(database_model) = self.database_model() else { return };
        database_model.tell();
        for word in std::mem::take(&mut database_model.words) {
            self.note(|| Observed::left("database", &word));
            let due = self.database.as_mut().and_then(|database| database.settlements.pop_front());
            let Some(due) = due else {
                self.violation(Law::P3, format!("{word:?} is told, and nothing is due"));
                continue;
            };
            if (due.epoch, due.through, due.is_written) != (word.epoch, word.through, word.is_written) {
                self.violation(Law::P1, format!("{word:?} is told, and {due:?} is due"));
            }
            self.registry.settled(moment, due);
        }
    }

    /// All waiting writes are committed, and the registry is notified.
    fn finish_writes(&mut self) {
        while self
            .database_model()
            .is_some_and(|database_model| database_model.may_tell() || database_model.is_write_next())
        {
            if self.database_model().is_some_and(|database_model| database_model.may_tell()) {
                self.tell_registry();
            } else {
                self.commit(usize::MAX, None);
            }
        }
    }

    /// The registry reads its store, after all of its writes.
    fn load_database(&mut self, trouble: Option<Trouble>) {
        if !self.registry.is_loading() || !self.disk_takes() {
            return;
        }
        self.finish_writes();
        if !self.registry.is_loading() {
            return;
        }
        let rows = self.read_database(trouble);
        self.resolve();
        let moment = self.moment();
        let Some(rows) = rows else {
            self.registry.load_failed(moment);
            return;
        };
        let plain = self.registry.store.read(moment.now);
        match image(rows, &plain) {
            Ok(image) if image == plain => {}
            found => self.violation(Law::P2, format!("{found:?} is loaded, and {plain:?} is due")),
        }
        let store = &self.registry.store;
        let (rows, run, begun) = (store.rows().clone(), store.run(), store.begun());
        self.registry.checker.expect(rows, run, begun);
        self.registry.loaded(moment, plain);
    }

    fn read_database(&mut self, trouble: Option<Trouble>) -> Option<Vec<Row>> {
        self.open_database();
        let database_model = self.database_model()?;
        database_model.open_ledger(OWNER);
        database_model.lay(Job::Load(OWNER));
        if let Some(Trouble { after, fault }) = trouble {
            database_model.fails_after(after, fault);
        }
        let step = database_model.go_on(usize::MAX);
        if trouble.is_some() {
            database_model.is_mended();
        }
        self.dispatch_database();
        match step {
            Step::Loaded(_, rows) => rows,
            Step::Idle | Step::Committed { .. } | Step::Closed => None,
        }
    }

    /// The present host opens the database, if it has not yet: the first action of a host.
    fn open_database(&mut self) {
        let run = self.registry.store.run();
        let Some(database_model) = self.database.as_mut().map(Database::database_model) else { return };
        if database_model.is_open() {
            return;
        }
        database_model.open();
        let opened = database_model.run();
        if opened != run {
            self.violation(Law::P4, format!("{opened:?} begins where {run:?} is due"));
        }
        self.resolve();
    }

    /// The host stops in order: the database is closed after all waiting items.
    pub(super) fn close_database(&mut self) {
        if self.database.is_some() {
            self.disk_becomes(None);
        }
        self.open_database();
        self.finish_writes();
        if let Some(database_model) = self.database_model() {
            database_model.lay(Job::Close);
            database_model.go_on(usize::MAX);
        }
    }

    fn kill_database(&mut self, count: usize, before: u64, reached: Reached) {
        if self.database.is_some() {
            self.disk_becomes(None);
        }
        self.open_database();
        self.commit(count, Some(Trouble { after: before, fault: DiskFault::Broken }));
        if let Some(database) = &mut self.database {
            database.database_model().is_cut(reached);
            database.settlements.clear();
        }
    }

    /// Reports the violations of the database.
    pub(super) fn dispatch_database(&mut self) {
        let Some(database_model) =
            self.database.as_ref().and_then(|database| database.database_model.as_ref())
        else {
            return;
        };
        self.verdict.heard_of(database_model.verdict.broken());
        if database_model.may_tell() {
            self.signals.push(Signal::Ready(EventKind::Database(DatabaseDoing::Tell)));
        }
    }
}

/// The image of the registry, as production reads it, in the run of this other image.
fn image(rows: Vec<Row>, plain: &Image) -> Result<Image, DecodeError> {
    let registrations = rows.iter().map(|(_, record)| decode(record));
    let registrations = registrations.collect::<Result<Vec<RegistrationRow>, _>>()?;
    Ok(image_of(registrations.into_iter(), plain.ceiling, plain.run, plain.run_age))
}
