//! Handles claims: admission (V12), and answers to their callers.

use super::existence::Existence;
use super::messages::{Claim as ClaimVolume, ClaimError, Claimed, VolumeAnswer};
use super::record::{ClaimRecord, Desired, Step, Usage, VolumeChange};
use super::state::{Claim, Lifecycle, Volume, VolumeTimer};
use crate::csi::{AccessMode, AccessType, VolumeCapability};
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::{AllocationId, Timestamp};

impl Volume {
    /// Accepts a claim, or repeats one.
    pub(super) fn claim(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &ClaimVolume,
        cx: &mut StepContext<Self>,
    ) {
        if let Err(error) = self.admit(asked) {
            cx.reply(id, VolumeAnswer::Claim(Err(error)));
            return;
        }
        // Every reused step is looked at once more (V7).
        self.is_stage_proven = false;
        let run = self.config.run;
        if let Some(claim) = self.claims.get_mut(&asked.allocation) {
            let is_confirmed = std::mem::replace(&mut claim.is_provisional, false);
            claim.record.run = run;
            claim.is_proven = false;
            claim.tries.is_held = false;
            claim.waiters.push(id);
            if is_confirmed {
                self.keep_claim(&asked.allocation, cx);
            }
        } else {
            let mut claim = Claim::new(self.new_claim(asked), false);
            claim.waiters.push(id);
            self.claims.insert(asked.allocation.clone(), Box::new(claim));
            // Before any call is made for it, the claim is on disk (V1).
            if !self.is_kept {
                self.keep_volume(cx);
            }
            self.keep_claim(&asked.allocation, cx);
        }
        cx.start_timer(VolumeTimer::Waiter(id), asked_at + asked.within);
    }

    /// Whether an allocation holds a claim that is confirmed.
    pub(super) fn is_held_by(&self, allocation: &AllocationId) -> bool {
        self.claims.get(allocation).is_some_and(|claim| claim.is_wanted())
    }

    fn new_claim(&self, asked: &ClaimVolume) -> ClaimRecord {
        let key = &self.record.spec.key;
        ClaimRecord {
            spec: self.record.spec.clone(),
            allocation: asked.allocation.clone(),
            usage: asked.usage.clone(),
            target_path: self.config.layout.target(key, &asked.allocation, &asked.usage),
            desired: Desired::Held,
            run: self.config.run,
            number: self.claims.values().map(|claim| claim.record.number + 1).max().unwrap_or(1),
            attach: None,
            publish: Step::Down,
        }
    }

    /// Whether a claim can be held beside the others, and by this plugin (V12).
    fn admit(&self, asked: &ClaimVolume) -> Result<(), ClaimError> {
        let volume = self.record.spec.key.clone();
        if self.stopping.is_some() {
            return Err(ClaimError::Stopping { volume });
        }
        let waiting = self.waiting();
        let is_known = self.claims.contains_key(&asked.allocation);
        let is_full = !is_known && self.claims.len() >= self.config.options.claims_max;
        if is_full || waiting >= self.config.options.waiting_max {
            return Err(ClaimError::Full { volume, held: self.claims.len(), waiting });
        }
        if let Some(state) = self.exists().why_unclaimed() {
            let is_transient = self.exists().is_changing();
            return Err(ClaimError::NotThere { volume, state, is_transient });
        }
        self.check_usage(&asked.usage)?;
        if let Some(lost) = self.lost.first().filter(|_| !is_known) {
            let (holder, reason) = (lost.clone(), "the record of that claim is damaged");
            return Err(ClaimError::Held { volume, holder, is_releasing: false, reason });
        }
        if self.is_leaving(&asked.allocation) {
            return Err(ClaimError::Leaving { volume, allocation: asked.allocation.clone() });
        }
        for other in self.in_order() {
            let is_releasing = other.is_released();
            let is_own = other.record.allocation == asked.allocation;
            if is_own && other.record.usage != asked.usage {
                return Err(ClaimError::OtherUsage { volume, allocation: asked.allocation.clone() });
            }
            let excluded = other.record.usage.excludes(&asked.usage).filter(|_| !is_own);
            if let Some(reason) = excluded {
                let holder = other.record.allocation.clone();
                return Err(ClaimError::Held { volume, holder, is_releasing, reason });
            }
        }
        self.admit_beside_abandoned(asked)
    }

    /// Whether a claim of this allocation is being undone, or a release of it has no answer: after a crash that release is asked again, and
    /// it would undo the newer claim under its process (V8).
    fn is_leaving(&self, allocation: &AllocationId) -> bool {
        let is_released = self.claims.get(allocation).is_some_and(|claim| claim.is_released());
        is_released || self.releases.iter().any(|waiter| waiter.allocation == *allocation)
    }

