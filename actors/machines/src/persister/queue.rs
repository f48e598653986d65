//! Decides which writes the next commit holds, which owners are notified, and which writes a failure drops.
//!
//! Pure data and functions: the actor passes in its inputs and executes the results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::errors::WriteError;
use super::messages::{Operation, Owner, Write};
use super::operations::{Change, Operations};

/// The limit of writes per commit.
pub const BATCH_WRITES_MAX: usize = 4_096;

/// A commit takes no further write once its operations have this many bytes.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The limit of queued writes. A write over it fails with [`WriteError::Overloaded`].
const WAITING_WRITES_MAX: usize = 1_000_000;

/// The limit of queued operations in bytes.
const WAITING_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Identifies a ledger and its opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerId {
    place: usize,
    opening: u64,
}

/// The progress of one ledger in one epoch by one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The ledger.
    pub ledger: LedgerId,
    /// The epoch of its writes.
    pub epoch: u64,
    /// The number of the last write that the commit holds.
    pub through: u64,
}

/// The writes that share a commit, and the progress of each ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The number of writes.
    pub writes: usize,
    /// The operations of all writes.
    pub operations: Arc<Operations>,
    /// The progress of each ledger.
    pub progress: Vec<Progress>,
}

/// The next action.
#[derive(Debug)]
pub enum Next<J> {
    /// Commit this batch.
    Commit(Batch),
    /// Notify this ledger that its write is refused.
    Refuse(Progress, WriteError),
    /// Run this job.
    Job(J),
}

/// A queued write. Its operations are stored with those of all others.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Due {
    pub(super) ledger: LedgerId,
    pub(super) epoch: u64,
    pub(super) sequence: u64,
    pub(super) operations: usize,
    pub(super) bytes: usize,
    /// Whether it has to share the commit of the write before it, with which it was merged.
    pub(super) is_joined: bool,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum Waiting<J> {
    Write(Due),
    Refusal(Progress, WriteError),
    Job(J),
}

#[derive(Debug, Clone, Hash)]
struct Ledger<L> {
    /// Grows with each opening and closing in this place, so that results of an earlier opening do not reach a later one.
    opening: u64,
    listener: Option<L>,
    /// Writes of this epoch and earlier ones are dropped.
    failed: Option<u64>,
    taken: Option<(u64, u64)>,
    settled: Option<(u64, u64)>,
    /// The index of its progress in the batch that is being built.
    noted: Option<usize>,
}

impl<L> Ledger<L> {
    /// The next opening, without any state.
    const fn next(opening: u64, listener: Option<L>) -> Self {
        Self { opening: opening + 1, listener, failed: None, taken: None, settled: None, noted: None }
    }
}

/// All pending work, in the order of its arrival. `L` is the recipient of notifications, `J` is a job other than a write.
#[derive(Debug, Clone, Hash)]
pub struct Queue<L, J> {
    ledgers: Vec<Ledger<L>>,
    places: BTreeMap<Owner, usize>,
    /// The places of closed ledgers, for reuse.
    vacant: Vec<usize>,
    pub(super) waiting: VecDeque<Waiting<J>>,
    pub(super) operations: Operations,
    /// The operations of the commit in progress.
    underway: Option<Arc<Operations>>,
    /// The number of writes from which on they are merged; `None` while the disk is sound.
    pub(super) merges_at: Option<usize>,
    /// The buffer of a finished batch, for reuse.
    unused: Operations,
    pub(super) writes: usize,
    pub(super) bytes: usize,
}

impl<L, J> Default for Queue<L, J> {
    fn default() -> Self {
        Self {
            ledgers: Vec::new(),
            places: BTreeMap::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            operations: Operations::default(),
            underway: None,
            merges_at: None,
            unused: Operations::default(),
            writes: 0,
            bytes: 0,
        }
    }
}

impl<L, J> Queue<L, J> {
    /// Makes `listener` the recipient of this owner's write results.
    pub fn open_ledger(&mut self, owner: Owner, listener: L) -> LedgerId {
        let place = self.place_of(owner);
        let ledger = &mut self.ledgers[place];
        *ledger = Ledger::next(ledger.opening, Some(listener));
        LedgerId { place, opening: ledger.opening }
    }

