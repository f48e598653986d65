//! Which allocations may have a claim to a volume, as its owner knows it from what it has asked.

use std::collections::BTreeMap;

use crate::vocabulary::{AllocationId, Attempt};
use crate::volume::{self, VolumeAnswer, VolumeAsk, VolumeStatus, Wish};

/// The allocations that may have a claim, with the number of the last claim that was sent for each.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Claimants(BTreeMap<AllocationId, Attempt>);

impl Claimants {
    /// A claim is sent under this number. Returns whether the allocation had none so far.
    pub(super) fn asked(&mut self, allocation: &AllocationId, number: Attempt) -> bool {
        self.0.insert(allocation.clone(), number).is_none()
    }

    /// The actor has read its ledger. What it reports later says nothing new: this owner has sent every claim since, and the report of a
    /// claim may come after the answer that it is released.
    pub(super) fn read(&mut self, status: &VolumeStatus) {
        for claim in status.claims.iter().filter(|claim| claim.wish == Wish::Held) {
            self.0.entry(claim.allocation.clone()).or_default();
        }
    }

    /// Learns from the answer to what was sent under a number. It says nothing of claims that were sent later.
    pub(super) fn answered(
        &mut self,
        number: Attempt,
        ask: &VolumeAsk,
        answer: &VolumeAnswer,
        is_first_claim: bool,
    ) {
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
        self.0.retain(|id, claimed| *claimed > number || !is_meant(id));
    }

    pub(super) fn contains(&self, allocation: &AllocationId) -> bool {
        self.0.contains_key(allocation)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AllocationId> {
        self.0.keys()
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
