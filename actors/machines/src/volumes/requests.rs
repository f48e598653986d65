//! Sends messages to their volumes, and the answers back to their callers.

use std::time::Duration;

use super::errors::{ClaimError, ConfirmError, CreateError, DeleteError, ForceError, ReleaseError};
use super::messages::{Claim, Release, VolumesAnswer};
use super::purposes::{InFlight, Purpose, Request};
use super::reasons::{NoAnswer, UnknownVolume};
use super::state::{Entry, Vacancy, Volumes, VolumesCall, VolumesOutcome};
use crate::Message;
use crate::kernel::{AskId, CallKey, CallLost, StepContext};
use crate::supervisor::ChildState;
use crate::vocabulary::{Attempt, Timestamp};
use crate::volume::{self, Released, Volume, VolumeAnswer, VolumeAsk, VolumeKey};

/// The additional time that a volume has to answer after its caller's timeout: its answers wait for the disk.
const ANSWER_MARGIN: Duration = Duration::from_secs(30);

impl Volumes {
    pub(super) fn claim(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &Claim,
        cx: &mut StepContext<Self>,
    ) {
        if let Err(error) = self.admit(asked) {
            cx.reply(id, VolumesAnswer::Claim(Err(error)));
            return;
        }
        let Claim { volume, allocation, usage, within } = asked.clone();
        let ask = VolumeAsk::Claim(volume::Claim { allocation, usage, within });
        let request = Request { purpose: Purpose::Claim(id), until: asked_at + within, ask };
        self.submit(&volume, request, cx);
    }

    pub(super) fn release(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &Release,
        cx: &mut StepContext<Self>,
    ) {
        if let Some(result) = self.release_answer(&asked.volume) {
            let of = (asked.volume.clone(), Some(asked.allocation.clone()));
            let result = match result {
                Ok(_) | Err(ReleaseError::Unknown(_)) if self.unconfirmed.remove(&of) => {
                    Ok(Released { was_held: true, others: Vec::new(), has_orders: false })
                }
                other => other,
            };
            cx.reply(id, VolumesAnswer::Release(result));
            return;
        }
        let Release { volume, allocation, observed, within } = asked.clone();
        let ask = VolumeAsk::Release(volume::Release { allocation, observed, within });
        let request = Request { purpose: Purpose::Release(id), until: asked_at + within, ask };
        self.submit(&volume, request, cx);
    }

    /// The answer to a release that needs no actor of the volume.
    pub(super) fn release_answer(&self, key: &VolumeKey) -> Option<Result<Released, ReleaseError>> {
        if self.stop.is_some() {
            return Some(Err(ReleaseError::Stopping { volume: key.clone() }));
        }
        match (self.used(key), self.known.contains_key(key)) {
            (Some(entry), _) => {
                let room = self.room_for(&entry.spec.plugin, self.config.options.waiting_max);
                room.err().map(|error| Err(error.into()))
            }
            (None, true) => Some(Ok(Released { was_held: false, others: Vec::new(), has_orders: false })),
            (None, false) => Some(Err(UnknownVolume { volume: key.clone() }.into())),
        }
    }

    // === The way to the volume ===

