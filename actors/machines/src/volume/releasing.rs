//! Handles releases, confirmation after a restart, and force.

use super::abandoned::Target;
use super::existence::Existence;
use super::force::{Abandoned, ForceError, ForceRelease, Forced};
use super::messages::{
    ClaimError, ClaimsConfirmed, ConfirmClaims, Release, ReleaseError, Released, VolumeAnswer,
};
use super::news::VolumeNews;
use super::operation::Operation;
use super::outcome::VolumeCall;
use super::record::{Audit, Desired, Step, VolumeChange};
use super::returning::named;
use super::state::{Claim, ReleaseWaiter, Volume, VolumeTimer};
use crate::kernel::{AskId, CallKey, StepContext};
use crate::vocabulary::{AllocationId, Timestamp};

/// The claims and steps that are forgotten by force.
#[derive(Default)]
struct Forgotten {
    claims: Vec<AllocationId>,
    orders: Vec<u64>,
    /// Whether the steps that the claims share are forgotten.
    is_shared: bool,
    /// The targets of claims whose shared steps are kept.
    abandoned: Vec<Abandoned>,
}

impl Volume {
    /// Releases a claim, or waits for the result of a release.
    pub(super) fn release(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &Release,
        cx: &mut StepContext<Self>,
    ) {
        let has_left = self.abandoned.values().any(|target| target.record.allocation == asked.allocation);
        let was_held = has_left || self.holders().contains(&asked.allocation);
        self.let_go(&asked.allocation, cx);
        self.let_go_lost(asked_at, &asked.allocation, cx);
        self.let_go_abandoned(&asked.allocation, cx);
        // A caller that asks again wants another try (C017).
        self.abandoned.values_mut().for_each(Target::again);
        let policy = self.config.options.backoff;
        for tries in [&mut self.attach_tries, &mut self.stage_tries] {
            tries.undo_again(&policy, cx.now());
        }
        if self.waiting() >= self.config.options.waiting_max {
            let volume = self.record.spec.key.clone();
            let doing = "and too many callers wait".to_owned();
            cx.reply(id, VolumeAnswer::Release(Err(ReleaseError::Pending { volume, doing })));
            return;
        }
        self.releases.push(ReleaseWaiter { id, allocation: asked.allocation.clone(), was_held });
        cx.start_timer(VolumeTimer::Waiter(id), asked_at + asked.within);
    }

    /// No process uses the claim. That is written before anything is undone.
    fn let_go(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(claim) = self.claims.get_mut(allocation) else { return };
        claim.tries.undo_again(&self.config.options.backoff, cx.now());
        if std::mem::replace(&mut claim.record.desired, Desired::Released) == Desired::Released {
            return;
        }
        (claim.is_provisional, claim.is_proven) = (false, false);
        let waiters = std::mem::take(&mut claim.waiters);
        if !claim.record.publish.is_down() {
            self.keep_claim(allocation, cx);
        }
        let volume = self.record.spec.key.clone();
        let error = ClaimError::Released { volume, allocation: allocation.clone() };
        for waiter in waiters {
            self.answer(waiter, VolumeAnswer::Claim(Err(error.clone())), cx);
        }
    }

    /// No process uses a claim with a damaged row. It may be published at any of its targets, where that is undone.
    fn let_go_lost(&mut self, at: Timestamp, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        if !self.lost.remove(allocation) {
            return;
        }
        let reason = format!("allocation {allocation} was released, and the record of its claim is damaged");
        let left = vec![self.left_of_lost(allocation)];
        let forced = Forced { volume: self.record.spec.key.clone(), reason, at, left };
        if !self.is_kept {
            // Its own row is damaged as well, and the rows of its targets do not name their volume.
            self.keep_volume(cx);
        }
        let abandoned = self.targets_of_lost(allocation, true);
        let claims = vec![allocation.clone()];
        self.forget_audited(Forgotten { claims, abandoned, ..Forgotten::default() }, forced, cx);
    }

    fn left_of_lost(&self, allocation: &AllocationId) -> String {
        let below = self.config.layout.targets(&self.record.spec.key, allocation);
        format!("publish of {allocation} is unknown, below {}", below.display())
    }

    /// All allocations that have claims: in the order in which the claims were made, then those whose rows were damaged.
    pub(super) fn holders(&self) -> Vec<AllocationId> {
        let claims = self.in_order().into_iter().map(|claim| &claim.record.allocation);
        claims.chain(&self.lost).cloned().collect()
    }

