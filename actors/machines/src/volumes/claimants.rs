//! Which allocations may have a claim to a volume, as its owner knows it from what it has asked.

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::{AllocationId, Attempt};
use crate::volume::{self, ClaimStatus, ForceScope, VolumeAnswer, VolumeAsk, VolumeStatus, Wish};

/// The allocations that may have a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Claimants {
    /// Each with the number of the last claim that was sent for it.
    by_id: BTreeMap<AllocationId, Attempt>,
    /// Those whose claims are over, as the actor has answered before it has reported what its ledger has: that report may be older.
    over: BTreeSet<AllocationId>,
    /// Whether all of them are, in the same way.
    are_all_over: bool,
}

impl Claimants {
    /// A claim is sent under this number. Returns whether the allocation had none so far.
    pub(super) fn asked(&mut self, allocation: &AllocationId, number: Attempt) -> bool {
        self.by_id.insert(allocation.clone(), number).is_none()
    }

    /// The actor has read its ledger. What it reports later says nothing new: this owner has sent every claim since, and the report of a
    /// claim may come after the answer that it is released.
    pub(super) fn read(&mut self, status: &VolumeStatus) {
        let over = std::mem::take(&mut self.over);
        if std::mem::take(&mut self.are_all_over) {
            return;
        }
        let is_held = |claim: &&ClaimStatus| claim.wish == Wish::Held && !over.contains(&claim.allocation);
        for claim in status.claims.iter().filter(is_held) {
            self.by_id.entry(claim.allocation.clone()).or_default();
        }
    }

    /// Learns from the answer to what was sent under a number. It says nothing of claims that were sent later. `is_unread`: the actor has not
    /// reported yet what its ledger has.
    pub(super) fn answered(
        &mut self,
        number: Attempt,
        (ask, answer): (&VolumeAsk, &VolumeAnswer),
        is_first_claim: bool,
        is_unread: bool,
    ) {
        if is_unread {
            self.over.extend(ended_by(ask, answer));
            self.are_all_over |= matches!(
                (ask, answer),
                (VolumeAsk::ForceRelease(force), VolumeAnswer::ForceRelease(Ok(_))) if force.scope == ForceScope::Everything
            );
        }
        match (ask, answer) {
            (VolumeAsk::Claim(claim), VolumeAnswer::Claim(Err(error)))
                if is_first_claim && is_refusal(error) =>
            {
                self.forget(number, |id| claim.allocation == *id);
            }
            (VolumeAsk::Release(release), VolumeAnswer::Release(Ok(_))) => {
                self.forget(number, |id| release.allocation == *id);
            }
            (VolumeAsk::ConfirmClaims(_), VolumeAnswer::ConfirmClaims(settled)) => {
                self.forget(number, |id| settled.released.contains(id));
            }
            (VolumeAsk::ForceRelease(force), VolumeAnswer::ForceRelease(Ok(_))) => {
                self.forget(number, |id| force.is_for(id));
            }
            _ => {}
        }
    }

    fn forget(&mut self, number: Attempt, is_meant: impl Fn(&AllocationId) -> bool) {
        self.by_id.retain(|id, claimed| *claimed > number || !is_meant(id));
    }

    pub(super) fn contains(&self, allocation: &AllocationId) -> bool {
        self.by_id.contains_key(allocation)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AllocationId> {
        self.by_id.keys()
    }
}

/// Whose claims are over by this answer.
fn ended_by(ask: &VolumeAsk, answer: &VolumeAnswer) -> Vec<AllocationId> {
    match (ask, answer) {
        (VolumeAsk::Release(release), VolumeAnswer::Release(Ok(_))) => vec![release.allocation.clone()],
        (_, VolumeAnswer::ConfirmClaims(settled)) => settled.released.clone(),
        (VolumeAsk::ForceRelease(force), VolumeAnswer::ForceRelease(Ok(_))) => match &force.scope {
            ForceScope::Claim(allocation) => vec![allocation.clone()],
            ForceScope::Everything | ForceScope::Orders => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether a claim was refused, so that it was never held.
const fn is_refusal(error: &volume::ClaimError) -> bool {
    match error {
        volume::ClaimError::Held { .. }
        | volume::ClaimError::Leaving { .. }
        | volume::ClaimError::OtherUsage { .. }
        | volume::ClaimError::Invalid { .. }
        | volume::ClaimError::NotThere { .. }
        | volume::ClaimError::Full { .. } => true,
        volume::ClaimError::Pending { .. }
        | volume::ClaimError::Unproven { .. }
        | volume::ClaimError::Failed { .. }
        | volume::ClaimError::Released { .. }
        | volume::ClaimError::Stopping { .. } => false,
    }
}
