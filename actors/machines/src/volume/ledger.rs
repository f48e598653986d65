//! Writes the ledger of a volume, and delays the writes that can wait.
//!
//! A claim of a plugin that stages costs two writes: one before its first call, and one after its last. The intents of the later steps are
//! written together with that of the first one: they are *announced*. When a step has succeeded, the call of the next one is
//! made at once, and the outcomes are written together. A crash between them leaves all of them unknown, which is what their intents on
//! disk mean (V4).
//!
//! Only the answer of the attachment has the publish context. An announced intent has none: after a crash it counts as one with other
//! arguments, and anything it may have set up is undone before it is set up again (C138), unless the context is empty.
//!
//! While a step is under way, directories are made for the next one. Its intent stays on disk until that call has returned, even if the
//! claim ends: after a crash the undo of that step removes them.

use super::mark::Proof;
use super::operation::Operation;
use super::record::{Intent, PublishArgs, StageArgs, Step, VolumeChange};
use super::state::{Claim, Volume};
use crate::csi::Context;
use crate::kernel::StepContext;
use crate::vocabulary::AllocationId;

impl Volume {
    /// Writes the row of the volume as it is.
    pub(super) fn keep_volume(&mut self, cx: &mut StepContext<Self>) {
        let mut row = self.record.clone();
        match self.announced.take_if(|_| self.flight.is_none()) {
            // The claims are published from it.
            Some(_) => self.withdraw_publish(cx),
            None => row.stage = self.announced.as_deref().cloned().map_or(row.stage, Step::GoingUp),
        }
        (self.is_kept, self.is_behind) = (true, false);
        cx.persist(VolumeChange::KeepVolume(row.into()));
    }

    /// Writes the row of a volume that is attached next, with the later steps of the same claim.
    pub(super) fn keep_attaching(&mut self, cx: &mut StepContext<Self>) {
        let Some(staging) = self.staging_to_announce() else { return self.keep_volume(cx) };
        self.announced = None;
        self.record.stage = Step::GoingUp(staging.clone());
        self.keep_volume(cx);
        self.record.stage = Step::Down;
        self.announce_publish(&staging, cx);
        self.announced = Some(Box::new(staging));
    }

    /// Writes the attachment into the rows of the claims that lack it: they preserve it if the row of the volume is lost.
    pub(super) fn keep_attachment_of_claims(&mut self, cx: &mut StepContext<Self>) {
        let attachment = self.record.attach.intent();
        let lacks = |claim: &Claim| claim.record.attach.as_ref() != attachment;
        let lacking: Vec<_> =
            self.claims.iter().filter(|(_, claim)| lacks(claim)).map(|(id, _)| id.clone()).collect();
        lacking.iter().for_each(|id| self.keep_claim(id, cx));
    }

    /// The arguments of the staging after the attachment, as known by now.
    fn staging_to_announce(&self) -> Option<Intent<StageArgs>> {
        let (node, attaching) = (self.node()?, self.record.attach.intent()?);
        let usage = &self.asked_as(&self.first_wanted()?.record.usage);
        let fits =
            node.stages && self.record.stage.is_down() && usage.capability == attaching.args.capability;
        fits.then(|| {
            let args = self.config.layout.stage_args(&self.record.spec.key, usage, Context::new());
            Intent { args, generation: node.generation }
        })
    }

    /// It is attached. The ledger gets the outcome later if the staging is announced.
    pub(super) fn keep_attached(&mut self, cx: &mut StepContext<Self>) {
        if self.announced.is_some() {
            self.is_behind = true;
        } else {
            self.keep_volume(cx);
        }
    }

    /// The volume is staged with this intent next. The ledger has it already if it was announced.
    pub(super) fn keep_staging(&mut self, intent: &Intent<StageArgs>, cx: &mut StepContext<Self>) {
        self.record.stage = Step::GoingUp(intent.clone());
        if self.announced.take_if(|announced| announced.foretells(intent)).is_none() {
            self.keep_volume(cx);
            self.announce_publish(intent, cx);
        }
    }