    /// The owner has ended. Its writes are still committed, and its place is free for another. A ledger that was opened again stays.
    pub fn close_ledger(&mut self, owner: Owner, id: LedgerId) {
        let is_open = |place: &usize| *place == id.place && self.ledgers[*place].opening == id.opening;
        if let Some(place) = self.places.get(&owner).copied().filter(is_open) {
            self.places.remove(&owner);
            self.ledgers[place] = Ledger::next(id.opening, None);
            self.vacant.push(place);
        }
    }

    /// Enqueues a write. False means that it was dropped, since its owner was notified of a failure already.
    pub fn push(&mut self, write: &Write) -> bool {
        let place = self.place_of(write.owner);
        let ledger = &mut self.ledgers[place];
        if ledger.failed.is_some_and(|failed| write.epoch <= failed) {
            return false;
        }
        let id = LedgerId { place, opening: ledger.opening };
        ledger.taken = Some((write.epoch, write.sequence));
        let bytes = write.operations.iter().map(Operation::bytes).sum();
        match refusal_of(write, bytes, self.writes, self.bytes) {
            Some(error) => {
                ledger.failed = Some(write.epoch);
                let progress = Progress { ledger: id, epoch: write.epoch, through: write.sequence };
                self.waiting.push_back(Waiting::Refusal(progress, error));
            }
            None => {
                self.writes += 1;
                self.bytes += bytes;
                write.operations.iter().for_each(|operation| self.operations.push(operation));
                let (epoch, sequence, operations) = (write.epoch, write.sequence, write.operations.len());
                self.waiting.push_back(Waiting::Write(Due {
                    ledger: id,
                    epoch,
                    sequence,
                    operations,
                    bytes,
                    is_joined: false,
                }));
            }
        }
        true
    }

    /// Enqueues a job behind every earlier write.
    pub fn push_job(&mut self, job: J) {
        self.waiting.push_back(Waiting::Job(job));
    }

    /// Takes the first job out of its place, and adds copies of the operations that were queued before it.
    pub fn take_job(&mut self, before: &mut Operations) -> Option<J> {
        let place = self.waiting.iter().position(|waiting| matches!(waiting, Waiting::Job(_)))?;
        let operations = self.waiting.iter().take(place).map(|waiting| match waiting {
            Waiting::Write(due) => due.operations,
            Waiting::Refusal(..) | Waiting::Job(_) => 0,
        });
        before.copy_first(operations.sum(), &self.operations);
        match self.waiting.remove(place) {
            Some(Waiting::Job(job)) => Some(job),
            Some(Waiting::Write(_) | Waiting::Refusal(..)) | None => None,
        }
    }

    /// The number of queued writes.
    #[must_use]
    pub const fn writes(&self) -> usize {
        self.writes
    }

    /// The next action, if anything is queued. A commit takes at most `writes_max` writes.
    pub fn next(&mut self, writes_max: usize) -> Option<Next<J>> {
        match self.waiting.pop_front()? {
            Waiting::Write(first) => {
                Some(Next::Commit(self.take_batch(first, writes_max.min(BATCH_WRITES_MAX))))
            }
            Waiting::Refusal(progress, error) => Some(Next::Refuse(progress, error)),
            Waiting::Job(job) => Some(Next::Job(job)),
        }
    }

    /// The next commit, if a write comes next.
    pub fn next_batch(&mut self) -> Option<Batch> {
        let first = self.take_write(false)?;
        Some(self.take_batch(first, BATCH_WRITES_MAX))
    }

    /// A commit is on disk.
    pub fn settle(&mut self, progress: &[Progress]) {
        for Progress { ledger: LedgerId { place, opening }, epoch, through } in progress {
            let ledger = &mut self.ledgers[*place];
            if ledger.opening == *opening {
                ledger.settled = ledger.settled.max(Some((*epoch, *through)));
            }
        }
    }

