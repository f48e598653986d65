//! Runs the persister without its actor and its thread: the queue and the store of production, and the laws of both.
//!
//! It takes the next item on request. A plain list of the writes handed over stands beside the queue, and a plain list of rows beside
//! the store; after each step they must be equal.

mod committing;
mod telling;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use callboard_actors::persister::{
    BATCH_WRITES_MAX, Batch, DiskFault, Operation, Owner, Queue, RECORD_BYTES_MAX, Reached, Write,
};
use callboard_actors::vocabulary::RunNumber;

use super::super::law::Law;
use super::super::law_checker::Verdict;
use super::faults::PersisterFault;
use super::plain::{Changes, Plain};
use super::volume::{Action, ActionOutcome, Medium, Place, Reading};

/// A job that waits behind the writes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// An owner reads its rows.
    Load(Owner),
    /// The database is closed.
    Close,
}

/// The result of taking the next item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing waits.
    Idle,
    /// A commit has succeeded or failed; its owners are notified by [`DatabaseModel::tell`].
    Committed {
        /// Whether it is on disk.
        is_written: bool,
    },
    /// This owner has read the database; `None` if that failed.
    Loaded(Owner, Option<Vec<Row>>),
    /// The database is closed.
    Closed,
}

/// A row: table, key and encoded record.
pub(crate) type Row = (Place, Vec<u8>);

/// A notification of an owner about its writes; see [`Settled`](callboard_actors::persister::Settled).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    pub(crate) owner: Owner,
    pub(crate) epoch: u64,
    pub(crate) through: u64,
    pub(crate) is_written: bool,
}

/// The life of a ledger.
pub(super) type Life = (Owner, u64);

/// A waiting item, in plain form.
#[derive(Debug, Clone, Hash)]
enum Waits {
    Write {
        life: Life,
        epoch: u64,
        sequence: u64,
        changes: Changes,
        /// Whether it was merged with the write before it, and shares its commit.
        is_joined: bool,
    },
    Refusal {
        life: Life,
        epoch: u64,
    },
    Job,
}

/// The ledger of an owner, in plain form.
#[derive(Debug, Clone, Copy, Hash, Default)]
struct Ledger {
    opening: u64,
    /// The epoch up to which nothing is accepted any longer.
    closed_through: Option<u64>,
    /// The epoch up to which a failure was reported to its owner.
    told_no: Option<u64>,
    /// The last write that was reported to its owner.
    told: Option<(u64, u64)>,
}

/// A finished commit whose result was not reported yet.
#[derive(Debug, Clone, Hash)]
struct Finished {
    batch: Rc<Batch>,
    is_written: bool,
    /// Its writes: life, epoch and sequence of each.
    writes: Vec<(Life, u64, u64)>,
}

/// The state of the database for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum DatabaseState {
    Open,
    /// A host runs, and has closed the database.
    Closed,
    /// No host runs.
    Gone,
}

/// The queue and the store of production, and their required results.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseModel<D> {
    volume: D,
    queue: Queue<Life, Job>,
    database: DatabaseState,
    run: RunNumber,
    waiting: VecDeque<Waits>,
    ledgers: BTreeMap<Owner, Ledger>,
    finished: VecDeque<Finished>,
    pub(crate) words: VecDeque<Word>,
    plain: Plain,
    /// Whether each commit with an unknown outcome took effect, as found out later, in order.
    pub(crate) took_effect: Vec<bool>,
    /// The present or future fault of the disk.
    trouble: Option<(u64, DiskFault)>,
    /// The damaged records that were not detected yet.
    damaged: Vec<Place>,
    fault: Option<PersisterFault>,
    has_failed: bool,
    pub(crate) verdict: Verdict,
}

/// While the content of the disk is unknown, the whole history counts.
impl<D: Medium> Hash for DatabaseModel<D> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            volume, queue, database, waiting, ledgers, finished, words, plain, trouble, damaged, ..
        } = self;
        let is_doubtful = trouble.is_some() || plain.is_doubtful();
        let history = is_doubtful.then(|| volume.history());
        (queue, database, waiting, ledgers, finished, words, plain, trouble, damaged, history).hash(state);
    }
}

