//! Handles the outcome of an operation of a volume (V4, V7, table C.6).

use std::path::Path;

use super::mark::Proof;
use super::messages::{ClaimError, VolumeAnswer};
use super::news::VolumeNews;
use super::operation::Operation;
use super::outcome::{Failure, Known, Seen, VolumeOutcome};
use super::record::{Desired, Step};
use super::state::{Flight, Volume};
use super::step_result::{StepResult, unclear};
use super::steps::after_failure;
use crate::csi::Context;
use crate::kernel::{CallKey, CallLost, StepContext};
use crate::vocabulary::{AllocationId, Moment};

/// The fault of a publication of a staging directory of the host.
const BARE_STAGING: &str = "nothing is mounted where the volume is staged, and the plugin has published that directory, which is one of \
                            this host: what is written there is not written to the volume";

impl Volume {
    /// A call has returned. The outcome of any call other than the one in flight is stale.
    pub(super) fn returned(
        &mut self,
        key: CallKey,
        outcome: &Result<VolumeOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        if let Ok(VolumeOutcome::Route(route)) = outcome {
            // A message of the owner is newer than this route. Paths that were looked at without a plugin are tried with it at once.
            if self.route.is_none() {
                self.route = Some(route.clone());
                self.try_again();
            }
            return;
        }
        let Some(flight) = self.flight.take_if(|flight| flight.attempt == key.attempt) else { return };
        if !matches!(flight.what, Operation::Attach | Operation::Stage) {
            self.catch_up(cx);
        }
        let result = StepResult::of(&flight.what, outcome);
        match &flight.what {
            Operation::Create => self.create_returned(&flight, outcome, cx),
            Operation::Order(..) => self.order_returned(&flight, outcome, cx),
            Operation::Delete => self.delete_returned(&flight, result.answer.map(|_| ()), cx),
            Operation::LookAtStage => self.stage_seen(result.seen, cx),
            Operation::LookAt(id) => self.target_seen(&id.clone(), result.seen, cx),
            Operation::LookAtAbandoned(path) => self.abandoned_seen(path, result.seen, cx),
            Operation::UnpublishAbandoned(path) => self.abandoned_undone(path, result, cx),
            Operation::Attach | Operation::Stage | Operation::Publish(_) => self.went_up(&flight, result, cx),
            Operation::Detach | Operation::Unstage | Operation::Unpublish(_) => {
                self.went_down(&flight, result, cx);
            }
        }
    }

    // === Up ===

    fn went_up(&mut self, flight: &Flight, result: StepResult, cx: &mut StepContext<Self>) {
        let is_seen = matches!(result.seen, Seen::Present(_));
        let failure = match result.answer {
            Ok(context) => match self.note_up(&flight.what, context, result.seen, cx) {
                Ok(()) => {
                    if let Some(tries) = self.tries(&flight.what) {
                        *tries = Default::default();
                    }
                    return;
                }
                Err(failure) => failure,
            },
            Err(failure) => failure,
        };
        // A refused step that was done all the same is undone (V4).
        let is_certain = failure.known != Known::Unclear && !is_seen && !flight.was_unknown;
        self.leave_step(&flight.what, is_certain, cx);
        if let (Operation::Publish(id), Known::NotNow, false) = (&flight.what, failure.known, is_seen) {
            self.doubt_staging_of_refused(id);
        }
        let is_final = matches!(failure.known, Known::Refused | Known::Unsupported);
        if self.try_failed(cx.moment(), &flight.what, &failure) || is_final {
            self.give_up(&flight.what, &failure.reason, cx);
        }
    }

    /// The plugin has confirmed a step, and the kernel was looked at.
    fn note_up(
        &mut self,
        what: &Operation,
        context: Context,
        seen: Seen,
        cx: &mut StepContext<Self>,
    ) -> Result<(), Failure> {
        match what {
            Operation::Attach => {
                self.note_attached(context, cx);
                Ok(())
            }
            Operation::Stage => self.note_staged(seen, cx),
            Operation::Publish(id) => self.note_published(id, seen, cx),
            Operation::Create
            | Operation::Delete
            | Operation::Detach
            | Operation::Unstage
            | Operation::Unpublish(_)
            | Operation::LookAtStage
            | Operation::LookAt(_)
            | Operation::LookAtAbandoned(_)
            | Operation::UnpublishAbandoned(_)
            | Operation::Order(..) => Ok(()),
        }
    }

    fn note_attached(&mut self, context: Context, cx: &mut StepContext<Self>) {
        if let Step::GoingUp(intent) = &self.record.attach {
            self.record.attach = Step::Up(intent.clone(), context);
            self.keep_attached(cx);
        }
    }

