//! Releases, confirmation after a restart, and force.

use super::messages::{
    ClaimError, ClaimsConfirmed, ConfirmClaims, ForceError, ForceRelease, Forced, Release, ReleaseError,
    Released, VolumeAnswer, VolumeNews,
};
use super::record::{Step, VolumeChange, Wish};
use super::state::{ReleaseWaiter, Volume, VolumeTimer};
use crate::kernel::{AskId, Effects};
use crate::vocabulary::{AllocationId, Moment, Timestamp};

impl Volume {
    /// Releases a claim, or asks again what became of that.
    pub(super) fn release(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &Release,
        effects: &mut Effects<Self>,
    ) {
        let was_held = self.claims.contains_key(&asked.allocation);
        self.let_go(&asked.allocation, effects);
        // A caller that asks again wants another try of what is held (C017).
        for tries in [&mut self.attach_tries, &mut self.stage_tries] {
            tries.is_held = false;
        }
        if self.waiting() >= self.config.options.waiting_max {
            let volume = self.record.spec.key.clone();
            let doing = "and too many callers wait".to_owned();
            effects.reply(id, VolumeAnswer::Release(Err(ReleaseError::Pending { volume, doing })));
            return;
        }
        self.releases.push(ReleaseWaiter { id, allocation: asked.allocation.clone(), was_held });
        effects.start_timer(VolumeTimer::Waiter(id), asked_at + asked.within);
    }

    /// No process uses the claim any more. The ledger says so before anything is undone.
    fn let_go(&mut self, allocation: &AllocationId, effects: &mut Effects<Self>) {
        let Some(claim) = self.claims.get_mut(allocation) else { return };
        claim.tries.is_held = false;
        if std::mem::replace(&mut claim.record.wish, Wish::Released) == Wish::Released {
            return;
        }
        (claim.is_provisional, claim.is_proven) = (false, false);
        let waiters = std::mem::take(&mut claim.waiters);
        if !claim.record.publish.is_down() {
            self.keep_claim(allocation, effects);
        }
        let volume = self.record.spec.key.clone();
        let error = ClaimError::Released { volume, allocation: allocation.clone() };
        for waiter in waiters {
            self.answer(waiter, VolumeAnswer::Claim(Err(error.clone())), effects);
        }
    }

    /// Answers the callers whose releases are confirmed.
    pub(super) fn answer_releases(&mut self, effects: &mut Effects<Self>) {
        let (is_down, claims) = (self.is_down(), &self.claims);
        let is_over = |waiter: &ReleaseWaiter| {
            !claims.contains_key(&waiter.allocation) && (is_down || !claims.is_empty())
        };
        let (over, waiting) = std::mem::take(&mut self.releases).into_iter().partition(is_over);
        self.releases = waiting;
        let others: Vec<_> = self.claims.keys().cloned().collect();
        let over: Vec<ReleaseWaiter> = over;
        for ReleaseWaiter { id, was_held, .. } in over {
            let released = Released { was_held, others: others.clone() };
            self.answer(id, VolumeAnswer::Release(Ok(released)), effects);
        }
    }

    /// Settles the claims of an earlier run (V14).
    pub(super) fn confirm(&mut self, asked: &ConfirmClaims, effects: &mut Effects<Self>) -> ClaimsConfirmed {
        let mut settled = ClaimsConfirmed::default();
        let provisional = self.in_order().into_iter().filter(|claim| claim.is_provisional);
        let provisional: Vec<_> = provisional.map(|claim| claim.record.allocation.clone()).collect();
        for id in provisional {
            if !asked.living.contains(&id) {
                self.let_go(&id, effects);
                settled.released.push(id);
                continue;
            }
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.is_provisional = false;
                claim.record.run = self.config.run;
            }
            self.keep_claim(&id, effects);
            settled.confirmed.push(id);
        }
        settled
    }

    /// Forgets what is released and not confirmed down (V9). A call in flight is still waited for (V2).
    pub(super) fn force(
        &mut self,
        moment: Moment,
        asked: &ForceRelease,
        effects: &mut Effects<Self>,
    ) -> Result<Forced, ForceError> {
        let volume = self.record.spec.key.clone();
        let is_meant = |id: &AllocationId| asked.allocation.as_ref().is_none_or(|meant| meant == id);
        let claims = self.in_order();
        let mut meant = claims.iter().filter(|claim| is_meant(&claim.record.allocation));
        if let Some(held) = meant.clone().find(|claim| !claim.is_released()) {
            return Err(ForceError::Held { volume, holder: held.record.allocation.clone() });
        }
        let mut left = Vec::new();
        let mut forgotten = Vec::new();
        for claim in meant.by_ref() {
            let (state, path) = (claim.record.publish.as_str(), claim.record.target_path.display());
            left.push(format!("publish of {} is {state}, at {path}", claim.record.allocation));
            forgotten.push(claim.record.allocation.clone());
        }
        let shared = if asked.allocation.is_none() { self.forget_shared() } else { Vec::new() };
        let row = (!shared.is_empty()).then(|| self.record.clone());
        left.extend(shared);
        if left.is_empty() {
            return Err(ForceError::Nothing { volume });
        }
        forgotten.iter().for_each(|id| {
            self.claims.remove(id);
        });
        // One write: a part of it would have the rest undone under what was not confirmed down.
        effects.persist(VolumeChange::Force { claims: forgotten, volume: row });
        self.answer_forced_deletion(&left, effects);
        let forced = Forced { volume, reason: asked.reason.clone(), at: moment.now, left };
        effects.publish(VolumeNews::Forced(forced.clone()));
        Ok(forced)
    }

    /// Forgets staging, attachment and what is to be deleted. What it gives are those that were not confirmed down.
    fn forget_shared(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        if let Some(intent) = self.record.stage.intent() {
            let (state, path) = (self.record.stage.as_str(), intent.args.staging_path.display());
            left.push(format!("stage is {state}, at {path}"));
        }
        if let Some(intent) = self.record.attach.intent() {
            let (state, node) = (self.record.attach.as_str(), &intent.args.node_id);
            left.push(format!("attach is {state}, to node {node}"));
        }
        if !left.is_empty() {
            (self.record.stage, self.record.attach) = (Step::Down, Step::Down);
            self.is_stage_stale = false;
        }
        left.extend(self.forget_existence());
        left
    }
}
