//! Tracks which allocations may have a claim to a volume, by the messages that its owner has sent.

use std::collections::{BTreeMap, BTreeSet};

use crate::vocabulary::{AllocationId, Attempt};
use crate::volume::{self, ClaimStatus, Desired, ForceScope, VolumeAnswer, VolumeAsk, VolumeStatus};

/// The allocations that may have a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Claimants {
    /// Each with the number of the last claim that was sent for it.
    by_id: BTreeMap<AllocationId, Attempt>,
    /// The claims that are over by answers of the actor before it has reported its ledger: that report may be older.
    over: Over,
}

/// The claims that are over.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Over {
    /// The claims of these allocations.
    Of(BTreeSet<AllocationId>),
    /// All of them.
    All,
}

impl Default for Over {
    fn default() -> Self {
        Self::Of(BTreeSet::new())
    }
}

impl Over {
    /// The claims that are over by this answer.
    fn by(ask: &VolumeAsk, answer: &VolumeAnswer) -> Self {
        match (ask, answer) {
            (VolumeAsk::Release(release), VolumeAnswer::Release(Ok(_))) => {
                Self::Of([release.allocation.clone()].into())
            }
            (VolumeAsk::ConfirmClaims(_), VolumeAnswer::ConfirmClaims(settled)) => {
                Self::Of(settled.released.iter().cloned().collect())
            }
            (VolumeAsk::ForceRelease(force), VolumeAnswer::ForceRelease(Ok(_))) => match &force.scope {
                ForceScope::Everything => Self::All,
                ForceScope::Claim(allocation) => Self::Of([allocation.clone()].into()),
                ForceScope::Orders => Self::default(),
            },
            _ => Self::default(),
        }
    }

    fn contains(&self, allocation: &AllocationId) -> bool {
        match self {
            Self::Of(allocations) => allocations.contains(allocation),
            Self::All => true,
        }
    }

    fn add(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::Of(allocations), Self::Of(more)) => allocations.extend(more),
            (Self::All, _) => {}
            (Self::Of(_), Self::All) => *self = Self::All,
        }
    }
}

impl Claimants {
    /// A claim is sent under this number. Returns whether the allocation had none so far.
    pub(super) fn asked(&mut self, allocation: &AllocationId, number: Attempt) -> bool {
        self.by_id.insert(allocation.clone(), number).is_none()
    }

    /// The actor has read its ledger. Its later reports add nothing: this owner has sent every claim since, and the report of a claim may
    /// arrive after the answer that the claim is released.
    pub(super) fn read(&mut self, status: &VolumeStatus) {
        let over = std::mem::take(&mut self.over);
        let is_held =
            |claim: &&ClaimStatus| claim.desired == Desired::Held && !over.contains(&claim.allocation);
        for claim in status.claims.iter().filter(is_held) {
            self.by_id.entry(claim.allocation.clone()).or_default();
        }
    }

    /// Learns from the answer to the message with this number. It proves nothing about claims that were sent later. `is_unread`: the actor
    /// has not reported its ledger yet.
    pub(super) fn answered(
        &mut self,
        number: Attempt,
        (ask, answer): (&VolumeAsk, &VolumeAnswer),
        is_first_claim: bool,
        is_unread: bool,
    ) {
        let over = match (ask, answer) {
            // It was never held, and the ledger has the same.
            (VolumeAsk::Claim(claim), VolumeAnswer::Claim(Err(error)))
                if is_first_claim && is_refusal(error) =>
            {
                return self.forget(number, |id| claim.allocation == *id);
            }
            _ => Over::by(ask, answer),
        };
        self.forget(number, |id| over.contains(id));
        if is_unread {
            self.over.add(over);
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

/// Whether a claim was refused, so that it was never held.
const fn is_refusal(error: &volume::ClaimError) -> bool {
    match error {
        volume::ClaimError::Held { .. }
        | volume::ClaimError::Abandoned { .. }
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
