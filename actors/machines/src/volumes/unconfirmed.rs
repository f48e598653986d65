//! Remembers deletions and releases whose callers got the answer that they continue.

use super::purposes::{Purpose, Request};
use super::state::Volumes;
use crate::vocabulary::AllocationId;
use crate::volume::{self, Deleted, ForceScope, Released, VolumeAnswer, VolumeAsk, VolumeKey};

/// The maximum number of remembered ones.
const UNCONFIRMED_MAX: usize = 1_024;

impl Volumes {
    /// The answer for a caller that asks again after a deletion or release that continued meanwhile: that there was something. So an answer
    /// that there was nothing means another name.
    pub(super) fn confirmed_late(
        &mut self,
        key: &VolumeKey,
        request: &Request,
        answer: VolumeAnswer,
    ) -> VolumeAnswer {
        let of = match &request.ask {
            VolumeAsk::DeleteVolume(_) => (key.clone(), None),
            VolumeAsk::Release(release) => (key.clone(), Some(release.allocation.clone())),
            VolumeAsk::Claim(claim) => {
                self.unconfirmed.remove(&(key.clone(), Some(claim.allocation.clone())));
                return answer;
            }
            VolumeAsk::CreateVolume(_) => {
                self.unconfirmed.remove(&(key.clone(), None));
                return answer;
            }
            VolumeAsk::ForceRelease(force) => {
                self.forced(key, force, &answer);
                return answer;
            }
            VolumeAsk::PlaceOrder(_)
            | VolumeAsk::AllowDeletion(_)
            | VolumeAsk::Disown(_)
            | VolumeAsk::ConfirmClaims(_)
            | VolumeAsk::PrepareForce(_)
            | VolumeAsk::RouteChanged(_)
            | VolumeAsk::DescribeVolume(_) => return answer,
        };
        match answer {
            // The owner has asked again by itself: the first caller may ask again (C059).
            VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist: true }))
                if request.purpose == Purpose::Note =>
            {
                self.remember_unconfirmed(of);
                answer
            }
            VolumeAnswer::DeleteVolume(Ok(_)) if request.purpose == Purpose::Note => answer,
            VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist })) => {
                let did_exist = self.unconfirmed.remove(&of) || did_exist;
                VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist }))
            }
            VolumeAnswer::Release(Ok(released)) => {
                let was_held = self.unconfirmed.remove(&of) || released.was_held;
                VolumeAnswer::Release(Ok(Released { was_held, ..released }))
            }
            VolumeAnswer::DeleteVolume(Err(volume::DeleteError::Pending { .. })) => {
                self.remember_unconfirmed(of);
                answer
            }
            VolumeAnswer::Release(Err(
                volume::ReleaseError::Pending { .. } | volume::ReleaseError::Refused { .. },
            )) => {
                self.remember_unconfirmed(of);
                answer
            }
            other => other,
        }
    }

    /// Forgets those that no longer continue after they were given up by force: they will never be confirmed (V9).
    fn forced(&mut self, key: &VolumeKey, force: &volume::ForceRelease, answer: &VolumeAnswer) {
        if !matches!(answer, VolumeAnswer::ForceRelease(Ok(_))) {
            return;
        }
        let is_meant = |of: &Option<AllocationId>| match of {
            Some(allocation) => force.is_for(allocation),
            None => force.scope == ForceScope::Everything,
        };
        self.unconfirmed.retain(|(volume, of)| volume != key || !is_meant(of));
    }

    /// Remembers one that continues. An allocation that had no claim has none afterwards.
    fn remember_unconfirmed(&mut self, of: (VolumeKey, Option<AllocationId>)) {
        let entry = self.entries.get(&of.0);
        let is_held = |id: &AllocationId| {
            entry.is_some_and(|entry| entry.claimants.contains(id) || entry.shows_claim_of(id))
        };
        if self.unconfirmed.len() < UNCONFIRMED_MAX && of.1.as_ref().is_none_or(is_held) {
            self.unconfirmed.insert(of);
        }
    }
}
