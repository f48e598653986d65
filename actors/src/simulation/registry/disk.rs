//! A disk for registrations that waits, fails and is cut off when it is told to, in the way of the real persister.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::super::stand_in::{Books, Settlement};
use crate::registry::{Image, Registry, Stored, StoredChange};
use crate::shell::{Ticket, Written};
use crate::vocabulary::{RegistrationNumber, RunNumber, Timestamp};

/// What lies on the disk.
pub type Rows = BTreeMap<RegistrationNumber, Stored>;

/// How waiting writes settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// They are on disk.
    Written,
    /// They are not.
    Failed,
    /// The commit says that it failed, and yet they are on disk.
    FailedButWritten,
}

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Default)]
pub struct RegistryDisk {
    rows: Rows,
    ceiling: u64,
    run: RunNumber,
    begun: Timestamp,
    waiting: VecDeque<(Ticket, StoredChange)>,
    failed_epoch: Option<u64>,
    /// How many of the next writes are refused at once.
    refused: u32,
    /// Whether it may hold what nobody was told: a commit failed and took effect.
    is_ahead: bool,
}

impl RegistryDisk {
    /// An empty disk in its first run.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { run: RunNumber::new(1), begun: now, ..Self::default() }
    }

    /// What lies on it.
    #[must_use]
    pub const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The present run of the host.
    #[must_use]
    pub const fn run(&self) -> RunNumber {
        self.run
    }

    /// When it began.
    #[must_use]
    pub const fn begun(&self) -> Timestamp {
        self.begun
    }

    /// How many writes wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether it may hold more than anybody was told.
    #[must_use]
    pub const fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// One more of the next writes is refused at once.
    pub const fn refuse_next(&mut self) {
        self.refused += 1;
    }

    /// Settles so many of the waiting writes as one commit.
    pub fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let (first, _) = self.waiting.front()?;
        let (epoch, mut through) = (first.epoch, first.sequence);
        for _ in 0..count.max(1) {
            if self.waiting.front().is_none_or(|(ticket, _)| ticket.epoch != epoch) {
                break;
            }
            let Some((ticket, change)) = self.waiting.pop_front() else { break };
            through = ticket.sequence;
            if outcome != Outcome::Failed {
                self.apply(change);
            }
        }
        let is_written = outcome == Outcome::Written;
        if !is_written {
            self.failed_epoch = self.failed_epoch.max(Some(epoch));
            self.waiting.retain(|(ticket, _)| ticket.epoch > epoch);
            self.is_ahead |= outcome == Outcome::FailedButWritten;
        }
        Some(Settlement { epoch, through, is_written })
    }

    fn apply(&mut self, change: StoredChange) {
        for number in &change.delete {
            self.rows.remove(number);
        }
        self.rows.extend(change.put.into_iter().map(|stored| (stored.number, stored)));
        self.ceiling = self.ceiling.max(change.ceiling.unwrap_or(0));
    }

    /// What a machine is built from.
    #[must_use]
    pub fn read(&self, now: Timestamp) -> Image {
        Image {
            stored: self.rows.values().cloned().collect(),
            ceiling: self.ceiling,
            run: self.run,
            run_age: now.since(self.begun),
        }
    }

    /// A snapshot was told: whoever heard it knows everything that is on the disk.
    pub const fn was_told(&mut self) {
        self.is_ahead = false;
    }

    /// The host is gone, and so many of the waiting writes had reached the disk. The next run begins.
    pub fn begin_run(&mut self, reached: usize, now: Timestamp) {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().take(reached).for_each(|(_, change)| self.apply(change));
        self.run = self.run.next();
        self.begun = now;
        self.failed_epoch = None;
        self.refused = 0;
        self.is_ahead = false;
    }
}

impl Books<Registry> for RegistryDisk {
    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        if self.failed_epoch >= Some(ticket.epoch) {
            // Its owner is about to hear of it.
            return Written::Later;
        }
        if self.refused > 0 {
            self.refused -= 1;
            return Written::Failed("the disk is full at once".to_owned());
        }
        self.waiting.push_back((ticket, change));
        Written::Later
    }
}

/// How long the grace of what is restored lasts at least after a run began; used by the laws.
pub(super) fn has_had(grace: Duration, begun: Timestamp, now: Timestamp) -> bool {
    now.since(begun) >= grace
}
