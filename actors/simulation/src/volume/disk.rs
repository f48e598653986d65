//! The ledger of a volume on a disk that settles, fails and is cut off on request.

use callboard_actors::shell::{Ticket, Written};
use callboard_machines::volume::{Volume, VolumeChange, VolumeImage};

use super::super::stand_in::{Disk, Settlement};
use super::super::writes::{Outcome, Writes};

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct VolumeDisk {
    /// What is on it.
    rows: VolumeImage,
    /// Whether a claim was on it since the volume was forgotten last.
    had_claims: bool,
    /// How many forced releases have reached it.
    forced: u32,
    writes: Writes<VolumeChange>,
}

impl VolumeDisk {
    /// How many writes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.writes.waiting()
    }

    /// What is on disk.
    pub(super) const fn rows(&self) -> &VolumeImage {
        &self.rows
    }

    /// Whether a claim was on disk since the volume was forgotten last. It may have been released before a call for it has left.
    pub(super) const fn had_claims(&self) -> bool {
        self.had_claims
    }

    /// How many forced releases have reached it.
    pub(super) const fn forced(&self) -> u32 {
        self.forced
    }

    /// One more of the next writes is refused at once.
    pub(crate) const fn refuse_next(&mut self) {
        self.writes.refuse_next();
    }

    /// Settles so many of the waiting writes as one commit.
    pub(super) fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let Self { rows, had_claims, forced, writes } = self;
        writes.settle(count, outcome, |change| apply(rows, (had_claims, forced), &change))
    }

    /// The host is gone, and so many of the waiting writes had reached the disk.
    pub(super) fn begin_run(&mut self, reached: usize) {
        let Self { rows, had_claims, forced, writes } = self;
        writes.begin_run(reached, |change| apply(rows, (had_claims, forced), &change));
    }
}

fn apply(rows: &mut VolumeImage, (had_claims, forced): (&mut bool, &mut u32), change: &VolumeChange) {
    match change {
        VolumeChange::ForgetVolume => *had_claims = false,
        VolumeChange::KeepClaim(_) => *had_claims = true,
        VolumeChange::Force { .. } => *forced += 1,
        VolumeChange::KeepVolume(_)
        | VolumeChange::ForgetClaim(_)
        | VolumeChange::KeepOrder(_)
        | VolumeChange::ForgetOrder(_)
        | VolumeChange::ForgetAbandoned(_)
        | VolumeChange::ForgetAudits(_) => {}
    }
    rows.apply(change);
    // Equal rows are one state.
    rows.claims.sort_by(|one, two| one.allocation.cmp(&two.allocation));
}

impl Disk<Volume> for VolumeDisk {
    fn write(&mut self, ticket: Ticket, change: VolumeChange) -> Written {
        self.writes.take(ticket, change)
    }
}