    /// Sends a message to a volume. Without an actor it gets one; if its actor stops or pauses, its next actor gets the message.
    pub(super) fn submit(&mut self, key: &VolumeKey, request: Request, cx: &mut StepContext<Self>) {
        if !self.entries.contains_key(key) {
            let Some(known) = self.known.get(key) else { return };
            let spec = known.spec.clone();
            self.open(&spec, cx);
            if let Some(entry) = self.entries.get_mut(key) {
                entry.is_settled = true;
            }
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        if request.purpose.is_awaited() {
            *self.waiting.entry(entry.spec.plugin.clone()).or_default() += 1;
        }
        match entry.child.state() {
            ChildState::Running(_) => self.send(key, request, cx),
            ChildState::Stopping(_) | ChildState::Pausing => entry.queue.push_back(request),
            ChildState::GivenUp => {
                entry.queue.push_back(request);
                self.start_child(key, cx);
            }
        }
    }

    /// Sends a message to the actor of a volume, which runs.
    pub(super) fn send(&mut self, key: &VolumeKey, request: Request, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let ChildState::Running(life) = entry.child.state() else { return };
        self.asked = self.asked.next();
        let within = request.until.since(cx.now());
        let ask = hurried(&request.ask, within);
        if matches!(ask, VolumeAsk::CreateVolume(_) | VolumeAsk::DeleteVolume(_) | VolumeAsk::Disown(_)) {
            (entry.last_change, entry.is_settled) = (self.asked, false);
        }
        let is_first_claim = match &ask {
            VolumeAsk::Claim(claim) => {
                entry.last_begun = self.asked;
                entry.claimants.asked(&claim.allocation, self.asked)
            }
            VolumeAsk::PlaceOrder(_) => {
                entry.last_begun = self.asked;
                false
            }
            _ => false,
        };
        entry.in_flight += usize::from(request.purpose.is_awaited());
        self.sent.entry(key.clone()).or_default().insert(self.asked);
        self.asks.insert(self.asked, InFlight { volume: key.clone(), request, is_first_claim });
        let call_key = CallKey { attempt: self.asked, ..CallKey::default() };
        cx.call(call_key, within.saturating_add(ANSWER_MARGIN), VolumesCall::Ask { life, ask });
    }

    /// Whether a volume has not answered such a request yet, or not even received it.
    pub(super) fn is_outstanding(&self, key: &VolumeKey, is_meant: impl Fn(&Request) -> bool) -> bool {
        let Some(entry) = self.entries.get(key) else { return false };
        let mut sent = self.sent.get(key).into_iter().flatten().filter_map(|number| self.asks.get(number));
        entry.queue.iter().any(&is_meant) || sent.any(|sent| is_meant(&sent.request))
    }

    // === The way back ===

    /// A message is no longer under way.
    fn come_back(&mut self, number: Attempt) -> Option<InFlight> {
        let in_flight = self.asks.remove(&number)?;
        if let Some(sent) = self.sent.get_mut(&in_flight.volume) {
            sent.remove(&number);
            if sent.is_empty() {
                self.sent.remove(&in_flight.volume);
            }
        }
        Some(in_flight)
    }

    /// A volume has answered, or failed to answer.
    pub(super) fn answered(
        &mut self,
        number: Attempt,
        outcome: &Result<VolumesOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(InFlight { volume, request, is_first_claim }) = self.come_back(number) else { return };
        let answer = answer_in(&volume, outcome);
        if let Some(entry) = self.entries.get_mut(&volume) {
            entry.in_flight = entry.in_flight.saturating_sub(usize::from(request.purpose.is_awaited()));
            if let Ok(answer) = &answer {
                let is_unread = entry.is_unread;
                entry.claimants.answered(number, (&request.ask, answer), is_first_claim, is_unread);
            }
        }
        if let Ok(answer) = &answer {
            self.settle(&volume, number, answer, cx);
        }
        let answer = answer.cloned().map(|answer| self.confirmed_late(&volume, &request, answer));
        let is_proof = answer.as_ref().is_ok_and(says_vacant);
        let is_decided = is_proof || self.is_allowed(&volume, number, &answer);
        let is_check = request.purpose == Purpose::Check;
        match refuses_creation(&answer) {
            true => self.delete_again(&volume, cx),
            false if !request.deletes() => {}
            false => self.deletion_returned((&volume, number, request.purpose), &answer, cx),
        }
        self.deliver(&volume, request.purpose, answer.clone(), cx);
        if let (VolumeAsk::PrepareForce(asked), Ok(VolumeAnswer::PrepareForce(Ok(())))) =
            (&request.ask, answer)
        {
            self.force_prepared(&volume, (request.purpose, asked.force.clone()), cx);
        }
        if request.decides() && !is_decided {
            // Not at once: it may continue to refuse it, as on a sick disk.
            self.decide_later(&volume, cx);
            return self.end_if_done(cx);
        }
        match self.entries.get_mut(&volume) {
            Some(entry) if is_proof && entry.is_idle() && entry.is_settled && number > entry.last_begun => {
                self.retire(&volume, cx);
            }
            // The next report of the actor decides.
            Some(entry) if is_check && outcome.is_ok() && entry.vacancy != Vacancy::ReportedSince => {
                entry.vacancy.note_answer();
            }
            Some(entry) => {
                if is_check {
                    entry.vacancy.note_answer();
                }
                self.check_vacancy(&volume, cx);
            }
            None => {}
        }
        self.end_if_done(cx);
    }

    /// Gives an answer to its recipient.
    pub(super) fn deliver(
        &mut self,
        volume: &VolumeKey,
        purpose: Purpose,
        answer: Result<VolumeAnswer, NoAnswer>,
        cx: &mut StepContext<Self>,
    ) {
        if purpose.is_awaited() {
            self.waits_no_more(volume);
        }
        match purpose {
            Purpose::Create(id) => {
                let result = reply::<volume::CreateVolume>(volume, answer).map_err(CreateError::from);
                let result = result.and_then(|created| created.map_err(CreateError::from));
                // A volume that a plugin answers with the id of another volume is not that volume's second name.
                let is_other = |created: &volume::Created| self.admit_created(volume, created);
                let result = result.and_then(|created| Ok(is_other(&created).map(|()| created)?));
                cx.reply(id, VolumesAnswer::CreateVolume(result));
            }
            Purpose::Delete(id) => {
                let result = reply::<volume::DeleteVolume>(volume, answer).map_err(DeleteError::from);
                let result = result.and_then(|deleted| deleted.map_err(DeleteError::from));
                cx.reply(id, VolumesAnswer::DeleteVolume(result));
            }
            Purpose::Order(id, kind) => {
                self.ordered((volume, id, kind), reply::<volume::PlaceOrder>(volume, answer), cx);
            }
            Purpose::Claim(id) => {
                let result = reply::<volume::Claim>(volume, answer).map_err(ClaimError::NoAnswer);
                let result = result.and_then(|claimed| claimed.map_err(ClaimError::from));
                cx.reply(id, VolumesAnswer::Claim(result));
            }
            Purpose::Release(id) => {
                cx.reply(id, VolumesAnswer::Release(released(volume, answer)));
            }
            Purpose::Prepare(id) => {
                let not_prepared = |no_answer: NoAnswer| {
                    let (volume, reason) = (volume.clone(), no_answer.cause());
                    ForceError::NotPrepared { volume, reason }
                };
                let result = reply::<volume::PrepareForce>(volume, answer).map_err(not_prepared);
                if let Err(error) = result.and_then(|prepared| prepared.map_err(ForceError::from)) {
                    cx.reply(id, VolumesAnswer::ForceRelease(Err(error)));
                }
            }
            Purpose::Force(id) => {
                let result = reply::<volume::ForceRelease>(volume, answer).map_err(ForceError::from);
                let result = result.and_then(|forced| forced.map_err(ForceError::from));
                cx.reply(id, VolumesAnswer::ForceRelease(result));
            }
            Purpose::Ended(id) => self.part_released(id, volume, released(volume, answer), cx),
            Purpose::Confirmed(id) => {
                let result = reply::<volume::ConfirmClaims>(volume, answer).map_err(ConfirmError::from);
                self.part_confirmed(id, volume, result, cx);
            }
            Purpose::Check | Purpose::Note => {}
        }
    }

    /// Answers all messages that wait for the next incarnation of an actor, which is not started.
    pub(super) fn refuse_queue(&mut self, key: &VolumeKey, reason: &str, cx: &mut StepContext<Self>) {
        let queue = self.entries.get_mut(key).map(|entry| std::mem::take(&mut entry.queue));
        for request in queue.into_iter().flatten() {
            self.deliver(key, request.purpose, Err(NoAnswer::silent(key, reason)), cx);
        }
    }

    /// A caller got its answer.
    fn waits_no_more(&mut self, volume: &VolumeKey) {
        let Some(entry) = self.entries.get(volume) else { return };
        let plugin = &entry.spec.plugin;
        if let Some(waiting) = self.waiting.get_mut(plugin) {
            *waiting = waiting.saturating_sub(1);
            if *waiting == 0 {
                self.waiting.remove(plugin);
            }
        }
    }
}

impl Request {
    /// Whether the message deletes the volume.
    pub(super) const fn deletes(&self) -> bool {
        matches!(self.ask, VolumeAsk::DeleteVolume(_))
    }
}

impl Purpose {
    /// Whether a caller waits for the answer.
    const fn is_awaited(self) -> bool {
        match self {
            Self::Create(_)
            | Self::Delete(_)
            | Self::Order(..)
            | Self::Claim(_)
            | Self::Release(_)
            | Self::Prepare(_)
            | Self::Force(_)
            | Self::Ended(_)
            | Self::Confirmed(_) => true,
            Self::Check | Self::Note => false,
        }
    }
}

impl Entry {
    /// Whether its actor runs, and no caller waits for it.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.child.state(), ChildState::Running(_)) && self.in_flight == 0
    }
}

