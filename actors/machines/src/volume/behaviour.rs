//! The decisions of a volume.

use std::sync::Arc;
use std::time::Duration;

use super::abandoned::Target;
use super::existence::Existence;
use super::expanding::size_of;
use super::force::PrepareForce;
use super::lifecycle::Exists;
use super::messages::{ClaimError, ReleaseError, VolumeAnswer, VolumeAsk};
use super::news::{VolumeNews, VolumeStatus};
use super::operation::Operation;
use super::ordered::Ordered;
use super::outcome::{VolumeCall, VolumeOutcome};
use super::record::{ClaimRecord, Desired, Step, Towards, VolumeChange, VolumeImage, VolumeRecord};
use super::state::{Claim, Lifecycle, ReleaseWaiter, Tries, Volume, VolumeConfig, VolumeTimer};
use crate::kernel::{AskId, CallKey, Input, Machine, StepContext, StopMode};
use crate::vocabulary::{Attempt, Moment, Timestamp};

/// The margin between the end of the time for undoing and the limit that the parent sets.
const STOP_MARGIN: Duration = Duration::from_secs(1);

impl Machine for Volume {
    const KIND: &'static str = "volume";
    type Config = VolumeConfig;
    type Image = VolumeImage;
    type Ask = VolumeAsk;
    type Answer = VolumeAnswer;
    type Call = VolumeCall;
    type Outcome = VolumeOutcome;
    type Timer = VolumeTimer;
    type Change = VolumeChange;
    type News = VolumeNews;
    type View = Arc<VolumeStatus>;

