//! Deletes a volume: only if it is neither claimed nor up on this node, and forgotten only after the plugin has confirmed it.

use super::lifecycle::{CreateError, DeleteError, DeleteVolume};
use super::messages::VolumeAnswer;
use super::order_messages::Done;
use super::outcome::{Failure, Known, VolumeCall};
use super::record::{Desired, Step, Towards};
use super::state::{DeleteWaiter, Flight, Tries, Volume, VolumeTimer};
use super::steps::Begun;
use crate::kernel::{AskId, StepContext};
use crate::vocabulary::{Generation, Timestamp};

impl Volume {
    /// Accepts the request to delete the volume, or repeats one.
    pub(super) fn delete(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &DeleteVolume,
        cx: &mut StepContext<Self>,
    ) {
        if let Err(error) = self.admit_deletion() {
            cx.reply(id, VolumeAnswer::DeleteVolume(Err(error)));
            return;
        }
        let did_exist = self.record.existence.as_ref().is_some_and(|existence| !existence.step.is_down());
        self.life.tries.is_held = false;
        if let Some(existence) = &mut self.record.existence
            && existence.desired == Desired::Held
        {
            existence.desired = Desired::Released;
            match did_exist {
                true => self.keep_volume(cx),
                false => self.gone(),
            }
        }
        self.allow_deletion(&asked.volume_id);
        self.forget_if_over(cx);
        let volume = self.record.spec.key.clone();
        self.answer_creates(&Err(CreateError::Deleted { volume }), cx);
        self.life.deletes.push(DeleteWaiter { id, did_exist });
        cx.start_timer(VolumeTimer::Waiter(id), asked_at + asked.within);
    }

    fn admit_deletion(&self) -> Result<(), DeleteError> {
        let volume = self.record.spec.key.clone();
        if self.stopping.is_some() {
            return Err(DeleteError::Stopping { volume });
        }
        let waiting = self.waiting();
        if waiting >= self.config.options.waiting_max {
            return Err(DeleteError::Full { volume, waiting });
        }
        let held_by = self.held_by();
        if held_by.is_empty() {
            return Ok(());
        }
        let is_held = !self.lost.is_empty() || self.claims.values().any(|claim| !claim.is_released());
        let remedy = if is_held { "release these claims first" } else { "delete it when all is undone" };
        let holders = self.holders();
        Err(DeleteError::InUse { volume, holders, held_by, remedy })
    }

    /// The claims, and the steps that are not down for certain.
    pub(super) fn held_by(&self) -> Vec<String> {
        let claims = self.in_order().into_iter().map(|claim| {
            let desired = if claim.is_released() { "is being released" } else { "is held" };
            format!("the claim of allocation {} {desired}", claim.record.allocation)
        });
        let (stage, attach) = (self.record.stage.as_str(), self.record.attach.as_str());
        let steps = [("stage", stage), ("attach", attach)].into_iter().filter(|(_, state)| *state != "down");
        let lost = self.lost.iter().map(|id| format!("the damaged claim of allocation {id} is held"));
        let open = self.orders.iter().filter(|ordered| !self.is_resting(ordered));
        let orders = open.map(|ordered| format!("\"{}\" is not done", ordered.record.order));
        claims
            .chain(lost)
            .chain(self.abandoned_words())
            .chain(orders)
            .chain(steps.map(|(step, state)| format!("{step} is {state}")))
            .collect()
    }

    pub(super) fn begin_delete(
        &mut self,
        generation: Generation,
        cx: &mut StepContext<Self>,
    ) -> Option<Begun> {
        let existence = self.record.existence.as_mut()?;
        let intent = existence.step.intent()?.clone();
        let was_unknown = !existence.step.is_up();
        existence.step = Step::GoingDown(intent);
        self.keep_volume(cx);
        Some((VolumeCall::Delete(self.record.spec.clone(), generation), was_unknown))
    }

    pub(super) fn delete_returned(
        &mut self,
        flight: &Flight,
        result: Result<(), Failure>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(existence) = &mut self.record.existence else { return };
        let Step::GoingDown(intent) = existence.step.clone() else { return };
        let failure = match result {
            Ok(()) => return self.gone(),
            // A plugin that answers twice that it does not know the volume has deleted it (C064).
            Err(failure) if failure.known == Known::Absent => match self.life.tries.is_denied_again() {
                true => return self.gone(),
                false => once_more(failure),
            },
            Err(failure) => failure,
        };
        let is_certain = failure.known != Known::Unclear && !flight.was_unknown;
        let is_final = matches!(failure.known, Known::Refused | Known::Unsupported);
        existence.step = if is_certain { Step::Up(intent, ()) } else { Step::Unknown(Towards::Down, intent) };
        let is_spent = self.try_failed(cx.moment(), &flight.what, &failure);
        match is_certain {
            true if is_final || is_spent => self.stay(&failure.reason, cx),
            true => self.keep_volume(cx),
            false if is_final => self.hold_existence(&failure.reason, cx),
            false => {}
        }
    }

    /// The plugin does not know the snapshots that an order is to delete. If it answers so twice, it has deleted them (C064).
    pub(super) fn deletion_denied(
        &mut self,
        flight: &Flight,
        (number, done): (u64, Done),
        failure: Failure,
        cx: &mut StepContext<Self>,
    ) {
        match self.tries(&flight.what).is_some_and(Tries::is_denied_again) {
            true => self.finish_order(number, &Ok(done), cx),
            false => self.order_failed(flight, number, &once_more(failure), cx),
        }
    }

    /// The plugin does not delete it: the volume is as before.
    fn stay(&mut self, reason: &str, cx: &mut StepContext<Self>) {
        if let Some(existence) = &mut self.record.existence {
            existence.desired = Desired::Held;
        }
        self.life.may_be_deleted = false;
        self.keep_volume(cx);
        let error = self.life.tries.error.take();
        self.life.tries = Default::default();
        self.life.tries.error = error;
        let (volume, reason) = (self.record.spec.key.clone(), reason.to_owned());
        self.answer_deletes(&Err(DeleteError::Refused { volume, reason }), cx);
    }

    /// Forgets by force a volume that may exist at the plugin. Returns what may be left there.
    pub(super) fn forget_existence(&mut self) -> Option<String> {
        let existence = self.record.existence.take_if(|existence| existence.desired == Desired::Released)?;
        let state = existence.step.as_str();
        let name = existence.args().map(|args| args.name.as_str());
        let left = match name.filter(|_| existence.is_unclear()) {
            Some(name) => format!("create is {state}, under the name {name}"),
            None => format!("create is {state}, with the id {:?}", self.record.spec.volume_id),
        };
        self.gone();
        Some(left)
    }

    /// Answers a caller that waited for a deletion that was forced, with what may be left.
    pub(super) fn answer_forced_deletion(&mut self, left: &[String], cx: &mut StepContext<Self>) {
        if self.record.existence.is_none() {
            let (volume, left) = (self.record.spec.key.clone(), left.join("; "));
            self.answer_deletes(&Err(DeleteError::Forced { volume, left }), cx);
        }
    }
}

/// The failure that the plugin does not know the object to delete. It is asked once more before that is believed: data that it has
/// forgotten for a moment would be left forever.
fn once_more(denial: Failure) -> Failure {
    let reason = format!("{}; it is asked once more before that counts as deleted", denial.reason);
    Failure { known: Known::Unclear, reason }
}