    /// Answers the callers whose releases are confirmed: for a claim that was given up by force, only after it is undone.
    pub(super) fn answer_releases(&mut self, cx: &mut StepContext<Self>) {
        let (is_down, mut others) = (self.is_down(), self.holders());
        others.sort();
        let abandoned = self.abandoned.values().map(|target| &target.record.allocation);
        let open: Vec<AllocationId> = others.iter().chain(abandoned).cloned().collect();
        let is_over =
            |waiter: &ReleaseWaiter| !open.contains(&waiter.allocation) && (is_down || !others.is_empty());
        let has_orders = self.has_open_orders();
        let released = |was_held| Ok(Released { was_held, others: others.clone(), has_orders });
        self.answer_those(is_over, released, cx);
    }

    /// An undo was refused permanently: answers the callers that would never get a result.
    pub(super) fn refuse_releases(&mut self, what: &Operation, reason: &str, cx: &mut StepContext<Self>) {
        let is_meant = |waiter: &ReleaseWaiter| match what {
            Operation::Unpublish(id) => waiter.allocation == *id,
            // A step that the claims shared: every caller waits for it.
            _ => true,
        };
        let (volume, reason) = (self.record.spec.key.clone(), named(what, reason));
        let refused = |_| Err(ReleaseError::Refused { volume: volume.clone(), reason: reason.clone() });
        self.answer_those(is_meant, refused, cx);
    }

    /// Answers these callers that wait for a release, with whether there was a claim to release.
    fn answer_those(
        &mut self,
        is_meant: impl Fn(&ReleaseWaiter) -> bool,
        answer: impl Fn(bool) -> Result<Released, ReleaseError>,
        cx: &mut StepContext<Self>,
    ) {
        let waiters = std::mem::take(&mut self.releases).into_iter();
        let (meant, others): (Vec<ReleaseWaiter>, Vec<_>) = waiters.partition(is_meant);
        self.releases = others;
        for ReleaseWaiter { id, was_held, .. } in meant {
            self.answer(id, VolumeAnswer::Release(answer(was_held)), cx);
        }
    }