/// The answer of a volume, or the reason that there is none.
fn answer_in<'a>(
    volume: &VolumeKey,
    outcome: &'a Result<VolumesOutcome, CallLost>,
) -> Result<&'a VolumeAnswer, NoAnswer> {
    match outcome {
        Ok(VolumesOutcome::Answered(Ok(answer))) => Ok(answer),
        Ok(VolumesOutcome::Answered(Err(error))) => Err(NoAnswer::of(volume, error)),
        Ok(
            VolumesOutcome::Followed(_)
            | VolumesOutcome::Ended(_)
            | VolumesOutcome::Found(_)
            | VolumesOutcome::Done,
        ) => Err(NoAnswer::silent(volume, "it was not asked")),
        Err(lost) => Err(NoAnswer::silent(volume, lost.to_string())),
    }
}

/// Whether a volume refuses to be created, and no creation continues: a deletion with an unknown outcome is not replaced by it.
fn refuses_creation(answer: &Result<VolumeAnswer, NoAnswer>) -> bool {
    let Ok(VolumeAnswer::CreateVolume(Err(error))) = answer else { return false };
    !matches!(error, volume::CreateError::Pending { .. } | volume::CreateError::Unclear { .. })
}

/// Whether nothing of a volume was left on this node at the time of this answer.
fn says_vacant(answer: &VolumeAnswer) -> bool {
    match answer {
        VolumeAnswer::DescribeVolume(status) => status.is_vacant(),
        VolumeAnswer::DeleteVolume(Ok(_)) => true,
        VolumeAnswer::Disown(is_gone) => *is_gone,
        VolumeAnswer::Release(Ok(released)) => released.others.is_empty() && !released.has_orders,
        VolumeAnswer::Release(Err(_))
        | VolumeAnswer::Claim(_)
        | VolumeAnswer::PlaceOrder(_)
        | VolumeAnswer::ConfirmClaims(_)
        | VolumeAnswer::PrepareForce(_)
        | VolumeAnswer::ForceRelease(_)
        | VolumeAnswer::CreateVolume(_)
        | VolumeAnswer::DeleteVolume(Err(_))
        | VolumeAnswer::AllowDeletion(())
        | VolumeAnswer::RouteChanged(()) => false,
    }
}

