//! The ledger of a volume on a disk that settles, fails and is cut off on request.

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
    /// What is on it.
    rows: VolumeImage,
    /// Whether a claim was on it since the volume was forgotten last.
    had_claims: bool,
    /// How many forced releases have reached it.
    forced: u32,
    /// Whether all of the volume was forgotten by force, until that is taken note of.
    is_forgotten: bool,
    /// Whose claims were forgotten by force, until that is taken note of.
    given_up: BTreeSet<AllocationId>,
    /// The targets of claims that were forgotten by force while a call for them was about to leave.
    leaving: BTreeSet<PathBuf>,
    /// Whose claims had rows that were damaged, until they claim again.
    damaged: BTreeSet<AllocationId>,
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

    /// Whether a call for this target was about to leave when its claim was forgotten by force. It leaves once.
    pub(super) fn takes_leave(&mut self, path: &Path) -> bool {
        self.leaving.remove(path)
    }

    /// Whether it has a row of a claim of this allocation.
    pub(super) fn has_claim(&self, allocation: &AllocationId) -> bool {
        self.rows.claims.iter().any(|claim| claim.allocation == *allocation)
    }

    /// Whether its claims tell what the row of the volume does. Of a volume without claims nothing is known when that row is damaged.
    pub(super) fn can_be_told_of_its_claims(&self) -> bool {
        self.rows.volume.is_some() && !self.rows.claims.is_empty()
    }

    /// Whether a claim of this allocation had a row that was damaged, and it did not claim again.
    pub(super) fn is_damaged(&self, allocation: &AllocationId) -> bool {
        self.damaged.contains(allocation)
    }

    /// All waiting writes have reached it, and then the row of this claim is damaged, or that of the volume.
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

    /// Whether the claim of this allocation was forgotten by force since that was asked last.
    pub(super) fn is_given_up(&self, allocation: &AllocationId) -> bool {
        self.given_up.contains(allocation)
    }

    /// Whose claims were forgotten by force since this was asked last.
    pub(super) fn take_given_up(&mut self) -> BTreeSet<AllocationId> {
        std::mem::take(&mut self.given_up)
    }

    /// Whether all of the volume was forgotten by force since this was asked last.
    pub(super) fn takes_forced(&mut self) -> bool {
        std::mem::take(&mut self.is_forgotten)
    }

    /// One more of the next writes is refused at once.
    pub(crate) const fn refuse_next(&mut self) {
        self.writes.refuse_next();
    }

    /// Settles so many of the waiting writes as one commit.
    pub(super) fn settle(&mut self, count: usize, outcome: Outcome) -> Option<Settlement> {
        let mut writes = std::mem::take(&mut self.writes);
        let settled = writes.settle(count, outcome, |change| self.apply(&change));
        self.writes = writes;
        settled
    }

    /// The host is gone, and so many of the waiting writes had reached the disk.
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
                // A write of which it is said that it failed is handed over again, and may be there.
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