    /// Checks a usage by itself, and the parts of it that need a capability of the plugin: two access modes (C154), and a group that owns
    /// the files (C155).
    fn check_usage(&self, usage: &Usage) -> Result<(), ClaimError> {
        let invalid = |reason: String| ClaimError::Invalid { volume: self.record.spec.key.clone(), reason };
        usage.capability.check().map_err(|fault| invalid(fault.to_string()))?;
        let made_for = self.record.existence.as_ref().map_or(&[][..], Existence::made_for);
        let kind = kind(&usage.capability);
        if let Some(made) = made_for.first()
            && made_for.iter().all(|made| self::kind(made) != kind)
        {
            let made = self::kind(made);
            return Err(invalid(format!("it was created as {made}, and not as {kind}; claim it as {made}")));
        }
        let VolumeCapability { access_type, access_mode: mode } = &usage.capability;
        let has_group = match access_type {
            AccessType::Mount(mount) => !mount.volume_mount_group.is_empty(),
            AccessType::Block => false,
        };
        match self.node() {
            Some(node) if mode.is_alpha() && !node.knows_alpha_modes => Err(invalid(format!(
                "its plugin does not report SINGLE_NODE_MULTI_WRITER, which {} needs",
                mode.as_str()
            ))),
            Some(node) if has_group && !node.knows_mount_group => Err(invalid(
                "its plugin does not report VOLUME_MOUNT_GROUP, which a mount group needs; claim it without one".to_owned(),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// The number of waiting callers.
    pub(super) fn waiting(&self) -> usize {
        let Lifecycle { creates, deletes, .. } = &self.life;
        let of_orders: usize = self.orders.iter().map(|ordered| ordered.waiters.len()).sum();
        let alone = self.releases.len() + creates.len() + deletes.len() + of_orders;
        alone + self.claims.values().map(|claim| claim.waiters.len()).sum::<usize>()
    }

    /// Answers the callers whose claims are proven.
    pub(super) fn answer_claims(&mut self, cx: &mut StepContext<Self>) {
        let mut answers = Vec::new();
        for claim in self.claims.values_mut().filter(|claim| claim.is_proven && !claim.is_released()) {
            let Step::Up(intent, _) = &claim.record.publish else { continue };
            let claimed = Claimed {
                path: claim.record.target_path.clone(),
                is_block: claim.record.usage.capability.access_type == AccessType::Block,
                read_only: claim.record.usage.read_only,
                generation: intent.generation,
            };
            answers.extend(claim.waiters.drain(..).map(|waiter| (waiter, claimed.clone())));
        }
        for (waiter, claimed) in answers {
            self.answer(waiter, VolumeAnswer::Claim(Ok(claimed)), cx);
        }
    }

    /// Forgets the claims that are released and confirmed down.
    pub(super) fn forget_released(&mut self, cx: &mut StepContext<Self>) {
        let is_over =
            |claim: &Claim| claim.is_released() && claim.record.publish.is_down() && !self.is_prepared(claim);
        let over = self.claims.iter().filter(|(_, claim)| is_over(claim));
        let over: Vec<_> = over.map(|(id, _)| id.clone()).collect();
        for id in over {
            self.claims.remove(&id);
            cx.persist(VolumeChange::ForgetClaim(id));
        }
    }

    /// Answers a waiting caller, and ends its timer.
    pub(super) fn answer(&self, id: AskId, answer: VolumeAnswer, cx: &mut StepContext<Self>) {
        cx.cancel_timer(VolumeTimer::Waiter(id));
        cx.reply(id, answer);
    }
}

/// The access type of a volume, in words.
const fn kind(capability: &VolumeCapability) -> &'static str {
    match capability.access_type {
        AccessType::Block => "block device",
        AccessType::Mount(_) => "file system",
    }
}

impl Usage {
    /// The reason that a claim with this usage cannot be held beside another one, if so (C137, C138, table C.5).
    #[must_use]
    pub fn excludes(&self, other: &Self) -> Option<&'static str> {
        let mode = self.capability.access_mode;
        if self.capability != other.capability {
            return Some("a volume is published with one capability at a time");
        }
        if !mode.allows_several_targets() {
            return Some("its access mode permits one allocation on a node");
        }
        let is_second_writer =
            mode == AccessMode::MultiNodeSingleWriter && !self.read_only && !other.read_only;
        is_second_writer.then_some("its access mode permits one writer")
    }
}
