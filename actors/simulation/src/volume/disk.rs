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
    /// Whose claims were forgotten by force, until that is taken note of.
    given_up: BTreeSet<AllocationId>,
    /// The targets of claims that were forgotten by force while a call for them was about to leave.
    leaving: BTreeSet<PathBuf>,
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

    /// Whose claims were forgotten by force since this was asked last.
    pub(super) fn take_given_up(&mut self) -> BTreeSet<AllocationId> {
        std::mem::take(&mut self.given_up)
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
            VolumeChange::KeepClaim(_) => self.had_claims = true,
            VolumeChange::Force { claims, .. } => {
                self.forced += 1;
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
