//! What a volume writes to its ledger, and what it does not write at once.
//!
//! A claim costs three writes, not four. The intent to publish is written together with that of the staging, since its arguments are known
//! by then: it is *announced*. When the staging has succeeded, the call that publishes is made at once, and its outcome is written together
//! with that of the staging. A crash between them leaves both unknown, which is what their intents on disk mean (V4).

use super::moves::Move;
use super::record::{Intent, Proof, PublishArgs, StageArgs, Step, VolumeChange};
use super::state::Volume;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

impl Volume {
    /// Writes the row of the volume.
    pub(super) fn keep_volume(&mut self, cx: &mut StepContext<Self>) {
        (self.is_kept, self.is_behind) = (true, false);
        cx.persist(VolumeChange::KeepVolume(self.record.clone().into()));
    }

    /// Writes the row of a claim as it is, with what the volume has below it.
    pub(super) fn keep_claim(&mut self, id: &AllocationId, cx: &mut StepContext<Self>) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.announced = None;
            claim.record.spec = self.record.spec.clone();
            claim.record.attach = self.record.attach.intent().cloned();
            cx.persist(VolumeChange::KeepClaim(claim.record.clone().into()));
        }
    }

    /// The publication of a claim is in this state from now on, and the ledger says so.
    pub(super) fn go(
        &mut self,
        id: &AllocationId,
        state: Step<PublishArgs, Proof>,
        cx: &mut StepContext<Self>,
    ) {
        self.goes(id, state);
        self.keep_claim(id, cx);
    }

    /// The publication of a claim is in this state from now on, as the ledger says already.
    pub(super) fn goes(&mut self, id: &AllocationId, state: Step<PublishArgs, Proof>) {
        if let Some(claim) = self.claims.get_mut(id) {
            (claim.record.publish, claim.announced) = (state, None);
        }
    }

    /// The staging has succeeded, and the claim whose publication is announced is published next: the ledger learns of both at once.
    pub(super) fn keep_staged(&mut self, cx: &mut StepContext<Self>) {
        if self.claims.values().any(|claim| claim.announced.is_some()) {
            self.is_behind = true;
        } else {
            self.keep_volume(cx);
        }
    }

    /// Whether the call is in flight with whose outcome that of the staging is written.
    pub(super) fn is_publishing(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| matches!(flight.what, Move::Publish(_)))
    }

    /// Writes what the ledger lacks of the staging.
    pub(super) fn catch_up(&mut self, cx: &mut StepContext<Self>) {
        if self.is_behind {
            self.keep_volume(cx);
        }
    }

    /// Writes with which arguments the first claim is published once this staging has succeeded.
    pub(super) fn announce_publish(&mut self, staging: &Intent<StageArgs>, cx: &mut StepContext<Self>) {
        let announced =
            self.first_wanted().filter(|claim| claim.record.publish.is_down()).and_then(|claim| {
                let StageArgs { staging_path, publish_context, capability } = &staging.args;
                let usage = claim.record.usage.clone();
                let args = PublishArgs {
                    target_path: claim.record.target_path.clone(),
                    staging_path: Some(staging_path.clone()),
                    publish_context: publish_context.clone(),
                    usage,
                };
                let fits = args.usage.capability == *capability && !self.is_expanded_offline();
                let intent = Intent { args, generation: staging.generation };
                fits.then(|| (claim.record.allocation.clone(), intent))
            });
        let Some((id, intent)) = announced else { return };
        if self.claims.get(&id).is_some_and(|claim| claim.announced.as_ref() == Some(&intent)) {
            return;
        }
        self.withdraw_publish(cx);
        self.go(&id, Step::GoingUp(intent.clone()), cx);
        self.goes(&id, Step::Down);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.announced = Some(intent);
        }
    }

    /// Writes that what was announced is not published: what it is published from is not there.
    pub(super) fn withdraw_publish(&mut self, cx: &mut StepContext<Self>) {
        let is_announced = |id: &&AllocationId| self.claims[*id].announced.is_some();
        let announced: Vec<_> = self.claims.keys().filter(is_announced).cloned().collect();
        announced.iter().for_each(|id| self.keep_claim(id, cx));
    }
}
