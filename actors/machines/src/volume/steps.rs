//! Begins an operation: its intent is written with the exact arguments, and then the call is made (V1, V5).

use super::before::Before;
use super::operation::Operation;
use super::outcome::VolumeCall;
use super::planning::Need;
use super::record::{AttachArgs, Intent, Step, Towards};
use super::state::{Claim, Flight, Volume};
use crate::kernel::{CallKey, StepContext};
use crate::vocabulary::{AllocationId, Generation};

/// The call of an operation, and whether its step was unknown before.
pub(super) type Begun = (VolumeCall, bool);

impl Volume {
    /// Begins an operation that [`next_operation`](Self::next_operation) has found.
    pub(super) fn begin(&mut self, what: Operation, cx: &mut StepContext<Self>) {
        let generation = self.generation(&what);
        let begun = match &what {
            Operation::Create => self.begin_create(generation, cx),
            Operation::Delete => self.begin_delete(generation, cx),
            Operation::Attach => self.begin_attach(generation, cx),
            Operation::Stage => self.begin_stage(generation, cx),
            Operation::Publish(id) => self.begin_publish(id, generation, cx),
            Operation::Detach | Operation::Unstage => self.begin_undo(&what, generation, cx),
            Operation::Unpublish(id) => self.begin_unpublish(id, generation, cx),
            Operation::Order(number, call) => self.begin_order(*number, *call, generation, cx),
            Operation::LookAtStage => {
                let path = self.record.stage.intent().map(|intent| intent.args.staging_path.clone());
                path.map(|path| (VolumeCall::Look { path, staging: None }, false))
            }
            Operation::LookAtAbandoned(path) => {
                Some((VolumeCall::Look { path: path.clone(), staging: None }, false))
            }
            Operation::UnpublishAbandoned(path) => {
                let spec = self.record.spec.clone();
                Some((VolumeCall::Unpublish(spec, generation, path.clone()), true))
            }
            Operation::LookAt(id) => self.claims.get(id).map(|claim| {
                let path = claim.record.target_path.clone();
                let staging =
                    claim.record.publish.intent().and_then(|intent| intent.args.staging_path.clone());
                (VolumeCall::Look { path, staging }, false)
            }),
        };
        let Some((call, was_unknown)) = begun else { return };
        if let Some(tries) = self.tries(&what) {
            tries.begin(what.towards());
        }
        self.attempt = self.attempt.next();
        let options = &self.config.options;
        let deadline = if call.csi().is_some() { options.call_deadline } else { options.look_deadline };
        cx.call(CallKey { generation, attempt: self.attempt }, deadline, call);
        self.flight = Some(Flight { attempt: self.attempt, what, was_unknown });
    }

    /// The present generation of the half that serves an operation.
    fn generation(&self, what: &Operation) -> Generation {
        let Some(route) = &self.route else { return Generation::default() };
        let half = match what.is_at_controller() {
            true => route.controller.as_ref().map(|half| half.generation),
            false => route.node.as_ref().map(|half| half.generation),
        };
        half.unwrap_or_default()
    }

    /// The first claim that is not set up: all claims have the same capability.
    pub(super) fn first_wanted(&self) -> Option<&Claim> {
        let is_open = |claim: &&Claim| claim.is_wanted() && !claim.record.publish.is_up();
        self.in_order().into_iter().find(is_open)
    }

    fn begin_attach(&mut self, generation: Generation, cx: &mut StepContext<Self>) -> Option<Begun> {
        let was_unknown = !self.record.attach.is_down();
        let intent = match self.record.attach.intent() {
            // A retry repeats the same arguments (C013).
            Some(intent) => intent.clone(),
            None => {
                let capability = self.asked_as(&self.first_wanted()?.record.usage).capability;
                let node_id = self.route.as_ref()?.node.as_ref()?.node_id.clone()?;
                Intent { args: AttachArgs { node_id, capability }, generation }
            }
        };
        self.record.attach = Step::GoingUp(intent.clone());
        self.keep_attaching(cx);
        self.keep_attachment_of_claims(cx);
        let next = self.announced.as_ref().map(|staging| staging.args.staging_path.clone());
        Some((VolumeCall::Attach(self.record.spec.clone(), generation, intent.args, next), was_unknown))
    }