    /// The persister ends: returns the ledgers with failed writes, and the jobs that are dropped.
    pub fn close(&mut self) -> (Vec<Progress>, Vec<J>) {
        let mut failed = Vec::new();
        for (place, ledger) in self.ledgers.iter_mut().enumerate() {
            let Some((epoch, through)) = ledger.taken.filter(|taken| Some(*taken) > ledger.settled) else {
                continue;
            };
            if ledger.failed.is_none_or(|failed| failed < epoch) {
                ledger.failed = Some(epoch);
                failed.push(Progress { ledger: LedgerId { place, opening: ledger.opening }, epoch, through });
            }
        }
        (self.writes, self.bytes) = (0, 0);
        (self.operations, self.unused) = (Operations::default(), Operations::default());
        self.underway = None;
        let jobs = std::mem::take(&mut self.waiting).into_iter().filter_map(|waiting| match waiting {
            Waiting::Job(job) => Some(job),
            Waiting::Write(_) | Waiting::Refusal(..) => None,
        });
        (failed, jobs.collect())
    }

    /// Refuses a write after the end. `None` if its owner was notified already.
    pub fn refuse(&mut self, write: &Write) -> Option<Progress> {
        let place = self.place_of(write.owner);
        let ledger = &mut self.ledgers[place];
        if ledger.failed.is_some_and(|failed| write.epoch <= failed) {
            return None;
        }
        ledger.failed = Some(write.epoch);
        let ledger = LedgerId { place, opening: ledger.opening };
        Some(Progress { ledger, epoch: write.epoch, through: write.sequence })
    }

    /// Drops the queued writes that depend on a failed commit: later ones of the same ledgers, up to the failed epoch.
    /// Returns their number.
    pub fn fail(&mut self, progress: &[Progress]) -> usize {
        for failed in progress {
            let ledger = &mut self.ledgers[failed.ledger.place];
            if ledger.opening == failed.ledger.opening {
                ledger.failed = ledger.failed.max(Some(failed.epoch));
            }
        }
        let mut failed: BTreeMap<LedgerId, u64> = BTreeMap::new();
        for Progress { ledger, epoch, .. } in progress {
            let last = failed.entry(*ledger).or_insert(*epoch);
            *last = (*last).max(*epoch);
        }
        let concerned = |id: LedgerId, epoch: u64| failed.get(&id).is_some_and(|failed| epoch <= *failed);
        let before = self.waiting.len();
        let (writes, bytes, mut kept) = (&mut self.writes, &mut self.bytes, Vec::new());
        self.waiting.retain(|waiting| match waiting {
            Waiting::Write(due) => {
                let is_dropped = concerned(due.ledger, due.epoch);
                kept.extend(std::iter::repeat_n(!is_dropped, due.operations));
                *writes -= usize::from(is_dropped);
                *bytes -= if is_dropped { due.bytes } else { 0 };
                !is_dropped
            }
            Waiting::Refusal(refused, _) => !concerned(refused.ledger, refused.epoch),
            Waiting::Job(_) => true,
        });
        let mut kept = kept.into_iter();
        self.operations.retain(|| kept.next().unwrap_or(true));
        before - self.waiting.len()
    }

    /// A commit has ended: its operations are on disk or dropped, and their buffer may be used again.
    pub fn take_back(&mut self, operations: Arc<Operations>) {
        // Under high load the next commit has started already.
        self.underway.take_if(|underway| Arc::ptr_eq(underway, &operations));
        if let Ok(mut operations) = Arc::try_unwrap(operations) {
            operations.clear();
            self.unused = operations;
        }
    }

