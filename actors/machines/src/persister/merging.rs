//! Merges the writes that wait for a sick disk: two writes of the same row become one, so that the queue is bounded by the number of rows.
//!
//! All writes that wait between two jobs are merged at once, and share one commit. So the disk changes from a state before all of them to
//! the state after all of them, regardless of their order: never to a state that an owner has not handed over.

use std::collections::BTreeSet;

use super::messages::Table;
use super::operations::Change;
use super::queue::{Due, LedgerId, Queue, Waiting};

/// The number of waiting writes from which on they are merged. They are merged again each time they have doubled.
const MERGES_AT: usize = 1_024;

impl<L, J> Queue<L, J> {
    /// The disk has become sick or sound. Waiting writes are merged only while it is sick.
    pub fn set_sick(&mut self, is_sick: bool) {
        self.merges_at = is_sick.then(|| self.merges_at.unwrap_or(MERGES_AT));
    }

    /// Merges the waiting writes if there are too many. Returns how many fewer writes wait.
    pub fn merge_if_due(&mut self) -> usize {
        match self.merges_at {
            Some(merges_at) if self.writes >= merges_at => {
                let merged = self.merge();
                self.merges_at = Some(MERGES_AT.max(2 * self.writes));
                merged
            }
            Some(_) | None => 0,
        }
    }

    /// Merges the waiting writes of each row, between each two jobs. Returns how many fewer writes wait.
    pub fn merge(&mut self) -> usize {
        let before = self.writes;
        let operations = std::mem::take(&mut self.operations);
        let mut changes = operations.iter();
        let mut run = Vec::new();
        (self.writes, self.bytes) = (0, 0);
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Write(due) => run.push((due, changes.by_ref().take(due.operations).collect())),
                other => {
                    self.merge_run(&mut run);
                    self.waiting.push_back(other);
                }
            }
        }
        self.merge_run(&mut run);
        before - self.writes
    }

    /// Appends the remaining writes of a run, which share one commit from now on.
    fn merge_run(&mut self, run: &mut Vec<(Due, Vec<Change<'_>>)>) {
        keep_the_last(run);
        for (place, (due, changes)) in run.drain(..).enumerate() {
            let bytes =
                changes.iter().map(|change| change.key.len() + change.record().map_or(0, <[u8]>::len));
            let due = Due { operations: changes.len(), bytes: bytes.sum(), is_joined: place > 0, ..due };
            changes.iter().for_each(|change| self.operations.copy(change));
            self.writes += 1;
            self.bytes += due.bytes;
            self.waiting.push_back(Waiting::Write(due));
        }
    }
}