    fn begin_stage(&mut self, generation: Generation, cx: &mut StepContext<Self>) -> Option<Begun> {
        let was_unknown = !self.record.stage.is_down();
        let intent = match self.record.stage.intent() {
            Some(intent) => intent.clone(),
            None => {
                let usage = &self.asked_as(&self.first_wanted()?.record.usage);
                let Need::Met(publish_context) = self.attachment(usage) else { return None };
                let args = self.config.layout.stage_args(&self.record.spec.key, usage, publish_context);
                Intent { args, generation }
            }
        };
        self.keep_staging(&intent, cx);
        let next = self.claims.values().find_map(|claim| claim.announced.as_ref());
        let next = next.map(|publishing| publishing.args.target_path.clone());
        Some((
            VolumeCall::Stage(self.record.spec.clone(), generation, intent.args, before(was_unknown), next),
            was_unknown,
        ))
    }

    fn begin_publish(
        &mut self,
        id: &AllocationId,
        generation: Generation,
        cx: &mut StepContext<Self>,
    ) -> Option<Begun> {
        let claim = self.claims.get(id)?;
        let was_unknown = !claim.record.publish.is_down();
        let intent = match (claim.record.publish.intent(), self.publish_args(claim)) {
            (Some(intent), _) => intent.clone(),
            (None, Need::Met(args)) => Intent { args, generation },
            (None, Need::Operation(_) | Need::Waits(_)) => return None,
        };
        match claim.announced.as_ref().is_some_and(|announced| announced.foretells(&intent)) {
            // The intent is in the ledger since an earlier step began.
            true => self.goes(id, Step::GoingUp(intent.clone())),
            false => self.go(id, Step::GoingUp(intent.clone()), cx),
        }
        let before = before(was_unknown);
        Some((VolumeCall::Publish(self.record.spec.clone(), generation, intent.args, before), was_unknown))
    }

    fn begin_unpublish(
        &mut self,
        id: &AllocationId,
        generation: Generation,
        cx: &mut StepContext<Self>,
    ) -> Option<Begun> {
        let intent = self.claims.get(id)?.record.publish.intent()?.clone();
        let path = intent.args.target_path.clone();
        self.go(id, Step::GoingDown(intent), cx);
        Some((VolumeCall::Unpublish(self.record.spec.clone(), generation, path), true))
    }

    fn begin_undo(
        &mut self,
        what: &Operation,
        generation: Generation,
        cx: &mut StepContext<Self>,
    ) -> Option<Begun> {
        let spec = self.record.spec.clone();
        let call = if *what == Operation::Unstage {
            let intent = self.record.stage.intent()?.clone();
            self.record.stage = Step::GoingDown(intent.clone());
            self.withdraw_publish(cx);
            VolumeCall::Unstage(spec, generation, intent.args)
        } else {
            let intent = self.record.attach.intent()?.clone();
            self.record.attach = Step::GoingDown(intent.clone());
            VolumeCall::Detach(spec, generation, intent.args)
        };
        self.keep_volume(cx);
        Some((call, true))
    }
}

const fn before(was_unknown: bool) -> Before {
    if was_unknown { Before::Unknown } else { Before::Down }
}

/// The state of a step after a failed call (V4).
pub(super) fn after_failure<A: Clone, P>(step: &Step<A, P>, is_certain: bool) -> Option<Step<A, P>> {
    match step {
        Step::GoingUp(_) if is_certain => Some(Step::Down),
        Step::GoingUp(intent) => Some(Step::Unknown(Towards::Up, intent.clone())),
        Step::GoingDown(intent) => Some(Step::Unknown(Towards::Down, intent.clone())),
        // It was forgotten by force while the call was in flight.
        Step::Down | Step::Up(..) | Step::Unknown(..) => None,
    }
}