    /// The operations that are not on disk, in their order: those of the commit in progress, and those that wait.
    pub fn unwritten(&self) -> impl Iterator<Item = Change<'_>> {
        self.underway.iter().flat_map(|operations| operations.iter()).chain(self.operations.iter())
    }

    /// The recipient of this progress; `None` if the ledger was opened again meanwhile.
    pub fn listener(&self, progress: &Progress) -> Option<&L> {
        let ledger = &self.ledgers[progress.ledger.place];
        ledger.listener.as_ref().filter(|_| ledger.opening == progress.ledger.opening)
    }

    fn place_of(&mut self, owner: Owner) -> usize {
        if let Some(place) = self.places.get(&owner) {
            return *place;
        }
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.ledgers.push(Ledger::next(0, None));
            self.ledgers.len() - 1
        });
        self.places.insert(owner, place);
        place
    }

    fn take_batch(&mut self, first: Due, writes_max: usize) -> Batch {
        let (mut batch, mut operations, mut bytes) = (Batch::default(), 0, 0);
        let mut next = Some(first);
        while let Some(due) = next {
            self.note_progress(&mut batch.progress, due);
            batch.writes += 1;
            operations += due.operations;
            bytes += due.bytes;
            let is_full = batch.writes >= writes_max || bytes >= BATCH_BYTES_MAX;
            next = self.take_write(is_full);
        }
        batch.progress.iter().for_each(|one| self.ledgers[one.ledger.place].noted = None);
        self.writes -= batch.writes;
        self.bytes -= bytes;
        batch.operations = Arc::new(self.operations.take_first(operations, std::mem::take(&mut self.unused)));
        self.underway = Some(Arc::clone(&batch.operations));
        batch
    }

    /// The next write. If the commit is full, only a write that has to share it.
    fn take_write(&mut self, is_full: bool) -> Option<Due> {
        let Waiting::Write(due) = *self.waiting.front()? else { return None };
        if is_full && !due.is_joined {
            return None;
        }
        self.waiting.pop_front();
        Some(due)
    }

    fn note_progress(&mut self, progress: &mut Vec<Progress>, due: Due) {
        let Due { ledger, epoch, sequence: through, .. } = due;
        let noted = &mut self.ledgers[ledger.place].noted;
        let known = noted.and_then(|place| progress.get_mut(place));
        match known.filter(|known| known.ledger == ledger && known.epoch == epoch) {
            Some(known) => known.through = known.through.max(through),
            None => {
                *noted = Some(progress.len());
                progress.push(Progress { ledger, epoch, through });
            }
        }
    }
}

fn refusal_of(write: &Write, bytes: usize, waiting: usize, waiting_bytes: usize) -> Option<WriteError> {
    let is_full = || waiting >= WAITING_WRITES_MAX || waiting_bytes + bytes > WAITING_BYTES_MAX;
    let overloaded = || is_full().then_some(WriteError::Overloaded { owner: write.owner.kind(), waiting });
    write.too_large().or_else(overloaded)
}

#[cfg(test)]
mod tests {
    use super::super::codec::RECORD_BYTES_MAX;
    use super::super::messages::Table;
    use super::*;

    const REGISTRY: Owner = Owner::new("registry");
    const INSTANCES: Owner = Owner::new("instances");

    type Told = Queue<&'static str, &'static str>;

    fn queue() -> Told {
        let mut queue = Queue::default();
        queue.open_ledger(REGISTRY, "registry");
        queue.open_ledger(INSTANCES, "instances");
        queue
    }

    fn write(owner: Owner, epoch: u64, sequence: u64) -> Write {
        write_of(owner, epoch, sequence, 10)
    }

    fn write_of(owner: Owner, epoch: u64, sequence: u64, bytes: usize) -> Write {
        let record = vec![0; bytes];
        let operations = vec![Operation::Put { table: Table("t"), key: vec![], record }];
        Write { owner, epoch, sequence, operations }
    }

    fn commit(queue: &mut Told) -> Batch {
        match queue.next(BATCH_WRITES_MAX) {
            Some(Next::Commit(batch)) => batch,
            other => panic!("a commit is due, not {other:?}"),
        }
    }

    fn told(queue: &Told, batch: &Batch) -> Vec<(Option<&'static str>, u64, u64)> {
        let told = |one: &Progress| (queue.listener(one).copied(), one.epoch, one.through);
        batch.progress.iter().map(told).collect()
    }

