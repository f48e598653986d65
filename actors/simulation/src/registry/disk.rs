//! A disk for registrations that waits, fails and is cut off on request, like the real persister.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use callboard_actors::registry::{Image, Registry, Stored, StoredChange};
use callboard_actors::shell::{Ticket, Written};
use callboard_actors::vocabulary::{RegistrationNumber, RunNumber, Timestamp};

use super::super::stand_in::{Disk, Settlement};
use super::super::writes::{Outcome, Writes};

/// The rows on the disk.
pub type Rows = BTreeMap<RegistrationNumber, Stored>;

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Hash, Default)]
pub struct RegistryDisk {
    rows: Rows,
    /// Above the numbers of all changes of this run.
    ceiling: u64,
    run: RunNumber,
    begun: Timestamp,
    writes: Writes<StoredChange>,
    /// Whether it may hold writes that were not published: a commit failed and took effect.
    is_ahead: bool,
    /// The changes handed over since they were last taken, if a database takes them.
    handed: Option<Vec<(Ticket, StoredChange)>>,
    /// The commits of that database with an unknown outcome.
    in_doubt: VecDeque<Vec<StoredChange>>,
}

impl RegistryDisk {
    /// An empty disk in its first run.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { run: RunNumber::new(1), begun: now, ..Self::default() }
    }

    /// The rows on it.
    #[must_use]
    pub const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The present run of the host.
    #[must_use]
    pub const fn run(&self) -> RunNumber {
        self.run
    }

    /// The start of the present run.
    #[must_use]
    pub const fn begun(&self) -> Timestamp {
        self.begun
    }

    /// The number of waiting writes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.writes.waiting()
    }

    /// Whether it may hold more than was published.
    #[must_use]
    pub const fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// Refuses one more of the next writes at once.
    pub const fn refuse_next(&mut self) {
        self.writes.refuse_next();
    }

    /// Settles this number of the waiting writes as one commit.
    pub fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let Self { rows, writes, .. } = self;
        let settled = writes.settle(count, outcome, |change| apply(rows, change))?;
        self.is_ahead |= outcome == Outcome::FailedButWritten;
        Some(settled)
    }

    /// It is paired with a database, which takes the changes handed over.
    pub(crate) fn stand_beside_a_database(&mut self) {
        self.handed = Some(Vec::new());
    }

    /// The changes handed over since the last call.
    pub(crate) fn take_handed(&mut self) -> Vec<(Ticket, StoredChange)> {
        self.handed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// This number of the waiting writes fail as one commit, and it is unknown whether they are on disk.
    pub(crate) fn doubt(&mut self, count: usize) -> Option<Settlement> {
        let mut doubtful = Vec::new();
        let failed = self.writes.settle(count, Outcome::FailedButWritten, |change| doubtful.push(change))?;
        self.in_doubt.push_back(doubtful);
        Some(failed)
    }

    /// The outcome of the oldest doubtful commit becomes known.
    pub(crate) fn resolve(&mut self, took_effect: bool) {
        let doubtful = self.in_doubt.pop_front().unwrap_or_default();
        self.is_ahead |= took_effect;
        doubtful.into_iter().filter(|_| took_effect).for_each(|change| apply(&mut self.rows, change));
    }

    /// The rows on it, with the waiting writes as if they were there.
    #[must_use]
    pub fn rows_with_waiting(&self) -> Rows {
        let mut rows = self.rows.clone();
        self.writes.changes().for_each(|change| apply(&mut rows, change.clone()));
        rows
    }

    /// The image from which a machine is built.
    #[must_use]
    pub fn read(&self, now: Timestamp) -> Image {
        let stored = self.rows_with_waiting().into_values().collect();
        Image::of(stored, self.ceiling, self.run, now.since(self.begun))
    }

    /// A snapshot was sent: its subscribers know everything that is on the disk.
    pub const fn was_told(&mut self) {
        self.is_ahead = false;
    }

    /// The host is gone, and this number of the waiting writes had reached the disk. The next run begins.
    pub fn begin_run(&mut self, reached: usize, now: Timestamp) {
        let Self { rows, writes, .. } = self;
        writes.begin_run(reached, |change| apply(rows, change));
        self.ceiling = 0;
        self.run = self.run.next();
        self.begun = now;
        self.is_ahead = false;
    }
}

impl Disk<Registry> for RegistryDisk {
    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        self.ceiling = self.ceiling.max(change.ceiling());
        let Some(handed) = &mut self.handed else { return self.writes.take(ticket, change) };
        let written = self.writes.take(ticket, change.clone());
        if !matches!(written, Written::Failed(_)) {
            handed.push((ticket, change));
        }
        written
    }
}

fn apply(rows: &mut Rows, change: StoredChange) {
    for number in &change.delete {
        rows.remove(number);
    }
    rows.extend(change.put.into_iter().map(|stored| (stored.number, stored)));
}

/// Whether the grace of restored registrations may have ended; used by the laws.
pub(super) fn has_had(grace: Duration, begun: Timestamp, now: Timestamp) -> bool {
    now.since(begun) >= grace
}
