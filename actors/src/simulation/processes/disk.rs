//! The records of processes on a disk that settles, fails and is cut off when it is told to.

use std::collections::{BTreeMap, VecDeque};

use super::super::stand_in::{Books, Settlement};
use crate::process::{ProcessName, ProcessRecord, ProcessTag};
use crate::processes::{Processes, ProcessesChange};
use crate::shell::{Ticket, Written};

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct ProcessesDisk {
    rows: BTreeMap<ProcessName, ProcessRecord>,
    waiting: VecDeque<(Ticket, ProcessesChange)>,
    failed_epoch: Option<u64>,
    /// The launches whose records went from the disk.
    retired: Vec<ProcessTag>,
}

impl ProcessesDisk {
    /// An earlier run of the host left a record.
    pub(super) fn leave(&mut self, record: ProcessRecord) {
        self.rows.insert(record.name.clone(), record);
    }

    /// How many writes wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What a machine is built from.
    pub(super) fn read(&self) -> Vec<ProcessRecord> {
        self.rows.values().cloned().collect()
    }

    /// Whether the record of this launch is on disk.
    pub(super) fn holds(&self, tag: ProcessTag) -> bool {
        self.rows.values().any(|record| record.tag == tag)
    }

    /// The launches whose records went since this was last asked.
    pub(super) fn take_retired(&mut self) -> Vec<ProcessTag> {
        std::mem::take(&mut self.retired)
    }

    /// Everything that waits is on disk, or nothing of it.
    pub(super) fn settle(&mut self, is_written: bool) -> Option<Settlement> {
        let (first, _) = self.waiting.front()?;
        let (epoch, mut through) = (first.epoch, first.sequence);
        while self.waiting.front().is_some_and(|(ticket, _)| ticket.epoch == epoch) {
            let Some((ticket, change)) = self.waiting.pop_front() else { break };
            through = ticket.sequence;
            if is_written {
                self.apply(change);
            }
        }
        if !is_written {
            self.failed_epoch = self.failed_epoch.max(Some(epoch));
        }
        Some(Settlement { epoch, through, is_written })
    }

    /// The host is gone, and so many of the waiting writes had reached the disk.
    pub(super) fn begin_run(&mut self, reached: usize) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().take(reached).for_each(|(_, change)| self.apply(change));
        self.failed_epoch = None;
    }

    fn apply(&mut self, change: ProcessesChange) {
        match change {
            ProcessesChange::Keep(records) => {
                for record in records {
                    let tag = record.tag;
                    let before = self.rows.insert(record.name.clone(), record);
                    self.retired.extend(before.map(|before| before.tag).filter(|before| *before != tag));
                }
            }
            ProcessesChange::Forget(name) => {
                self.retired.extend(self.rows.remove(&name).map(|record| record.tag));
            }
        }
    }
}

impl Books<Processes> for ProcessesDisk {
    fn write(&mut self, ticket: Ticket, change: ProcessesChange) -> Written {
        // After a failure its owner is about to hear of it.
        if self.failed_epoch < Some(ticket.epoch) {
            self.waiting.push_back((ticket, change));
        }
        Written::Later
    }
}