    /// Writes the row of a claim as it is, with the steps of the volume below it.
    pub(super) fn keep_claim(&mut self, id: &AllocationId, cx: &mut StepContext<Self>) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.announced = None;
            claim.record.spec = self.record.spec.clone();
            claim.record.attach = self.record.attach.intent().cloned();
            cx.persist(VolumeChange::KeepClaim(claim.record.clone().into()));
        }
    }

    /// Sets the state of the publication of a claim, and writes it.
    pub(super) fn go(
        &mut self,
        id: &AllocationId,
        state: Step<PublishArgs, Proof>,
        cx: &mut StepContext<Self>,
    ) {
        self.goes(id, state);
        self.keep_claim(id, cx);
    }

    /// Sets the state of the publication of a claim, which the ledger has already.
    pub(super) fn goes(&mut self, id: &AllocationId, state: Step<PublishArgs, Proof>) {
        if let Some(claim) = self.claims.get_mut(id) {
            (claim.record.publish, claim.announced) = (state, None);
        }
    }

    /// The staging has succeeded, and the claim with the announced publication is published next: both are written at once.
    pub(super) fn keep_staged(&mut self, cx: &mut StepContext<Self>) {
        if self.claims.values().any(|claim| claim.announced.is_some()) {
            self.is_behind = true;
        } else {
            self.keep_volume(cx);
        }
    }

    /// Whether a call is in flight during which directories are made for the publication of this claim.
    pub(super) fn is_prepared(&self, claim: &Claim) -> bool {
        let is_staging = self.flight.as_ref().is_some_and(|flight| flight.what == Operation::Stage);
        is_staging && claim.announced.is_some()
    }

    /// Whether a call is in flight with which the outcomes of earlier steps are written.
    pub(super) fn is_setting_up(&self) -> bool {
        self.flight
            .as_ref()
            .is_some_and(|flight| matches!(flight.what, Operation::Stage | Operation::Publish(_)))
    }

    /// Writes the outcomes of attaching and staging that the ledger lacks.
    pub(super) fn catch_up(&mut self, cx: &mut StepContext<Self>) {
        if self.is_behind {
            self.keep_volume(cx);
        }
    }

    /// Whether a claim may be published next: nothing is published for it, nor left at its target.
    fn is_free(&self, claim: &Claim) -> bool {
        claim.record.publish.is_down() && !self.abandoned.contains_key(&claim.record.target_path)
    }

    /// Writes the arguments with which the first claim is published after this staging has succeeded.
    pub(super) fn announce_publish(&mut self, staging: &Intent<StageArgs>, cx: &mut StepContext<Self>) {
        let announced = self.first_wanted().filter(|claim| self.is_free(claim)).and_then(|claim| {
            let StageArgs { staging_path, publish_context, capability } = &staging.args;
            let usage = self.asked_as(&claim.record.usage);
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

    /// Writes that the announced publication is withdrawn: its staging is not there.
    pub(super) fn withdraw_publish(&mut self, cx: &mut StepContext<Self>) {
        let is_announced = |id: &&AllocationId| self.claims[*id].announced.is_some();
        let announced: Vec<_> = self.claims.keys().filter(is_announced).cloned().collect();
        announced.iter().for_each(|id| self.keep_claim(id, cx));
    }
}

/// Arguments with the publish context of the attachment.
pub trait OfAttachment: Clone + PartialEq {
    /// The context.
    fn publish_context(&mut self) -> &mut Context;
}

impl OfAttachment for StageArgs {
    fn publish_context(&mut self) -> &mut Context {
        &mut self.publish_context
    }
}

impl OfAttachment for PublishArgs {
    fn publish_context(&mut self) -> &mut Context {
        &mut self.publish_context
    }
}

impl<A: OfAttachment> Intent<A> {
    /// Whether this equals the other intent, or equals it except that the publish context was not known yet.
    pub(super) fn foretells(&self, other: &Self) -> bool {
        let (mut foretold, mut known) = (self.clone(), other.args.clone());
        if foretold.args.publish_context().is_empty() {
            std::mem::swap(foretold.args.publish_context(), known.publish_context());
        }
        foretold == *other
    }
}