/// The same message, with the remaining time.
fn hurried(ask: &VolumeAsk, within: Duration) -> VolumeAsk {
    match ask {
        VolumeAsk::Claim(claim) => VolumeAsk::Claim(volume::Claim { within, ..claim.clone() }),
        VolumeAsk::Release(release) => VolumeAsk::Release(volume::Release { within, ..release.clone() }),
        VolumeAsk::CreateVolume(create) => {
            VolumeAsk::CreateVolume(volume::CreateVolume { within, ..create.clone() })
        }
        VolumeAsk::PlaceOrder(placed) => {
            VolumeAsk::PlaceOrder(volume::PlaceOrder { within, ..placed.clone() })
        }
        VolumeAsk::DeleteVolume(delete) => {
            VolumeAsk::DeleteVolume(volume::DeleteVolume { within, ..delete.clone() })
        }
        VolumeAsk::AllowDeletion(_)
        | VolumeAsk::Disown(_)
        | VolumeAsk::ConfirmClaims(_)
        | VolumeAsk::PrepareForce(_)
        | VolumeAsk::ForceRelease(_)
        | VolumeAsk::RouteChanged(_)
        | VolumeAsk::DescribeVolume(_) => ask.clone(),
    }
}

/// The reply of a volume to one kind of message.
fn reply<Q: Message<Volume>>(
    volume: &VolumeKey,
    answer: Result<VolumeAnswer, NoAnswer>,
) -> Result<Q::Reply, NoAnswer> {
    Q::from_answer(answer?).ok_or_else(|| NoAnswer::silent(volume, "its reply does not match the message"))
}

fn released(volume: &VolumeKey, answer: Result<VolumeAnswer, NoAnswer>) -> Result<Released, ReleaseError> {
    let result = reply::<volume::Release>(volume, answer).map_err(ReleaseError::from);
    result.and_then(|released| released.map_err(ReleaseError::from))
}