    fn restore(config: &VolumeConfig, image: VolumeImage, _: Moment) -> Self {
        let is_kept = image.volume.is_some();
        let lost = || {
            let told = VolumeRecord::of_claims(&image.claims, &config.layout);
            told.unwrap_or_else(|| VolumeRecord::registered(&config.spec))
        };
        let record = image.volume.map_or_else(lost, |row| restored_volume(config, row));
        let unfit = record.existence.as_ref().and_then(Existence::unfit);
        let claims = image.claims.into_iter().map(|row| {
            let claim = restored(config, row);
            (claim.record.allocation.clone(), Box::new(claim))
        });
        // An order of another volume belongs to an earlier volume of this name.
        let orders = image.orders.into_iter().filter(|row| row.volume_id == record.spec.volume_id);
        let orders: Vec<_> = orders.map(|row| Ordered::new(row.restored())).collect();
        let abandoned = image.abandoned.into_iter().map(|record| (record.path.clone(), Target::new(record)));
        let expanded_bytes = orders.iter().filter_map(|ordered| size_of(&ordered.record)).max();
        Self {
            record,
            orders,
            expanded_bytes,
            claims: claims.collect(),
            lost: image.lost,
            abandoned: abandoned.collect(),
            config: config.clone(),
            is_kept,
            is_behind: false,
            announced: None,
            route: None,
            life: Lifecycle { unfit, ..Lifecycle::default() },
            attach_tries: Tries::default(),
            stage_tries: Tries::default(),
            is_stage_proven: false,
            is_stage_stale: false,
            flight: None,
            attempt: Attempt::default(),
            releases: Vec::new(),
            audits: image.audits,
            stopping: None,
            is_out_of_time: false,
            has_ended: false,
            told: None,
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        if self.has_ended {
            return;
        }
        match input {
            Input::Resumed => {
                if !self.is_kept && !self.claims.is_empty() {
                    // Its row is lost, and was restored from the rows of its claims.
                    self.keep_volume(cx);
                }
                self.publish_audits(cx);
                cx.call(CallKey::default(), self.config.options.look_deadline, VolumeCall::ReadRoute);
            }
            Input::Asked { id, asked_at, ask } => self.asked((*id, *asked_at), ask, cx),
            Input::Returned { call: VolumeCall::AwaitAudits(through), .. } => {
                self.audits_left(*through, cx);
            }
            Input::Returned { key, outcome, .. } => self.returned(*key, outcome, cx),
            Input::Elapsed(VolumeTimer::Retry) => {}
            Input::Elapsed(VolumeTimer::Waiter(id)) => self.waited_enough(*id, cx),
            Input::Elapsed(VolumeTimer::Stop) => self.is_out_of_time = true,
            Input::StopRequested(mode) => self.stop(*mode, cx),
        }
        self.advance(cx);
    }

    fn view(&self) -> Arc<VolumeStatus> {
        self.status().into()
    }

    fn is_promise(ask: &VolumeAsk) -> bool {
        !matches!(
            ask,
            VolumeAsk::AllowDeletion(_) | VolumeAsk::RouteChanged(_) | VolumeAsk::DescribeVolume(_)
        )
    }

    fn is_new_promise(&self, ask: &VolumeAsk) -> bool {
        match ask {
            // A claim that is held already needs no write: only its mount is proven again.
            VolumeAsk::Claim(claim) => !self.is_held_by(&claim.allocation),
            VolumeAsk::CreateVolume(_) => !matches!(self.exists(), Exists::BeingCreated | Exists::Created),
            VolumeAsk::DeleteVolume(_) => self.exists() != Exists::BeingDeleted,
            VolumeAsk::PlaceOrder(placed) => !self.is_ordered(&placed.order),
            VolumeAsk::PrepareForce(_) | VolumeAsk::ForceRelease(_) | VolumeAsk::Disown(_) => true,
            VolumeAsk::Release(_)
            | VolumeAsk::AllowDeletion(_)
            | VolumeAsk::ConfirmClaims(_)
            | VolumeAsk::RouteChanged(_)
            | VolumeAsk::DescribeVolume(_) => false,
        }
    }

    fn awaits_disk(call: &VolumeCall) -> bool {
        call.csi().is_some()
    }

    fn stops_within(&self) -> Option<Duration> {
        Some(self.config.options.stop_within.saturating_add(STOP_MARGIN))
    }
}

impl Volume {
    fn asked(&mut self, (id, asked_at): (AskId, Timestamp), ask: &VolumeAsk, cx: &mut StepContext<Self>) {
        match ask {
            VolumeAsk::CreateVolume(asked) => {
                self.create(cx.random(), (id, asked_at), asked, cx);
            }
            VolumeAsk::DeleteVolume(asked) => self.delete((id, asked_at), asked, cx),
            VolumeAsk::AllowDeletion(asked) => {
                self.allow_deletion(&asked.volume_id);
                cx.reply(id, VolumeAnswer::AllowDeletion(()));
            }
            VolumeAsk::Disown(asked) => {
                let is_gone = self.disown(asked, cx);
                cx.reply(id, VolumeAnswer::Disown(is_gone));
            }
            VolumeAsk::PlaceOrder(asked) => self.place_order((id, asked_at), asked, cx),
            VolumeAsk::Claim(asked) => self.claim((id, asked_at), asked, cx),
            VolumeAsk::Release(asked) => self.release((id, asked_at), asked, cx),
            VolumeAsk::ConfirmClaims(asked) => {
                let settled = self.confirm(asked, cx);
                cx.reply(id, VolumeAnswer::ConfirmClaims(settled));
            }
            VolumeAsk::PrepareForce(PrepareForce { force }) => {
                let prepared = self.prepare_force(force, cx);
                cx.reply(id, VolumeAnswer::PrepareForce(prepared));
            }
            VolumeAsk::ForceRelease(asked) => {
                let forced = self.force(asked, cx);
                cx.reply(id, VolumeAnswer::ForceRelease(forced));
            }
            VolumeAsk::RouteChanged(changed) => {
                self.route = Some(changed.route.clone());
                self.try_again();
                cx.reply(id, VolumeAnswer::RouteChanged(()));
            }
            VolumeAsk::DescribeVolume(_) => {
                cx.reply(id, VolumeAnswer::DescribeVolume(self.status().into()));
            }
        }
    }

    /// Continues as far as possible after any input.
    fn advance(&mut self, cx: &mut StepContext<Self>) {
        self.forget_released(cx);
        self.forget_abandoned(cx);
        self.forget_if_over(cx);
        self.answer_existence(cx);
        self.settle_orders(cx);
        self.answer_claims(cx);
        self.answer_releases(cx);
        let mut wanted = self.wanted_operations();
        if let Some(next) = self.next_operation(&wanted, cx.now()) {
            self.begin(next, cx);
            wanted = self.wanted_operations();
        }
        if !self.is_setting_up() {
            self.catch_up(cx);
        }
        self.schedule(&wanted, cx);
        self.tell(&wanted, cx);
        self.end_if_done(&wanted, cx);
    }

    /// Forgets the row of a volume that is not used. A created volume stays until it is deleted for certain.
    pub(super) fn forget_if_over(&mut self, cx: &mut StepContext<Self>) {
        let is_to_be_kept = self.record.existence.as_ref().is_some_and(Existence::is_to_be_kept);
        if self.is_kept && self.claims.is_empty() && self.is_down() && !is_to_be_kept {
            (self.is_kept, self.is_behind) = (false, false);
            cx.persist(VolumeChange::ForgetVolume);
        }
    }