    #[test]
    fn what_waits_is_one_batch_and_each_ledger_hears_once_of_its_last_write() {
        let mut queue = queue();
        for sequence in 1..=3 {
            assert!(queue.push(&write(REGISTRY, 1, sequence)));
            assert!(queue.push(&write(INSTANCES, 1, 10 * sequence)));
        }
        let batch = commit(&mut queue);
        assert_eq!(batch.writes, 6);
        assert_eq!(told(&queue, &batch), [(Some("registry"), 1, 3), (Some("instances"), 1, 30)]);
        assert!(queue.next(BATCH_WRITES_MAX).is_none());
    }

    #[test]
    fn a_job_waits_for_the_writes_before_it_and_holds_back_those_behind_it() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 1));
        queue.push_job("load");
        queue.push(&write(REGISTRY, 1, 2));
        assert_eq!(commit(&mut queue).progress[0].through, 1);
        assert!(matches!(queue.next(BATCH_WRITES_MAX), Some(Next::Job("load"))));
        assert_eq!(commit(&mut queue).progress[0].through, 2);
    }

    #[test]
    fn a_job_that_is_taken_out_of_its_place_comes_with_what_was_queued_before_it() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 1));
        queue.push_job("load");
        queue.push(&write(REGISTRY, 1, 2));
        let mut before = Operations::default();
        assert_eq!(queue.take_job(&mut before), Some("load"));
        assert_eq!((before.iter().count(), queue.take_job(&mut before)), (1, None));
        assert_eq!(commit(&mut queue).writes, 2, "the writes wait as before");
    }

    #[test]
    fn a_failure_takes_along_what_its_owner_decided_on_top_of_it_and_nothing_else() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 1));
        let failing = commit(&mut queue);
        queue.push(&write(REGISTRY, 1, 2));
        queue.push(&write(INSTANCES, 1, 1));
        assert_eq!(queue.fail(&failing.progress), 1, "the second write of the registry");
        assert_eq!((queue.writes(), queue.bytes), (1, 10), "only what was not forgotten counts");
        assert!(!queue.push(&write(REGISTRY, 1, 3)), "the registry was told already");
        assert!(queue.push(&write(REGISTRY, 2, 4)), "it has begun again");
        let batch = commit(&mut queue);
        assert_eq!(told(&queue, &batch), [(Some("instances"), 1, 1), (Some("registry"), 2, 4)]);
        assert_eq!(batch.operations.iter().count(), 2, "what was dropped is not carried out");
    }

    #[test]
    fn a_failure_takes_along_a_refusal_behind_it_and_not_that_of_another() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 1));
        let failing = commit(&mut queue);
        queue.push(&write_of(REGISTRY, 1, 2, RECORD_BYTES_MAX + 1));
        queue.push(&write_of(INSTANCES, 1, 1, RECORD_BYTES_MAX + 1));
        assert_eq!(queue.fail(&failing.progress), 1, "the registry hears of one failure");
        match queue.next(BATCH_WRITES_MAX) {
            Some(Next::Refuse(progress, _)) => assert_eq!(queue.listener(&progress), Some(&"instances")),
            other => panic!("a refusal is due, not {other:?}"),
        }
        assert!(queue.next(BATCH_WRITES_MAX).is_none());
    }

    #[test]
    fn when_all_is_over_each_ledger_that_waits_for_something_is_told_once_p3() {
        let mut queue = queue();
        let names = |queue: &Told, failed: &[Progress]| -> Vec<_> {
            failed.iter().map(|one| (queue.listener(one).copied(), one.epoch, one.through)).collect()
        };
        queue.push(&write(REGISTRY, 1, 1));
        queue.push(&write(INSTANCES, 1, 1));
        let settled = commit(&mut queue);
        queue.settle(&settled.progress);
        queue.push(&write(REGISTRY, 1, 2));
        let underway = commit(&mut queue);
        queue.push(&write(REGISTRY, 1, 3));
        queue.push_job("load");
        let (failed, jobs) = queue.close();
        assert_eq!(names(&queue, &failed), [(Some("registry"), 1, 3)], "the instances wait for nothing");
        assert_eq!((jobs.as_slice(), queue.writes(), queue.bytes, underway.writes), (&["load"][..], 0, 0, 1));
        assert!(queue.next(BATCH_WRITES_MAX).is_none());

        // Later writes are refused at once; each epoch is notified only once.
        assert_eq!(queue.refuse(&write(REGISTRY, 1, 4)), None, "it was told already");
        let refused: Vec<_> = queue.refuse(&write(REGISTRY, 2, 5)).into_iter().collect();
        assert_eq!(names(&queue, &refused), [(Some("registry"), 2, 5)]);
        assert_eq!(queue.refuse(&write(REGISTRY, 2, 6)), None);
        let refused: Vec<_> = queue.refuse(&write(INSTANCES, 1, 2)).into_iter().collect();
        assert_eq!(names(&queue, &refused), [(Some("instances"), 1, 2)]);
    }

    #[test]
    fn when_all_is_over_who_was_told_of_a_failure_is_not_told_again_p3() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 1));
        let failing = commit(&mut queue);
        queue.fail(&failing.progress);
        queue.push(&write(INSTANCES, 1, 1));
        let late = commit(&mut queue);
        queue.open_ledger(INSTANCES, "successor");
        queue.settle(&late.progress);
        assert_eq!(queue.close().0, [], "and a successor waits for nothing yet");
        assert!(queue.refuse(&write(INSTANCES, 1, 2)).is_some(), "its writes are its own");
    }

    #[test]
    fn a_new_listener_hears_nothing_of_the_one_before_it_and_is_not_bound_by_its_failures() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 5, 1));
        let failing = commit(&mut queue);
        queue.push(&write(REGISTRY, 5, 2));
        queue.open_ledger(REGISTRY, "successor");
        assert_eq!(told(&queue, &failing), [(None, 5, 1)]);
        queue.fail(&failing.progress);
        assert!(queue.push(&write(REGISTRY, 1, 1)));
        let batch = commit(&mut queue);
        assert_eq!(told(&queue, &batch), [(Some("successor"), 1, 1)]);
    }

    #[test]
    fn what_an_owner_that_has_ended_handed_over_is_committed_and_not_reported() {
        let mut queue = queue();
        let id = queue.open_ledger(REGISTRY, "registry");
        queue.push(&write(REGISTRY, 1, 1));
        let failing = commit(&mut queue);
        queue.push(&write(REGISTRY, 1, 2));
        queue.push(&write(INSTANCES, 1, 1));
        queue.close_ledger(REGISTRY, id);
        let volume = Owner::numbered("volume", 7);
        assert_eq!(queue.open_ledger(volume, "volume").place, id.place, "another owner has its place");
        queue.push(&write(volume, 1, 1));
        assert_eq!(told(&queue, &failing), [(None, 1, 1)]);
        assert_eq!(queue.fail(&failing.progress), 1, "what builds on a failed write fails with it");
        let batch = commit(&mut queue);
        assert_eq!(told(&queue, &batch), [(Some("instances"), 1, 1), (Some("volume"), 1, 1)]);
        queue.settle(&failing.progress);
        let waiting: std::collections::BTreeSet<_> = queue.close().0.iter().map(|one| one.ledger).collect();
        let expected = batch.progress.iter().map(|one| one.ledger).collect();
        assert_eq!(waiting, expected, "nothing of the former owner counts for the later one");
    }

    #[test]
    fn who_opens_a_ledger_again_keeps_it_when_the_former_one_ends() {
        let mut queue = queue();
        let former = queue.open_ledger(REGISTRY, "former");
        queue.open_ledger(REGISTRY, "successor");
        queue.close_ledger(REGISTRY, former);
        queue.push(&write(REGISTRY, 1, 1));
        let batch = commit(&mut queue);
        assert_eq!(told(&queue, &batch), [(Some("successor"), 1, 1)]);
    }

    #[test]
    fn many_owners_that_come_and_go_leave_nothing_and_share_a_commit() {
        let mut queue = Told::default();
        for number in 0..10_000 {
            let owner = Owner::numbered("volume", number);
            let id = queue.open_ledger(owner, "volume");
            queue.push(&write(owner, 1, number));
            queue.close_ledger(owner, id);
        }
        assert_eq!((queue.ledgers.len(), queue.places.len(), queue.vacant.len()), (1, 0, 1));
        let ids: Vec<_> =
            (0..3_000).map(|number| queue.open_ledger(Owner::numbered("volume", number), "volume")).collect();
        while queue.next(BATCH_WRITES_MAX).is_some() {}
        for round in 1..=2 {
            (0..2_000).for_each(|number| {
                queue.push(&write(Owner::numbered("volume", number), 1, round));
            });
        }
        let batch = commit(&mut queue);
        let through: Vec<_> = batch.progress.iter().map(|one| (one.ledger, one.through)).collect();
        assert_eq!(through, ids[..2_000].iter().map(|id| (*id, 2)).collect::<Vec<_>>());
    }

    #[test]
    fn two_epochs_in_one_commit_are_told_apart() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 7));
        queue.push(&write(REGISTRY, 2, 8));
        let batch = commit(&mut queue);
        assert_eq!(told(&queue, &batch), [(Some("registry"), 1, 7), (Some("registry"), 2, 8)]);
    }

    #[test]
    fn a_write_that_is_too_large_is_refused_when_its_turn_comes() {
        let mut queue = queue();
        queue.push(&write(REGISTRY, 1, 1));
        queue.push(&write_of(REGISTRY, 1, 2, RECORD_BYTES_MAX + 1));
        assert!(!queue.push(&write(REGISTRY, 1, 3)), "it builds on the one that will be refused");
        assert_eq!(commit(&mut queue).progress[0].through, 1);
        match queue.next(BATCH_WRITES_MAX) {
            Some(Next::Refuse(progress, WriteError::TooLarge { owner: "registry", .. })) => {
                assert_eq!((progress.epoch, progress.through), (1, 2));
            }
            other => panic!("a refusal is due, not {other:?}"),
        }
    }

    #[test]
    fn a_batch_has_a_limit_in_writes_and_in_bytes() {
        let mut queue = queue();
        for sequence in 0..BATCH_WRITES_MAX as u64 + 1 {
            queue.push(&write(REGISTRY, 1, sequence));
        }
        assert_eq!(commit(&mut queue).writes, BATCH_WRITES_MAX);
        assert_eq!(commit(&mut queue).writes, 1);
        (1..=5).for_each(|sequence| assert!(queue.push(&write(REGISTRY, 1, sequence))));
        assert!(matches!(queue.next(3), Some(Next::Commit(batch)) if batch.writes == 3));
        assert_eq!(commit(&mut queue).writes, 2);
        for sequence in 0..20 {
            queue.push(&write_of(REGISTRY, 1, sequence, RECORD_BYTES_MAX));
        }
        assert_eq!(commit(&mut queue).writes, BATCH_BYTES_MAX / RECORD_BYTES_MAX);
    }

    #[test]
    fn so_many_writes_and_bytes_may_wait_and_not_one_more() {
        let write = write_of(REGISTRY, 1, 1, 10);
        let is_refused = |waiting, bytes| refusal_of(&write, 10, waiting, bytes).is_some();
        assert!(!is_refused(WAITING_WRITES_MAX - 1, WAITING_BYTES_MAX - 10));
        assert!(is_refused(WAITING_WRITES_MAX, 0));
        assert!(is_refused(0, WAITING_BYTES_MAX - 9));
    }

    #[test]
    fn more_than_may_wait_is_refused_and_the_count_recovers() {
        let mut queue = queue();
        let fitting = WAITING_BYTES_MAX / RECORD_BYTES_MAX;
        for sequence in 0..=fitting as u64 {
            assert!(queue.push(&write_of(REGISTRY, 1, sequence, RECORD_BYTES_MAX)));
        }
        let mut written = 0;
        loop {
            match queue.next(BATCH_WRITES_MAX) {
                Some(Next::Commit(batch)) => written += batch.writes,
                Some(Next::Refuse(_, WriteError::Overloaded { .. })) => break,
                other => panic!("either a commit or the refusal is due, not {other:?}"),
            }
        }
        assert_eq!(written, fitting);
        assert_eq!((queue.writes, queue.bytes), (0, 0));
    }
}
