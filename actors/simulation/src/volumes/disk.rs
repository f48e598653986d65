//! The known volumes on a disk that settles and fails on request, and loses its last writes on request.

use std::sync::Arc;

use callboard_actors::shell::{Ticket, Written};
use callboard_machines::volumes::{KnownVolume, Volumes, VolumesChange, VolumesImage};

use super::super::stand_in::{Disk, Settlement};
use super::super::writes::{Outcome, Writes};

/// The rows of the owner; they outlive its hosts.
#[derive(Debug, Clone, Hash, Default)]
pub struct VolumesDisk {
    rows: VolumesImage,
    writes: Writes<VolumesChange>,
}

impl VolumesDisk {
    /// A disk with these volumes.
    pub(super) fn new(known: Vec<Arc<KnownVolume>>) -> Self {
        Self { rows: VolumesImage { known, ..VolumesImage::default() }, writes: Writes::default() }
    }

    /// The volumes that are known on disk.
    pub(super) fn known(&self) -> &[Arc<KnownVolume>] {
        &self.rows.known
    }

    /// The rows on disk.
    pub(super) const fn rows(&self) -> &VolumesImage {
        &self.rows
    }

    /// The number of waiting writes.
    pub(super) fn waiting(&self) -> u8 {
        u8::try_from(self.writes.waiting()).unwrap_or(u8::MAX)
    }

    /// Refuses one more of the next writes at once.
    pub(super) const fn refuse_next(&mut self) {
        self.writes.refuse_next();
    }

    /// Settles this number of the waiting writes as one commit.
    pub(super) fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let Self { rows, writes } = self;
        writes.settle(count, outcome, |change| apply(rows, &change))
    }

    /// The host is gone, and this number of the waiting writes had reached the disk.
    pub(super) fn begin_run(mut self, reached: usize) -> Self {
        let Self { rows, writes } = &mut self;
        writes.begin_run(reached, |change| apply(rows, &change));
        self
    }
}

fn apply(rows: &mut VolumesImage, change: &VolumesChange) {
    rows.apply(change);
    // Equal rows are one state.
    rows.known.sort_by(|one, two| one.spec.key.cmp(&two.spec.key));
}

impl Disk<Volumes> for VolumesDisk {
    fn write(&mut self, ticket: Ticket, change: VolumesChange) -> Written {
        self.writes.take(ticket, change)
    }
}