/// Keeps the last change of each row by each owner, and the writes that contain one. The last write of an owner always stays, since its
/// progress is measured by it.
fn keep_the_last(run: &mut Vec<(Due, Vec<Change<'_>>)>) {
    let mut rows: BTreeSet<(LedgerId, u64, Table, &[u8])> = BTreeSet::new();
    let mut owners = BTreeSet::new();
    for (Due { ledger, epoch, .. }, changes) in run.iter_mut().rev() {
        let is_last = |change: &Change<'_>| !rows.contains(&(*ledger, *epoch, change.table, change.key));
        // Two changes of one row in the same write both stay.
        let last: Vec<bool> = changes.iter().map(is_last).collect();
        rows.extend(changes.iter().map(|change| (*ledger, *epoch, change.table, change.key)));
        let mut last = last.into_iter();
        changes.retain(|_| last.next().unwrap_or(true));
    }
    let mut kept: Vec<bool> = run
        .iter()
        .rev()
        .map(|(due, changes)| {
            let is_first = owners.insert((due.ledger, due.epoch));
            is_first || !changes.is_empty()
        })
        .collect();
    run.retain(|_| kept.pop().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::messages::{Operation, Owner, Write};
    use super::super::operations::Operations;
    use super::super::queue::{BATCH_WRITES_MAX, Next};
    use super::*;
    use std::collections::BTreeMap;

    const OWNERS: [Owner; 2] = [Owner::new("registry"), Owner::new("processes")];
    const TABLES: [Table; 2] = [Table("registrations"), Table("processes")];

    /// The content of the disk: rows by owner and key.
    type Rows = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

    fn apply(rows: &mut Rows, operations: &Operations) {
        for change in operations.iter() {
            let key = (change.table.0, change.key.to_vec());
            match change.record() {
                Some(record) => drop(rows.insert(key, record.to_vec())),
                None => drop(rows.remove(&key)),
            }
        }
    }

    /// The write of one row, or of two, of one of two owners.
    fn write(number: u64, (owner, rows): &(usize, Vec<(u8, bool)>)) -> Write {
        let table = TABLES[*owner];
        let operation = |(key, is_kept): &(u8, bool)| {
            let key = vec![*key];
            match is_kept {
                true => Operation::Put { table, key, record: number.to_be_bytes().to_vec() },
                false => Operation::Delete { table, key, name: format!("row {number}") },
            }
        };
        Write {
            owner: OWNERS[*owner],
            epoch: 1,
            sequence: number,
            operations: rows.iter().map(operation).collect(),
        }
    }

    fn writes() -> impl Strategy<Value = Vec<(usize, Vec<(u8, bool)>)>> {
        let row = (0..4_u8, any::<bool>());
        proptest::collection::vec((0..2_usize, proptest::collection::vec(row, 0..3)), 0..24)
    }

    proptest! {
        #[test]
        fn whenever_the_power_goes_the_disk_holds_what_was_handed_over_up_to_some_write_shell_1a_p4(
            writes in writes(),
            merges_before in 0..24_usize,
            job_before in 0..24_usize,
            writes_max in 1..6_usize,
        ) {
            let mut queue: Queue<&str, &str> = Queue::default();
            let (mut plain, mut states) = (Rows::new(), vec![Rows::new()]);
            for (number, described) in writes.iter().enumerate() {
                if number == job_before {
                    queue.push_job("load");
                }
                if number == merges_before {
                    queue.merge();
                }
                let write = write(number as u64 + 1, described);
                let mut operations = Operations::default();
                write.operations.iter().for_each(|operation| operations.push(operation));
                apply(&mut plain, &operations);
                states.push(plain.clone());
                prop_assert!(queue.push(&write));
            }
            queue.merge();
            let changes: usize = queue.unwritten().count();
            // A write of two states of one row keeps both.
            prop_assert!(changes <= 32, "at most eight rows on either side of a job, not {changes} changes");
            let (mut disk, mut through) = (Rows::new(), BTreeMap::new());
            while let Some(next) = queue.next(writes_max) {
                let Next::Commit(batch) = next else { continue };
                apply(&mut disk, &batch.operations);
                prop_assert!(states.contains(&disk), "{disk:?} was never handed over");
                through.extend(batch.progress.iter().map(|one| (one.ledger, one.through)));
                queue.take_back(batch.operations);
            }
            prop_assert_eq!(disk, plain);
            prop_assert_eq!((queue.writes, queue.bytes, queue.unwritten().count()), (0, 0, 0));
            let last = |owner: usize| writes.iter().rposition(|(of, _)| *of == owner).map(|place| place as u64 + 1);
            let mut told: Vec<u64> = through.into_values().collect();
            told.sort_unstable();
            let mut expected: Vec<u64> = (0..2).filter_map(last).collect();
            expected.sort_unstable();
            prop_assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_plugin_that_is_lost_for_days_leaves_one_row_on_a_sick_disk_shell_1a() {
        let mut queue: Queue<&str, &str> = Queue::default();
        queue.set_sick(true);
        let mut merged = 0;
        for number in 1..=100_000 {
            queue.push(&write(number, &(0, vec![(1, true)])));
            merged += queue.merge_if_due();
        }
        assert!(queue.writes() < MERGES_AT && queue.writes() + merged == 100_000, "{}", queue.writes());
        queue.set_sick(false);
        assert_eq!((queue.merge_if_due(), queue.merges_at), (0, None), "a sound disk takes each write");
    }

    #[test]
    fn what_was_merged_shares_a_commit_however_large_it_is() {
        let mut queue: Queue<&str, &str> = Queue::default();
        for number in 1..=BATCH_WRITES_MAX as u64 + 1 {
            let operation = Operation::Put {
                table: TABLES[0],
                key: number.to_be_bytes().to_vec(),
                record: b"row".to_vec(),
            };
            let operations = vec![operation];
            queue.push(&Write { owner: OWNERS[0], epoch: 1, sequence: number, operations });
        }
        assert_eq!(queue.merge(), 0, "each is a row of its own");
        assert!(queue.operations.iter().all(|change| change.record() == Some(b"row")));
        let Some(Next::Commit(batch)) = queue.next(7) else { panic!("a commit is due") };
        assert_eq!(batch.writes, BATCH_WRITES_MAX + 1);
        assert!(queue.next(7).is_none());
    }
}