    /// Starts the timer for the next try of waiting operations.
    fn schedule(&self, wanted: &[Operation], cx: &mut StepContext<Self>) {
        let due = wanted.iter().filter_map(|next| {
            let tries = self.tries_of(next)?;
            let towards = next.towards();
            tries.due(towards).filter(|due| !tries.holds(towards) && *due > cx.now())
        });
        match due.min() {
            Some(at) => cx.start_timer(VolumeTimer::Retry, at),
            None => cx.cancel_timer(VolumeTimer::Retry),
        }
    }

    /// The plugin has changed: waiting operations are tried at once.
    pub(super) fn try_again(&mut self) {
        self.life.tries.again();
        self.attach_tries.again();
        self.stage_tries.again();
        self.abandoned.values_mut().for_each(Target::again);
        self.orders.iter_mut().for_each(|ordered| ordered.tries.again());
        self.claims.values_mut().for_each(|claim| claim.tries.again());
    }

    /// The time of a caller is over. The operation continues (V15).
    fn waited_enough(&mut self, id: AskId, cx: &mut StepContext<Self>) {
        if let Some(answer) = self.gave_up_on_existence(id).or_else(|| self.gave_up_on_order(id)) {
            cx.reply(id, answer);
            return;
        }
        let (volume, doing) = (self.record.spec.key.clone(), self.doing());
        if let Some(place) = self.releases.iter().position(|waiter| waiter.id == id) {
            self.releases.remove(place);
            cx.reply(id, VolumeAnswer::Release(Err(ReleaseError::Pending { volume, doing })));
            return;
        }
        let Some(claim) = self.claims.values_mut().find(|claim| claim.waiters.contains(&id)) else { return };
        claim.waiters.retain(|waiter| *waiter != id);
        let allocation = claim.record.allocation.clone();
        let error = ClaimError::Pending { volume, allocation, doing };
        cx.reply(id, VolumeAnswer::Claim(Err(error)));
    }

    // === The end ===

    /// Sets nothing up from now on. With [`StopMode::Stop`], released claims are undone for a bounded time (SHD-01, V13).
    fn stop(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        self.stopping = Some(mode);
        cx.start_timer(VolumeTimer::Stop, cx.now() + self.config.options.stop_within);
        self.stop_existence(cx);
        self.stop_orders(cx);
        let volume = self.record.spec.key.clone();
        let waiters: Vec<_> =
            self.claims.values_mut().flat_map(|claim| std::mem::take(&mut claim.waiters)).collect();
        for waiter in waiters {
            let error = ClaimError::Stopping { volume: volume.clone() };
            self.answer(waiter, VolumeAnswer::Claim(Err(error)), cx);
        }
    }

    /// Ends when nothing is in flight and nothing is left to undo, or when the time for that is over. The ledger keeps the rest.
    fn end_if_done(&mut self, wanted: &[Operation], cx: &mut StepContext<Self>) {
        if self.stopping.is_none() {
            return;
        }
        let is_done = self.flight.is_none() && wanted.is_empty();
        if !is_done && !self.is_out_of_time {
            return;
        }
        let volume = self.record.spec.key.clone();
        for ReleaseWaiter { id, .. } in std::mem::take(&mut self.releases) {
            let error = ReleaseError::Stopping { volume: volume.clone() };
            self.answer(id, VolumeAnswer::Release(Err(error)), cx);
        }
        self.has_ended = true;
        cx.stop();
    }
}

/// A volume as restored from the ledger. The attachment survives a boot of the machine, mounts do not (V14).
fn restored_volume(config: &VolumeConfig, row: VolumeRecord) -> VolumeRecord {
    let stage = match row.stage {
        Step::Up(intent, proof) if proof.boot_id != config.boot_id => Step::Unknown(Towards::Up, intent),
        other => other.restored(),
    };
    let existence = row.existence.map(Existence::restored);
    VolumeRecord { spec: row.spec, existence, attach: row.attach.restored(), stage }
}

/// A claim as restored from the ledger. A claim that an earlier run of the host made is provisional (V14).
fn restored(config: &VolumeConfig, row: ClaimRecord) -> Claim {
    let publish = match row.publish {
        Step::Up(intent, proof) if proof.boot_id != config.boot_id => Step::Unknown(Towards::Up, intent),
        other => other.restored(),
    };
    let is_provisional = row.desired == Desired::Held && row.run != config.run;
    Claim::new(ClaimRecord { publish, ..row }, is_provisional)
}