impl<D: Medium> DatabaseModel<D> {
    /// The database on this volume, with an optional fault of the persister. No host runs yet.
    pub(crate) fn new(volume: D, fault: Option<PersisterFault>) -> Self {
        Self {
            volume,
            queue: Queue::default(),
            database: DatabaseState::Gone,
            run: RunNumber::default(),
            waiting: VecDeque::new(),
            ledgers: BTreeMap::new(),
            finished: VecDeque::new(),
            words: VecDeque::new(),
            plain: Plain::default(),
            took_effect: Vec::new(),
            trouble: None,
            damaged: Vec::new(),
            fault,
            has_failed: false,
            verdict: Verdict::NONE,
        }
    }

    // === The observable state ===

    /// Whether a host has the database open.
    pub(crate) fn is_open(&self) -> bool {
        self.database == DatabaseState::Open
    }

    /// Whether no host runs.
    pub(crate) fn is_gone(&self) -> bool {
        self.database == DatabaseState::Gone
    }

    /// The number of waiting items.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the next waiting item is a write.
    pub(crate) fn is_write_next(&self) -> bool {
        matches!(self.waiting.front(), Some(Waits::Write { .. }))
    }

    /// Whether the next item may be taken: a thread continues after a commit that succeeded before its owners are notified, but not
    /// after a failed one.
    pub(crate) fn may_go_on(&self) -> bool {
        match self.finished.front() {
            None => !self.waiting.is_empty(),
            Some(finished) => self.finished.len() == 1 && finished.is_written && self.is_write_next(),
        }
    }

    /// Whether the result of a commit is to be reported.
    pub(crate) fn may_tell(&self) -> bool {
        !self.finished.is_empty()
    }

    /// The present or future fault of the disk.
    pub(crate) const fn trouble(&self) -> Option<(u64, DiskFault)> {
        self.trouble
    }

    /// Some row that is certainly on disk.
    pub(super) fn some_row(&self) -> Option<(Place, Vec<u8>)> {
        self.plain.lines().first_key_value().map(|(place, record)| (place.clone(), record.clone()))
    }

    /// The run of the host that opened it last.
    pub(crate) const fn run(&self) -> RunNumber {
        self.run
    }

    fn is_wrong(&self, fault: PersisterFault) -> bool {
        self.fault == Some(fault)
    }

    // === The disk ===

    /// This fault begins after this number of further changes of the disk.
    pub(crate) fn fails_after(&mut self, changes: u64, fault: DiskFault) {
        self.trouble = Some((changes, fault));
        self.volume.carry_out(Action::Fail(changes, fault));
    }

    /// The fault ends.
    pub(crate) fn is_mended(&mut self) {
        self.trouble = None;
        self.volume.carry_out(Action::Mend);
    }

    /// A bit of a record flips on a disk that is not in use.
    pub(super) fn is_damaged(&mut self, place: Place, record: &[u8]) {
        self.volume.carry_out(Action::Damage(record.to_vec()));
        self.damaged.push(place);
    }

    /// The host is gone with all waiting items, and this part of the unsynced data had reached the disk.
    pub(crate) fn is_cut(&mut self, reached: Reached) {
        self.volume.carry_out(Action::Cut(reached));
        self.trouble = None;
        self.database = DatabaseState::Gone;
        self.forget_the_host();
    }

    fn forget_the_host(&mut self) {
        self.queue = Queue::default();
        self.waiting.clear();
        self.ledgers.clear();
        self.finished.clear();
        self.words.clear();
        self.has_failed = false;
    }

    // === A host ===

    /// A host opens the database. False if it could not.
    pub(crate) fn open(&mut self) -> bool {
        self.forget_the_host();
        let opened = match &*self.volume.carry_out(Action::Open) {
            ActionOutcome::Opened(_)
                if self.is_wrong(PersisterFault::KeepsItsRun) && self.run > RunNumber::default() =>
            {
                Ok(self.run)
            }
            ActionOutcome::Opened(run) => Ok(*run),
            ActionOutcome::Failed { what, .. } => Err(what.clone()),
            ActionOutcome::Done { .. } | ActionOutcome::Read(_) => {
                unreachable!("a database is opened or not")
            }
        };
        match opened {
            Ok(run) => {
                if run <= self.run {
                    self.verdict.violation(Law::P4, || format!("a host begins run {run:?} again"));
                }
                (self.run, self.database) = (run, DatabaseState::Open);
                self.read_after(Law::P4);
                true
            }
            Err(why) => {
                if self.trouble.is_none() {
                    self.verdict.violation(Law::P4, || format!("a sound disk is not opened: {why}"));
                }
                false
            }
        }
    }

