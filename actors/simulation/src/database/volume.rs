//! A volume: a disk in memory, and the store of production on it.

use std::collections::BTreeMap;
use std::rc::Rc;

use callboard_actors::persister::{
    Batch, DiskFault, LoadError, MemoryDisk, Reached, Record, Store, encode, open_in_memory,
};
use callboard_actors::vocabulary::RunNumber;

/// The place of a row: the name of its table, and its key.
pub(super) type Place = (&'static str, Vec<u8>);

/// The content of a database: encoded records at their places.
pub(super) type Lines = BTreeMap<Place, Vec<u8>>;

/// The result of reading a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(super) lines: Lines,
    /// The places of records that were set aside.
    pub(super) damaged: Vec<Place>,
}

/// Reads one table like production, and encodes the records again.
pub(crate) type Reader = fn(&mut Store, &mut Reading) -> Result<(), LoadError>;

/// The [`Reader`] of the table of a record type.
pub(crate) fn read_table<R: Record>(store: &mut Store, reading: &mut Reading) -> Result<(), LoadError> {
    let loaded = store.load::<R>()?;
    let lines = loaded.rows.into_iter().map(|(key, record)| ((R::TABLE.0, key), encode(&record)));
    reading.lines.extend(lines);
    reading.damaged.extend(loaded.damaged.into_iter().map(|damaged| (damaged.table.0, damaged.key)));
    Ok(())
}

/// An action on a volume.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Action {
    /// A host opens the database.
    Open,
    /// It writes these to disk.
    Commit(Rc<Batch>),
    /// It reads all tables.
    Read,
    /// It closes the database.
    Close,
    /// Host and power are lost; this part of the unsynced data had reached the disk.
    Cut(Reached),
    /// This fault begins after this number of further tried changes of the disk.
    Fail(u64, DiskFault),
    /// The fault ends.
    Mend,
    /// A bit flips wherever these bytes are.
    Damage(Vec<u8>),
}

/// The result of an action.
#[derive(Debug, Clone)]
pub(crate) enum ActionOutcome {
    /// The action is done; a power cut would undo it unless it is synced.
    Done {
        is_synced: bool,
    },
    /// A host has opened the database, with this run number.
    Opened(RunNumber),
    Read(Reading),
    /// The action failed. A retry may help if the failure is transient.
    Failed {
        is_transient: bool,
        what: String,
    },
}

/// A medium on which actions are carried out.
pub(crate) trait Medium {
    /// Carries out an action, and returns its result.
    fn carry_out(&mut self, action: Action) -> Rc<ActionOutcome>;

    /// A number that identifies all actions so far, where they are counted.
    fn history(&self) -> u128 {
        0
    }
}

/// The disk, and the store if a host runs.
#[derive(Debug)]
pub(crate) struct Volume {
    disk: MemoryDisk,
    store: Option<Store>,
    readers: &'static [Reader],
}

impl Volume {
    /// An empty disk. These readers read the content of the database.
    pub(crate) fn new(readers: &'static [Reader]) -> Self {
        Self { disk: MemoryDisk::default(), store: None, readers }
    }

    fn open(&mut self) -> ActionOutcome {
        self.store = None;
        match open_in_memory(&self.disk) {
            Ok((store, run)) => {
                self.store = Some(store);
                ActionOutcome::Opened(run)
            }
            Err(error) => {
                ActionOutcome::Failed { is_transient: error.is_transient(), what: error.to_string() }
            }
        }
    }

    fn commit(&mut self, batch: &Batch) -> ActionOutcome {
        let Some(store) = &mut self.store else { return no_host() };
        match store.commit(&batch.operations) {
            Ok(()) => self.done(),
            Err(error) => {
                ActionOutcome::Failed { is_transient: error.is_transient(), what: error.to_string() }
            }
        }
    }

    fn read(&mut self) -> ActionOutcome {
        let Some(store) = &mut self.store else { return no_host() };
        let mut reading = Reading::default();
        match self.readers.iter().try_for_each(|read| read(store, &mut reading)) {
            Ok(()) => ActionOutcome::Read(reading),
            Err(error) => {
                ActionOutcome::Failed { is_transient: error.is_transient(), what: error.to_string() }
            }
        }
    }

    /// Nothing that the host would still write while it ends reaches the disk.
    fn cut(&mut self, reached: Reached) {
        self.disk.set_fault(Some(DiskFault::Broken));
        self.store = None;
        self.disk.set_fault(None);
        self.disk.cut_power_when(reached);
    }

    fn done(&self) -> ActionOutcome {
        ActionOutcome::Done { is_synced: self.disk.is_synced() }
    }
}

fn no_host() -> ActionOutcome {
    ActionOutcome::Failed { is_transient: false, what: "no host runs".to_owned() }
}

impl Medium for Volume {
    fn carry_out(&mut self, action: Action) -> Rc<ActionOutcome> {
        Rc::new(match action {
            Action::Open => self.open(),
            Action::Commit(batch) => self.commit(&batch),
            Action::Read => self.read(),
            Action::Close => {
                self.store.iter_mut().for_each(Store::close);
                self.done()
            }
            Action::Cut(reached) => {
                self.cut(reached);
                self.done()
            }
            Action::Fail(after, fault) => {
                self.disk.set_fault_after(after, fault);
                self.done()
            }
            Action::Mend => {
                self.disk.set_fault(None);
                self.done()
            }
            Action::Damage(bytes) => {
                self.disk.damage(&bytes);
                self.done()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use callboard_actors::persister::{Next, Operation, Owner, Queue, Table, Write};

    #[derive(serde::Serialize, Deserialize)]
    struct Line(u64);

    impl Record for Line {
        const TABLE: Table = Table("lines");
        const SCHEMA: u16 = 1;
    }

    /// The searches break a small disk before each of this number of changes (`actors/simulation/tests/interleavings/database.rs`).
    #[test]
    fn a_small_commit_changes_the_disk_eight_times_at_most_and_an_opening_thirty_two_times_p4() {
        let mut volume = Volume::new(&[read_table::<Line>]);
        volume.carry_out(Action::Open);
        let mut queue: Queue<(), ()> = Queue::default();
        let mut changed = Vec::new();
        for sequence in 1..=6 {
            let operations = (0..5_u8).map(|key| Operation::put([key], &Line(sequence))).collect();
            queue.push(&Write { owner: Owner::new("first"), epoch: 1, sequence, operations });
            let Some(Next::Commit(batch)) = queue.next(1) else { panic!("a write waits") };
            let batch = Rc::new(batch);
            for action in [
                Action::Commit(batch),
                Action::Cut(Reached::Nothing),
                Action::Open,
                Action::Close,
                Action::Open,
            ] {
                let before = volume.disk.changes();
                volume.carry_out(action.clone());
                changed.push((
                    format!("{action:?}").chars().take(6).collect::<String>(),
                    volume.disk.changes() - before,
                ));
            }
        }
        let is_within =
            |(action, changes): &(String, u64)| *changes <= if action == "Commit" { 8 } else { 32 };
        assert!(changed.iter().all(is_within), "{changed:?}");
    }
}
