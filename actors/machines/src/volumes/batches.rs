//! Messages that concern several volumes: each volume answers its part.

use super::errors::{ConfirmError, ReleaseError};
use super::messages::{AllocationEnded, ConfirmClaims, VolumeConfirmed, VolumeReleased, VolumesAnswer};
use super::purposes::{Purpose, Request};
use super::reasons::NoAnswer;
use super::state::Volumes;
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::{AllocationId, Timestamp};
use crate::volume::{self, ClaimsConfirmed, Released, VolumeAsk, VolumeKey};

/// A message whose parts are not all answered yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    /// The number of missing parts.
    missing: usize,
    rows: Rows,
}

/// The answers so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Rows {
    Released { allocation: AllocationId, rows: Vec<VolumeReleased> },
    Confirmed(Vec<VolumeConfirmed>),
}

impl Volumes {
    /// Releases every claim that an allocation may have.
    pub(super) fn allocation_ended(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &AllocationEnded,
        cx: &mut StepContext<Self>,
    ) {
        let AllocationEnded { allocation, observed, within } = asked.clone();
        let may_hold = self.entries.iter().filter(|(_, entry)| entry.may_be_claimed_by(&allocation));
        // This host no longer releases its claims to these volumes, and the answer reports that.
        let left = self.left.iter().filter(|left| left.may_be_claimed_by(&allocation));
        let left = left.map(|left| left.in_use.volume.clone());
        let volumes: Vec<_> = may_hold.map(|(key, _)| key.clone()).chain(left).collect();
        let rows = Rows::Released { allocation: allocation.clone(), rows: Vec::new() };
        self.batches.insert(id, Batch { missing: volumes.len(), rows });
        for volume in volumes {
            if let Some(result) = self.release_answer(&volume) {
                self.part_released(id, &volume, result, cx);
                continue;
            }
            let allocation = allocation.clone();
            let ask = VolumeAsk::Release(volume::Release { allocation, observed, within });
            let request = Request { purpose: Purpose::Ended(id), until: asked_at + within, ask };
            self.submit(&volume, request, cx);
        }
        self.answer_batch(id, cx);
    }

    /// Whether a release of a claim is not answered yet. It is asked again after a crash of the owner, and would release a newer claim
    /// under its workload (V8).
    pub(super) fn is_letting_go(&self, key: &VolumeKey, allocation: &AllocationId) -> bool {
        let ends =
            |batch: &Batch| matches!(&batch.rows, Rows::Released { allocation: of, .. } if of == allocation);
        let releases = |request: &Request| matches!(&request.ask, VolumeAsk::Release(of) if of.allocation == *allocation);
        self.batches.values().any(ends) || self.is_outstanding(key, releases)
    }

    /// Whether a confirmation without an answer may release the claim of this allocation: then the claim keeps no plugin that is about to
    /// stop (V13). A confirmation that is sent again after a crash of the volume's actor counts as well, until its answer.
    pub(super) fn may_be_over(&self, key: &VolumeKey, allocation: &AllocationId) -> bool {
        self.is_outstanding(key, |request| match &request.ask {
            VolumeAsk::ConfirmClaims(volume::ConfirmClaims { living, unclear }) => {
                !living.contains(allocation) && !unclear.contains(allocation)
            }
            _ => false,
        })
    }

    /// Confirms the claims of all volumes that are in use (V14).
    pub(super) fn confirm(&mut self, id: AskId, asked: &ConfirmClaims, cx: &mut StepContext<Self>) {
        let ConfirmClaims { living, unclear } = asked.clone();
        let confirmation = volume::ConfirmClaims { living: living.into(), unclear: unclear.into() };
        self.confirmation = Some(confirmation.clone());
        let used = self.entries.iter().filter(|(_, entry)| entry.is_in_use()).map(|(key, _)| key.clone());
        let left = self.left.iter().map(|left| left.in_use.volume.clone());
        let volumes: Vec<_> = used.chain(left).collect();
        self.batches.insert(id, Batch { missing: volumes.len(), rows: Rows::Confirmed(Vec::new()) });
        for volume in volumes {
            if self.stop.is_some() {
                let error = ConfirmError::Stopping { volume: volume.clone() };
                self.part_confirmed(id, &volume, Err(error), cx);
                continue;
            }
            self.replace_confirmation(&volume, cx);
            let ask = VolumeAsk::ConfirmClaims(confirmation.clone());
            let request = Request { purpose: Purpose::Confirmed(id), until: cx.now(), ask };
            self.submit(&volume, request, cx);
        }
        self.answer_batch(id, cx);
    }

    /// Answers the confirmation that waits for the next incarnation of the actor of a volume: only the latest one counts.
    fn replace_confirmation(&mut self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let is_one = |request: &Request| matches!(request.purpose, Purpose::Confirmed(_));
        let Some(place) = entry.queue.iter().position(is_one) else { return };
        let Some(former) = entry.queue.remove(place) else { return };
        let reason = "a later confirmation has replaced this one";
        self.deliver(key, former.purpose, Err(NoAnswer::silent(key, reason)), cx);
    }

    /// A volume has answered the end of an allocation. A volume that the allocation did not use is not named.
    pub(super) fn part_released(
        &mut self,
        id: AskId,
        volume: &VolumeKey,
        result: Result<Released, ReleaseError>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        batch.missing -= 1;
        let is_named = result.as_ref().map_or(true, |released| released.was_held);
        match &mut batch.rows {
            Rows::Released { rows, .. } if is_named => {
                rows.push(VolumeReleased { volume: volume.clone(), result });
            }
            Rows::Released { .. } | Rows::Confirmed(_) => {}
        }
        self.answer_batch(id, cx);
    }

    /// A volume has confirmed its claims. A volume without claims of an earlier run is not named.
    pub(super) fn part_confirmed(
        &mut self,
        id: AskId,
        volume: &VolumeKey,
        result: Result<ClaimsConfirmed, ConfirmError>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        batch.missing -= 1;
        let is_named = result.as_ref().map_or(true, |confirmed| *confirmed != ClaimsConfirmed::default());
        match &mut batch.rows {
            Rows::Confirmed(rows) if is_named => {
                rows.push(VolumeConfirmed { volume: volume.clone(), result })
            }
            Rows::Confirmed(_) | Rows::Released { .. } => {}
        }
        self.answer_batch(id, cx);
    }

    /// Answers when no part is missing, ordered by volume.
    fn answer_batch(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        if self.batches.get(&id).is_none_or(|batch| batch.missing > 0) {
            return;
        }
        match self.batches.remove(&id).map(|batch| batch.rows) {
            Some(Rows::Released { mut rows, .. }) => {
                rows.sort_by(|one, other| one.volume.cmp(&other.volume));
                cx.reply(id, VolumesAnswer::AllocationEnded(rows));
            }
            Some(Rows::Confirmed(mut rows)) => {
                rows.sort_by(|one, other| one.volume.cmp(&other.volume));
                cx.reply(id, VolumesAnswer::ConfirmClaims(rows));
            }
            None => {}
        }
    }
}
