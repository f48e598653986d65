//! Plans the temporary faults of the disk, and the delays that they cause.

use std::time::Duration;

use callboard_actors::persister::WRITE_DEADLINE;
use callboard_actors::vocabulary::Timestamp;

use super::super::disk::DiskTrouble;
use super::super::event::EventKind;
use super::super::faults::Fault;
use super::agenda::Planned;
use super::{Plan, micros};

/// The faults.
const WAYS: [(Fault, DiskTrouble); 4] = [
    (Fault::FullDisk, DiskTrouble::Full),
    (Fault::ReadOnlyDisk, DiskTrouble::ReadOnly),
    (Fault::SlowDisk, DiskTrouble::Slow),
    (Fault::HangingDisk, DiskTrouble::Hangs),
];
/// How rare each fault is: once in this many times that any fault happens.
const ONCE_IN: u64 = 30;
/// The longest duration of a fault, in microseconds.
const LONGEST: u64 = 15_000_000;
/// How long a disk that refuses is left alone, in microseconds.
const LEFT_ALONE: u64 = 100_000;

impl Plan {
    /// A fault of the disk begins, if it has none.
    pub(super) fn disk_breaks(&mut self, at: Timestamp) -> Option<EventKind> {
        if self.disk.is_some() {
            return None;
        }
        let (_, trouble) = WAYS.into_iter().find(|(fault, _)| self.does(*fault, ONCE_IN))?;
        let until = at + micros(1 + self.random.below(LONGEST));
        self.disk = Some((trouble, until));
        self.add(until, Planned::DiskSound);
        self.add(at + WRITE_DEADLINE, Planned::DiskLate);
        Some(EventKind::Disk(Some(trouble)))
    }

    pub(super) const fn disk_is_sound(&mut self) -> EventKind {
        self.disk = None;
        EventKind::Disk(None)
    }

    /// How much longer a commit takes than on a sound disk, in microseconds.
    pub(super) fn commit_waits(&mut self) -> u64 {
        match self.disk {
            None => 0,
            Some((DiskTrouble::Slow, _)) => self.random.below(2 * LONGEST / 5),
            Some(_) => LEFT_ALONE,
        }
    }

    /// The time at which a read returns that would return at this time on a sound disk.
    pub(super) fn read_at(&self, at: Timestamp) -> Timestamp {
        match self.disk {
            Some((DiskTrouble::Hangs, until)) => at.max(until + Duration::from_micros(1)),
            _ => at,
        }
    }
}