    /// An owner, or its replacement, is notified of its writes from now on.
    pub(crate) fn open_ledger(&mut self, owner: Owner) {
        let ledger = self.ledgers.entry(owner).or_default();
        *ledger = Ledger { opening: ledger.opening + 1, ..Ledger::default() };
        self.queue.open_ledger(owner, (owner, ledger.opening));
    }

    /// An owner hands over a write.
    pub(crate) fn write(&mut self, write: &Write) {
        let ledger = self.ledgers.entry(write.owner).or_default();
        let is_due = ledger.closed_through < Some(write.epoch);
        let (life, epoch, sequence) = ((write.owner, ledger.opening), write.epoch, write.sequence);
        if self.queue.push(write) != is_due {
            self.verdict
                .violation(Law::P3, || format!("whether {write:?} is taken is not what {ledger:?} says"));
        }
        if !is_due {
            return;
        }
        let is_too_large = |operation: &Operation| match operation {
            Operation::Put { key, record, .. } => key.len() + record.len() > RECORD_BYTES_MAX,
            Operation::Delete { key, .. } => key.len() > RECORD_BYTES_MAX,
        };
        if write.operations.iter().any(is_too_large) {
            ledger.closed_through = Some(epoch);
            self.waiting.push_back(Waits::Refusal { life, epoch });
        } else {
            let changes = write.operations.iter().map(|operation| match operation {
                Operation::Put { table, key, record } => ((table.0, key.clone()), Some(record.clone())),
                Operation::Delete { table, key, .. } => ((table.0, key.clone()), None),
            });
            let (changes, is_joined) = (changes.collect(), false);
            self.waiting.push_back(Waits::Write { life, epoch, sequence, changes, is_joined });
        }
    }

    /// Queues a job behind every waiting write.
    pub(crate) fn lay(&mut self, job: Job) {
        self.queue.push_job(job);
        self.waiting.push_back(Waits::Job);
    }

    // === Reading ===

    /// Reads everything, if the disk is sound; it must equal the plain rows.
    fn read_after(&mut self, law: Law) {
        if self.trouble.is_none() && self.database == DatabaseState::Open {
            self.read(law);
        }
    }

    /// Reads everything.
    fn read(&mut self, law: Law) -> Option<Reading> {
        let mut reading = match &*self.volume.carry_out(Action::Read) {
            ActionOutcome::Read(reading) => reading.clone(),
            ActionOutcome::Failed { is_transient, what } => {
                self.check_failure(*is_transient, what);
                return None;
            }
            ActionOutcome::Done { .. } | ActionOutcome::Opened(_) => {
                unreachable!("what is read is read or not")
            }
        };
        match self.fault {
            Some(PersisterFault::OverlooksDamage) => reading.damaged.clear(),
            Some(PersisterFault::LosesARecord) if law == Law::P2 => drop(reading.lines.pop_first()),
            Some(_) | None => {}
        }
        let damaged = std::mem::take(&mut self.damaged);
        if reading.damaged != damaged {
            self.verdict.violation(Law::P2, || {
                format!("{:?} is said to be damaged, and {damaged:?} is", reading.damaged)
            });
        }
        damaged.iter().for_each(|place| self.plain.loses(place));
        let law = if self.plain.is_doubtful() { Law::P4 } else { law };
        match self.plain.is_found(&reading.lines) {
            Some(took_effect) => self.took_effect.extend(took_effect),
            None => {
                let (plain, found) = (&self.plain, &reading.lines);
                self.verdict.violation(law, || format!("the database holds {found:?}, and {plain:?} is due"));
            }
        }
        Some(reading)
    }

    /// While the database is open, only a failing disk is a reason to fail, and a retry helps.
    fn check_failure(&mut self, is_transient: bool, what: &str) {
        if self.database == DatabaseState::Open && (self.trouble.is_none() || !is_transient) {
            let trouble = self.trouble;
            self.verdict
                .violation(Law::P3, || format!("{what}, and what is wrong with the disk is {trouble:?}"));
        }
    }
}
