//! The records of processes on a disk that settles and fails on request, and loses its last writes on request.

use std::collections::BTreeMap;

use callboard_actors::process::{ProcessName, ProcessRecord, ProcessTag};
use callboard_actors::processes::{Processes, ProcessesChange};
use callboard_actors::shell::{Ticket, Written};

use super::super::stand_in::{Disk, Settlement};
use super::super::writes::{Outcome, Writes};

/// The furthest progress of the record of a launch on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It is to be launched.
    Intended,
    /// It was started, with the proof of its identity.
    Spawned,
    /// It was ready.
    Ready,
    /// The record is gone.
    Gone,
}

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct ProcessesDisk {
    rows: BTreeMap<ProcessName, ProcessRecord>,
    stages: BTreeMap<ProcessTag, Stage>,
    writes: Writes<ProcessesChange>,
    /// The launches whose records were removed from the disk.
    retired: Vec<ProcessTag>,
}

impl ProcessesDisk {
    /// An earlier run of the host left a record.
    pub(super) fn leave(&mut self, record: ProcessRecord) {
        self.keep(record);
    }

    /// The number of waiting writes.
    pub(super) fn waiting(&self) -> usize {
        self.writes.waiting()
    }

    /// The image from which a machine is built: the rows on disk, and the waiting writes as if they were there.
    pub(super) fn read(&mut self) -> Vec<ProcessRecord> {
        let mut rows = self.rows.clone();
        for change in self.writes.changes().cloned() {
            match change {
                ProcessesChange::Keep(records) => {
                    rows.extend(records.into_iter().map(|record| (record.name.clone(), record)));
                }
                ProcessesChange::Forget(name) => {
                    rows.remove(&name);
                }
            }
        }
        let on_disk = &self.rows;
        self.stages.retain(|tag, _| on_disk.values().any(|record| record.tag == *tag));
        rows.into_values().collect()
    }

    /// The records, by name.
    pub(super) fn records(&self) -> impl Iterator<Item = &ProcessRecord> {
        self.rows.values()
    }

    /// Whether the record of this launch is on disk.
    pub(super) fn holds(&self, tag: ProcessTag) -> bool {
        self.stages.get(&tag).is_some_and(|stage| *stage != Stage::Gone)
    }

    /// Whether the record of this launch has reached this stage on disk since its owner was built.
    pub(super) fn has_come(&self, tag: ProcessTag, stage: Stage) -> bool {
        self.stages.get(&tag).is_some_and(|reached| *reached >= stage)
    }

    /// The launches whose records were removed since the last call.
    pub(super) fn take_retired(&mut self) -> Vec<ProcessTag> {
        std::mem::take(&mut self.retired)
    }

    /// Refuses one more of the next writes at once.
    pub(super) const fn refuse_next(&mut self) {
        self.writes.refuse_next();
    }

    /// Settles this number of the waiting writes as one commit.
    pub(super) fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let mut on_disk = Vec::new();
        let settled = self.writes.settle(count, outcome, |change| on_disk.push(change));
        on_disk.into_iter().for_each(|change| self.apply(change));
        settled
    }

    /// The host is gone, and this number of the waiting writes had reached the disk.
    pub(super) fn begin_run(&mut self, reached: usize) {
        let mut on_disk = Vec::new();
        self.writes.begin_run(reached, |change| on_disk.push(change));
        on_disk.into_iter().for_each(|change| self.apply(change));
    }

    fn apply(&mut self, change: ProcessesChange) {
        match change {
            ProcessesChange::Keep(records) => records.into_iter().for_each(|record| self.keep(record)),
            ProcessesChange::Forget(name) => {
                let gone = self.rows.remove(&name).map(|record| record.tag);
                gone.into_iter().for_each(|tag| self.retire(tag));
            }
        }
    }

    fn keep(&mut self, record: ProcessRecord) {
        let (tag, stage) = (record.tag, stage_of(&record));
        self.stages.insert(tag, stage);
        let before = self.rows.insert(record.name.clone(), record).map(|before| before.tag);
        before.into_iter().filter(|before| *before != tag).for_each(|before| self.retire(before));
    }

    fn retire(&mut self, tag: ProcessTag) {
        self.stages.insert(tag, Stage::Gone);
        self.retired.push(tag);
    }
}

const fn stage_of(record: &ProcessRecord) -> Stage {
    match (&record.identity, record.is_ready) {
        (_, true) => Stage::Ready,
        (Some(_), false) => Stage::Spawned,
        (None, false) => Stage::Intended,
    }
}

impl Disk<Processes> for ProcessesDisk {
    fn write(&mut self, ticket: Ticket, change: ProcessesChange) -> Written {
        self.writes.take(ticket, change)
    }
}