    fn note_staged(&mut self, seen: Seen, cx: &mut StepContext<Self>) -> Result<(), Failure> {
        let Step::GoingUp(intent) = &self.record.stage else { return Ok(()) };
        let mark = match seen {
            Seen::Present(mark) => Some(mark),
            Seen::Nothing | Seen::BareStaging => None,
            Seen::Dead(reason) | Seen::Unclear(reason) => {
                return Err(unclear(format!("it is staged, but cannot be checked: {reason}")));
            }
        };
        let proof = Proof { boot_id: self.config.boot_id.clone(), mark };
        self.record.stage = Step::Up(intent.clone(), proof);
        (self.is_stage_proven, self.is_stage_stale) = (true, false);
        self.keep_staged(cx);
        Ok(())
    }

    fn note_published(
        &mut self,
        id: &AllocationId,
        seen: Seen,
        cx: &mut StepContext<Self>,
    ) -> Result<(), Failure> {
        let Some(claim) = self.claims.get_mut(id) else { return Ok(()) };
        let Step::GoingUp(intent) = &claim.record.publish else { return Ok(()) };
        let mark = match seen {
            Seen::Present(mark) => Some(mark),
            Seen::Nothing => {
                claim.is_stale = true;
                claim.tries.in_vain(&self.config.options.backoff, cx.moment());
                let path = claim.record.target_path.display();
                return Err(unclear(format!("the plugin answered OK, and nothing is mounted at {path}")));
            }
            Seen::BareStaging => {
                claim.is_stale = true;
                claim.tries.in_vain(&self.config.options.backoff, cx.moment());
                self.doubt_staging(id, cx);
                return Err(unclear(BARE_STAGING.to_owned()));
            }
            Seen::Dead(reason) | Seen::Unclear(reason) => {
                return Err(unclear(format!("it is published, but cannot be checked: {reason}")));
            }
        };
        let proof = Proof { boot_id: self.config.boot_id.clone(), mark };
        let up = Step::Up(intent.clone(), proof);
        claim.is_proven = true;
        self.supersede_abandoned(id, cx);
        self.go(id, up, cx);
        Ok(())
    }

    /// The claims that need this step fail without another try, and the steps that were begun are undone.
    pub(super) fn give_up(&mut self, what: &Operation, reason: &str, cx: &mut StepContext<Self>) {
        let reason = named(what, reason);
        match what {
            Operation::Publish(id) | Operation::LookAt(id) => self.fail_claim(&id.clone(), &reason, cx),
            _ => {
                let is_open = |id: &&AllocationId| {
                    self.claims
                        .get(*id)
                        .is_some_and(|claim| claim.is_wanted() && !claim.record.publish.is_up())
                };
                let open: Vec<_> = self.claims.keys().filter(is_open).cloned().collect();
                open.iter().for_each(|id| self.fail_claim(id, &reason, cx));
            }
        }
        // The next claim begins with tries of its own.
        if let Some(tries) = self.tries(what) {
            let error = tries.error.take();
            *tries = Default::default();
            tries.error = error;
        }
    }

    fn fail_claim(&mut self, id: &AllocationId, reason: &str, cx: &mut StepContext<Self>) {
        let Some(claim) = self.claims.get_mut(id) else { return };
        claim.record.desired = Desired::Released;
        claim.is_proven = false;
        let waiters = std::mem::take(&mut claim.waiters);
        let is_down = claim.record.publish.is_down();
        if !is_down {
            self.keep_claim(id, cx);
        }
        let volume = self.record.spec.key.clone();
        let error = ClaimError::Failed { volume, allocation: id.clone(), reason: reason.to_owned() };
        for waiter in waiters {
            self.answer(waiter, VolumeAnswer::Claim(Err(error.clone())), cx);
        }
        cx.publish(VolumeNews::ClaimFailed { allocation: id.clone(), reason: reason.to_owned() });
    }

    // === Down ===

    fn went_down(&mut self, flight: &Flight, result: StepResult, cx: &mut StepContext<Self>) {
        let has_call = self.has_undo(&flight.what);
        let is_gone = result.seen == Seen::Nothing;
        match result.not_down(&flight.what, self.undone_at(&flight.what), has_call) {
            None => self.note_down(&flight.what, cx),
            Some(failure) => {
                self.leave_step(&flight.what, false, cx);
                self.try_failed(cx.moment(), &flight.what, &failure);
                let is_held = matches!(failure.known, Known::Refused | Known::Unsupported);
                if let Some(tries) = self.tries(&flight.what) {
                    tries.is_held = is_held;
                }
                if is_held {
                    self.refuse_releases(&flight.what, &failure.reason, cx);
                }
                if is_gone {
                    self.publish_instead(&flight.what);
                }
            }
        }
    }

