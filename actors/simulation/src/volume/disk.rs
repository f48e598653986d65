//! The ledger of a volume on a disk that settles and fails on request, and loses its last writes on request.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use callboard_actors::shell::{Ticket, Written};
use callboard_actors::vocabulary::AllocationId;
use callboard_machines::volume::{ClaimRecord, Step, Volume, VolumeChange, VolumeImage};

use super::super::stand_in::{Disk, Settlement};
use super::super::writes::{Outcome, Writes};

/// The disk of one data directory; it outlives its hosts.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct VolumeDisk {
    /// The rows on it.
    rows: VolumeImage,
    /// Whether a claim was on it since the volume was forgotten last.
    had_claims: bool,
    /// The number of forced releases that have reached it.
    forced: u32,
    /// Whether the whole volume was forgotten by force and this was not consumed yet.
    is_forgotten: bool,
    /// The allocations whose claims were forgotten by force and were not consumed yet.
    given_up: BTreeSet<AllocationId>,
    /// The targets of claims that were forgotten by force while a call for them was about to leave.
    leaving: BTreeSet<PathBuf>,
    /// The allocations whose claims had a damaged row, until they claim again.
    damaged: BTreeSet<AllocationId>,
    writes: Writes<VolumeChange>,
}

impl VolumeDisk {
    /// The number of waiting writes.
    pub(crate) fn waiting(&self) -> usize {
        self.writes.waiting()
    }

    /// The rows on disk.
    pub(super) const fn rows(&self) -> &VolumeImage {
        &self.rows
    }

    /// Whether a claim was on disk since the volume was forgotten last. It may have been released before a call for it has left.
    pub(super) const fn had_claims(&self) -> bool {
        self.had_claims
    }

    /// The number of forced releases that have reached it.
    pub(super) const fn forced(&self) -> u32 {
        self.forced
    }

    /// Whether a call for this target was about to leave when its claim was forgotten by force. True once.
    pub(super) fn takes_leave(&mut self, path: &Path) -> bool {
        self.leaving.remove(path)
    }

    /// Whether it has a row of a claim of this allocation.
    pub(super) fn has_claim(&self, allocation: &AllocationId) -> bool {
        self.rows.claims.iter().any(|claim| claim.allocation == *allocation)
    }

    /// Whether its claims hold the data of the volume's row. Without claims nothing is known of a volume whose row is damaged.
    pub(super) fn can_be_told_of_its_claims(&self) -> bool {
        self.rows.volume.is_some() && !self.rows.claims.is_empty()
    }

    /// Whether a claim of this allocation had a row that was damaged, and it did not claim again.
    pub(super) fn is_damaged(&self, allocation: &AllocationId) -> bool {
        self.damaged.contains(allocation)
    }

    /// All waiting writes reach the disk, and then the row of this claim, or that of the volume, is damaged.
    pub(super) fn damage(&mut self, claim: Option<AllocationId>) {
        self.begin_run(usize::MAX);
        let Some(allocation) = claim else {
            self.rows.volume.take_if(|_| !self.rows.claims.is_empty());
            return;
        };
        if self.has_claim(&allocation) {
            self.rows.claims.retain(|claim| claim.allocation != allocation);
            self.rows.lost.insert(allocation.clone());
            self.damaged.insert(allocation);
        }
    }

    /// Whether the claim of this allocation was forgotten by force since the last `take_given_up`.
    pub(super) fn is_given_up(&self, allocation: &AllocationId) -> bool {
        self.given_up.contains(allocation)
    }

    /// The allocations whose claims were forgotten by force since the last call.
    pub(super) fn take_given_up(&mut self) -> BTreeSet<AllocationId> {
        std::mem::take(&mut self.given_up)
    }

    /// Whether the whole volume was forgotten by force since the last call.
    pub(super) fn takes_forced(&mut self) -> bool {
        std::mem::take(&mut self.is_forgotten)
    }

    /// Refuses one more of the next writes at once.
    pub(crate) const fn refuse_next(&mut self) {
        self.writes.refuse_next();
    }

    /// Settles this number of the waiting writes as one commit.
    pub(super) fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let mut writes = std::mem::take(&mut self.writes);
        let settled = writes.settle(count, outcome, |change| self.apply(&change));
        self.writes = writes;
        settled
    }

    /// The host is gone, and this number of the waiting writes had reached the disk.
    pub(super) fn begin_run(&mut self, reached: usize) {
        let mut writes = std::mem::take(&mut self.writes);
        self.leaving.clear();
        writes.begin_run(reached, |change| self.apply(&change));
        self.writes = writes;
    }

    fn apply(&mut self, change: &VolumeChange) {
        match change {
            VolumeChange::ForgetVolume => self.had_claims = false,
            VolumeChange::KeepClaim(row) => {
                self.had_claims = true;
                self.damaged.remove(&row.allocation);
            }
            VolumeChange::Force { claims, volume, audit, .. } => {
                // A write that was reported as failed is retried, and may already be there.
                self.forced += u32::from(!self.rows.audits.iter().any(|kept| kept.number == audit.number));
                self.is_forgotten |= volume.is_some();
                self.given_up.extend(claims.iter().cloned());
                let forgotten = self.rows.claims.iter().filter(|claim| claims.contains(&claim.allocation));
                let is_leaving =
                    |claim: &&ClaimRecord| matches!(claim.publish, Step::GoingUp(_) | Step::GoingDown(_));
                self.leaving.extend(forgotten.filter(is_leaving).map(|claim| claim.target_path.clone()));
            }
            VolumeChange::KeepVolume(_)
            | VolumeChange::ForgetClaim(_)
            | VolumeChange::KeepOrder(_)
            | VolumeChange::ForgetOrder(_)
            | VolumeChange::KeepAbandoned(_)
            | VolumeChange::ForgetAbandoned(_)
            | VolumeChange::ForgetAudits(_) => {}
        }
        self.rows.apply(change);
        // Equal rows are one state.
        self.rows.claims.sort_by(|one, two| one.allocation.cmp(&two.allocation));
    }
}

impl Disk<Volume> for VolumeDisk {
    fn write(&mut self, ticket: Ticket, change: VolumeChange) -> Written {
        self.writes.take(ticket, change)
    }
}