    /// Settles the claims of an earlier run (V14).
    pub(super) fn confirm(&mut self, asked: &ConfirmClaims, cx: &mut StepContext<Self>) -> ClaimsConfirmed {
        let mut settled = ClaimsConfirmed::default();
        let provisional = self.in_order().into_iter().filter(|claim| claim.is_provisional);
        let provisional = provisional.map(|claim| claim.record.allocation.clone());
        let clear: Vec<_> = provisional.filter(|id| !asked.unclear.contains(id)).collect();
        for id in clear {
            if !asked.living.contains(&id) {
                self.let_go(&id, cx);
                settled.released.push(id);
                continue;
            }
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.is_provisional = false;
                claim.record.run = self.config.run;
            }
            self.keep_claim(&id, cx);
            settled.confirmed.push(id);
        }
        // The answer waits for these writes: the host does not confirm again.
        self.forget_released(cx);
        settled
    }

    /// Writes the row of the volume once more as it is, if something can be forced.
    pub(super) fn prepare_force(
        &mut self,
        asked: &ForceRelease,
        cx: &mut StepContext<Self>,
    ) -> Result<(), ForceError> {
        self.admit_force(asked)?;
        self.keep_volume(cx);
        Ok(())
    }

    /// Force neither replaces the end of an allocation's processes (V8), nor forgets anything that does not wait to be undone.
    fn admit_force(&self, asked: &ForceRelease) -> Result<(), ForceError> {
        let volume = self.record.spec.key.clone();
        let claims = self.in_order();
        let mut meant = claims.iter().filter(|claim| asked.is_for(&claim.record.allocation));
        if let Some(held) = meant.clone().find(|claim| !claim.is_released()) {
            return Err(ForceError::Held { volume, holder: held.record.allocation.clone() });
        }
        let is_shared_left = || {
            let is_deleted = |existence: &Existence| existence.desired == Desired::Released;
            let is_deleted = self.record.existence.as_ref().is_some_and(is_deleted);
            !self.is_shared_down() || !self.abandoned.is_empty() || is_deleted
        };
        let is_left = meant.any(|claim| !claim.record.publish.is_down())
            || self.lost.iter().any(|lost| asked.is_for(lost));
        let is_rest_left =
            asked.is_for_shared() && is_shared_left() || asked.is_for_orders() && self.has_open_orders();
        if is_left || is_rest_left {
            return Ok(());
        }
        let mut abandoned = self.abandoned.values().map(|target| &target.record);
        if let Some(target) = abandoned.find(|target| asked.is_for(&target.allocation)) {
            let path = target.path.clone();
            return Err(ForceError::Abandoned { volume, allocation: target.allocation.clone(), path });
        }
        Err(ForceError::Nothing { volume })
    }

    /// Forgets released claims and steps that are not confirmed down (V9). A call in flight is still awaited (V2).
    pub(super) fn force(
        &mut self,
        asked: &ForceRelease,
        cx: &mut StepContext<Self>,
    ) -> Result<Forced, ForceError> {
        self.admit_force(asked)?;
        let volume = self.record.spec.key.clone();
        let (mut left, mut forgotten) = (Vec::new(), Vec::new());
        let abandoned = self.abandoned_by(asked);
        // A claim that is down is forgotten in any case, as soon as no call makes directories for it (V5).
        let is_up = |claim: &&&Claim| !claim.record.publish.is_down();
        let claims = self.in_order();
        for claim in claims.iter().filter(is_up).filter(|claim| asked.is_for(&claim.record.allocation)) {
            let (state, path) = (claim.record.publish.as_str(), claim.record.target_path.display());
            left.push(format!("publish of {} is {state}, at {path}", claim.record.allocation));
            forgotten.push(claim.record.allocation.clone());
        }
        for lost in self.lost.iter().filter(|lost| asked.is_for(lost)) {
            left.push(self.left_of_lost(lost));
            forgotten.push(lost.clone());
        }
        let (orders, of_orders) =
            if asked.is_for_orders() { self.forget_orders() } else { Default::default() };
        let shared = if asked.is_for_shared() { self.forget_shared() } else { Vec::new() };
        let mut is_shared = !shared.is_empty();
        if asked.is_for_shared() {
            is_shared |= !self.abandoned.is_empty();
            left.extend(self.abandoned_words());
        }
        self.is_kept |= is_shared;
        left.extend(shared.into_iter().chain(of_orders));
        forgotten.iter().for_each(|id| {
            self.claims.remove(id);
            self.lost.remove(id);
        });
        let forced = Forced { volume, reason: asked.reason.clone(), at: cx.now(), left };
        let undone: Vec<_> = abandoned.iter().map(|target| target.allocation.clone()).collect();
        let forgotten = Forgotten { claims: forgotten, orders, is_shared, abandoned };
        self.forget_audited(forgotten, forced.clone(), cx);
        if asked.is_for_shared() {
            self.forget_targets(|_| true, cx);
        }
        // The undo of an abandoned target continues, so the callers of that release wait for it.
        let is_given_up =
            |waiter: &ReleaseWaiter| asked.is_for(&waiter.allocation) && !undone.contains(&waiter.allocation);
        let (volume, left) = (self.record.spec.key.clone(), forced.left.join("; "));
        let given_up = |_| Err(ReleaseError::Forced { volume: volume.clone(), left: left.clone() });
        self.answer_those(is_given_up, given_up, cx);
        Ok(forced)
    }

    /// Writes and publishes the forgotten state.
    fn forget_audited(&mut self, forgotten: Forgotten, forced: Forced, cx: &mut StepContext<Self>) {
        let Forgotten { claims, orders, is_shared, abandoned } = forgotten;
        let abandoned = abandoned.into_iter().map(|target| self.abandon(target)).collect();
        let number = self.audits.last().map_or(1, |audit| audit.number + 1);
        let audit = Audit { number, spec: self.record.spec.clone(), forced: forced.clone() };
        self.audits.push(audit.clone());
        let volume = is_shared.then(|| self.record.clone().into());
        // One write: with only a part of it, the rest would be undone under claims that are not confirmed down, or forgotten without an
        // audit.
        cx.persist(VolumeChange::Force { claims, volume, orders: orders.clone(), abandoned, audit });
        self.answer_forced_deletion(&forced.left, cx);
        self.answer_forced_orders(&orders, &forced.left, cx);
        cx.publish(VolumeNews::Forced(forced));
        self.await_audits(cx);
    }

    /// Publishes the audits that an earlier incarnation of the volume may not have published. An audit may be published twice, and none is
    /// lost.
    pub(super) fn publish_audits(&self, cx: &mut StepContext<Self>) {
        for audit in &self.audits {
            cx.publish(VolumeNews::Forced(audit.forced.clone()));
        }
        self.await_audits(cx);
    }

    /// The ledger keeps the audits until they are published.
    fn await_audits(&self, cx: &mut StepContext<Self>) {
        let Some(last) = self.audits.last() else { return };
        let call = VolumeCall::AwaitAudits(last.number);
        cx.call(CallKey::default(), self.config.options.look_deadline, call);
    }

    /// The audits up to this number are published: whatever the result of the call, it was sent after them.
    pub(super) fn audits_left(&mut self, through: u64, cx: &mut StepContext<Self>) {
        let (published, others) =
            std::mem::take(&mut self.audits).into_iter().partition(|audit| audit.number <= through);
        self.audits = others;
        let published: Vec<Audit> = published;
        cx.record(VolumeChange::ForgetAudits(published.iter().map(|audit| audit.number).collect()));
    }

    /// Forgets staging, attachment and a pending deletion. Returns those that were not confirmed down.
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