    /// The plugin has answered that it does not undo a publication of which the kernel has nothing: some plugins undo only what is mounted.
    /// For a held claim the same publication is repeated, which resolves it as well (V4). If nothing is mounted then, it is undone again.
    fn publish_instead(&mut self, what: &Operation) {
        let Operation::Unpublish(id) = what else { return };
        if let Some(claim) = self.claims.get_mut(id).filter(|claim| claim.is_wanted()) {
            claim.is_stale = false;
        }
    }

    /// Whether the present generation reports the call that undoes this: not every generation stages (C120, V16).
    fn has_undo(&self, what: &Operation) -> bool {
        *what != Operation::Unstage || self.node().is_none_or(|node| node.stages)
    }

    /// The path at which the kernel is looked at after this undo.
    fn undone_at(&self, what: &Operation) -> Option<&Path> {
        match what {
            Operation::Unstage => self.record.stage.intent().map(|intent| &*intent.args.staging_path),
            Operation::Unpublish(id) => self.claims.get(id).map(|claim| &*claim.record.target_path),
            Operation::Create
            | Operation::Delete
            | Operation::Attach
            | Operation::Detach
            | Operation::Stage
            | Operation::Publish(_)
            | Operation::LookAtStage
            | Operation::LookAt(_)
            | Operation::LookAtAbandoned(_)
            | Operation::UnpublishAbandoned(_)
            | Operation::Order(..) => None,
        }
    }

    fn note_down(&mut self, what: &Operation, cx: &mut StepContext<Self>) {
        match what {
            Operation::Unpublish(id) => {
                let id = id.clone();
                let Some(claim) = self.claims.get_mut(&id) else { return };
                if !matches!(claim.record.publish, Step::GoingDown(_)) {
                    return;
                }
                claim.is_stale = false;
                claim.record.publish = Step::Down;
                // A released claim is forgotten instead.
                if !claim.is_released() {
                    self.keep_claim(&id, cx);
                }
            }
            Operation::Unstage if matches!(self.record.stage, Step::GoingDown(_)) => {
                self.record.stage = Step::Down;
                self.is_stage_stale = false;
                self.keep_volume(cx);
            }
            Operation::Detach if matches!(self.record.attach, Step::GoingDown(_)) => {
                self.record.attach = Step::Down;
                self.keep_volume(cx);
            }
            _ => return,
        }
        if let Some(tries) = self.tries(what) {
            *tries = tries.after_down();
        }
    }

    // === Both ===

    /// Notes a failed try. True if so many failed in a row that nothing more is tried towards up.
    pub(super) fn try_failed(&mut self, moment: Moment, what: &Operation, failure: &Failure) -> bool {
        let options = self.config.options;
        let Some(tries) = self.tries(what) else { return false };
        if matches!(failure.known, Known::NotNow | Known::Refused | Known::Unsupported) {
            // The plugin knows it after all.
            tries.is_denied = false;
        }
        let reason = named(what, &failure.reason);
        tries.failed(&options.backoff, moment, &reason, failure.known != Known::NotMade);
        tries.count.max(tries.rounds.failures()) >= options.tries_max
    }

    /// Sets the state of a step after a failed call. Unknown needs no write: an intent on disk means the same after a restart.
    fn leave_step(&mut self, what: &Operation, is_certain: bool, cx: &mut StepContext<Self>) {
        match what {
            Operation::Attach | Operation::Detach => {
                if let Some(left) = after_failure(&self.record.attach, is_certain) {
                    self.record.attach = left;
                }
            }
            Operation::Stage | Operation::Unstage => {
                if let Some(left) = after_failure(&self.record.stage, is_certain) {
                    self.record.stage = left;
                }
            }
            Operation::Publish(id) | Operation::Unpublish(id) => {
                if let Some(claim) = self.claims.get_mut(id)
                    && let Some(left) = after_failure(&claim.record.publish, is_certain)
                {
                    claim.record.publish = left;
                }
                if is_certain {
                    self.keep_claim(&id.clone(), cx);
                }
                return;
            }
            Operation::Create
            | Operation::Delete
            | Operation::LookAtStage
            | Operation::LookAt(_)
            | Operation::LookAtAbandoned(_)
            | Operation::UnpublishAbandoned(_)
            | Operation::Order(..) => return,
        }
        if is_certain {
            self.keep_volume(cx);
            self.withdraw_publish(cx);
        }
    }
}

/// The reason of a failed operation, with the operation's name unless the error of a call begins with that name already.
pub(super) fn named(what: &Operation, reason: &str) -> String {
    if let Operation::LookAtAbandoned(path) = what {
        return format!("at {}: {reason}", path.display());
    }
    let name = what.name();
    if reason.starts_with(name) { reason.to_owned() } else { format!("{name}: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_call_stands_once_in_its_error() {
        let call = "NodeStageVolume on csi-node/zfs failed";
        assert_eq!(named(&Operation::Stage, call), call);
        assert_eq!(named(&Operation::Stage, "no room"), "NodeStageVolume: no room");
    }
}
