//! Carries out the effects of a volume, and checks them and their results.

use callboard_actors::csi::Context;
use callboard_actors::vocabulary::{AllocationId, Timestamp};
use callboard_machines::volume::{
    Before, ClaimError, Desired, Mark, Origin, PublishArgs, StageArgs, Step, Volume, VolumeAnswer,
    VolumeCall, VolumeNews, VolumeOutcome,
};

use super::super::super::law::Law;
use super::super::super::law_checker::NO_CALLER_WAITS;
use super::super::super::stand_in::Left;
use super::super::node::{StepOf, Sure, step_of};
use super::{Asked, VolumeModel, number_of, target};

impl VolumeModel {
    /// Carries out the effects that have left, and checks them against the laws.
    pub(super) fn carry(&mut self, now: Timestamp) {
        let mut left = Vec::new();
        loop {
            self.cut_what_nobody_awaits();
            self.owner.take_left(&mut left);
            if left.is_empty() {
                break;
            }
            for left in left.drain(..) {
                self.take_in(now, left);
            }
        }
        if self.audits.1 > self.audits.0 {
            self.violation(Law::V9, || "something is forced without an audit".to_owned());
        }
        self.check_existence();
        self.check_next();
        self.verdict.heard_of(self.owner.checker.verdict.broken());
    }

    /// The machine was rebuilt: its calls are cut.
    fn cut_what_nobody_awaits(&mut self) {
        let is_awaited = self.node.in_flight.as_ref().is_none_or(|call| self.owner.awaits(call.number));
        if !is_awaited {
            self.node.cut(self.cut_takes_effect);
        }
    }

    fn take_in(&mut self, now: Timestamp, left: Left<Volume>) {
        match left {
            Left::Answer(Some(asker), answer) => match self.unanswered.remove(&asker) {
                Some(asked) => self.answered(now, asked, &answer),
                None => self.violation(Law::Shell7, || format!("question {asker} was answered twice")),
            },
            Left::Refused(asker, _) => match self.unanswered.remove(&asker) {
                Some(asked) => self.refused(asked),
                None => self.violation(Law::Shell7, || format!("question {asker} was answered twice")),
            },
            Left::Answer(None, _) => self.violation(Law::Shell7, || NO_CALLER_WAITS.to_owned()),
            Left::News(_, VolumeNews::Forced(_)) => {
                self.audits.0 += 1;
                self.published += 1;
            }
            Left::News(_, VolumeNews::ClaimFailed { allocation, .. }) => {
                if let Some(user) = number_of(&allocation).and_then(|number| self.users.get_mut(&number)) {
                    (user.is_holding, user.is_pending, user.has_failed) = (false, false, true);
                }
            }
            Left::Call { number, call, .. } => self.called(now, number, call),
            // The shell answers the callers that still wait.
            Left::Ended(_) => self.unanswered.clear(),
            Left::News(_, VolumeNews::Changed(status)) => self.told_status(&status),
            Left::News(_, VolumeNews::OrderFailed { .. } | VolumeNews::MountLost { .. })
            | Left::Snapshot(..) => {}
        }
    }

    // === Answers ===

    fn answered(&mut self, now: Timestamp, asked: Asked, answer: &VolumeAnswer) {
        match (asked, answer) {
            (Asked::Claim(number, round, until), VolumeAnswer::Claim(Ok(_)))
                if self.is_present(number, round) =>
            {
                self.claimed(now, number, until);
            }
            (Asked::Claim(number, round, _), VolumeAnswer::Claim(Err(ClaimError::Pending { .. }))) => {
                let is_present = self.is_present(number, round);
                if let Some(user) = self.users.get_mut(&number) {
                    user.is_pending = is_present && !user.has_failed;
                }
            }
            (Asked::Release, VolumeAnswer::Release(Ok(released))) => {
                let left = self.node.maybe_up().find(|step| **step != StepOf::Exist).cloned();
                if let Some(left) = left.filter(|_| released.others.is_empty()) {
                    self.violation(Law::V9, || {
                        format!("everything is told to be released, and {left:?} may be up")
                    });
                }
            }
            (Asked::Force | Asked::GiveUp, VolumeAnswer::ForceRelease(Ok(_))) => {
                self.audits.1 += 1;
                self.note_forced();
            }
            (Asked::Create, VolumeAnswer::CreateVolume(Ok(created))) => self.told_created(created),
            (Asked::Delete, VolumeAnswer::DeleteVolume(Ok(_))) => self.told_deleted(),
            (Asked::Expand, VolumeAnswer::PlaceOrder(Ok(done))) => self.told_done(done),
            (Asked::TakeGroup | Asked::DeleteGroup(_), VolumeAnswer::PlaceOrder(Ok(done))) => {
                self.told_of_group(asked, done);
            }
            _ => {}
        }
    }

    /// Whether an allocation still wants its claim of this round.
    fn is_present(&self, number: u8, round: u8) -> bool {
        self.users.get(&number).is_some_and(|user| user.round == round && !user.is_releasing)
    }

    fn claimed(&mut self, now: Timestamp, number: u8, until: Timestamp) {
        let mut rows = self.owner.store.rows().claims.iter();
        let row = rows.find(|claim| number_of(&claim.allocation) == Some(number));
        let is_sure = row.is_some_and(|row| {
            let step = StepOf::Publish(row.target_path.clone());
            // After a force only the kernel knows.
            let is_up = self.is_forced || self.node.sure(&step) == Sure::Up;
            is_up && self.node.seen(&row.target_path) == Some(true)
        });
        let is_durable = row.is_some_and(|row| row.publish.is_up());
        // The volume may be unstaged by now, but the ledger must not still record its staging as in progress.
        let staging = self.owner.store.rows().volume.as_ref().map(|volume| &volume.stage);
        let is_behind = matches!(staging, Some(Step::GoingUp(_)));
        if !is_sure {
            // A caller whose timeout has elapsed receives an error, whatever happens later.
            let law = if now >= until { Law::V15 } else { Law::V7 };
            self.violation(law, || format!("a{number} is handed what was not seen there"));
        } else if !is_durable {
            self.violation(Law::Shell1, || format!("a{number} is handed what is not on disk"));
        } else if is_behind {
            self.violation(Law::V5, || {
                format!("a{number} is handed what is staged, and the ledger lacks that")
            });
        }
        let holder = self.users.iter().find(|(other, user)| **other != number && user.is_holding);
        if let Some((other, _)) = holder.filter(|_| self.is_single) {
            let other = *other;
            self.violation(Law::V12, || format!("a{number} is given the volume while a{other} holds it"));
        }
        // The mount may have been lost while the answer waited for the disk.
        let has_lost_mount = self.node.mounts().all(|path| *path != target(number, self.is_single));
        if let Some(user) = self.users.get_mut(&number) {
            (user.is_holding, user.is_pending) = (true, false);
            user.has_lost_mount = has_lost_mount;
        }
    }

    // === Calls ===

    fn called(&mut self, now: Timestamp, number: u64, call: VolumeCall) {
        let outcome = match &call {
            VolumeCall::ReadRoute => VolumeOutcome::Route(self.node.route()),
            VolumeCall::AwaitAudits(_) => VolumeOutcome::AuditsLeft,
            VolumeCall::Look { path, .. } => {
                let recorded = self.recorded(path);
                VolumeOutcome::Looked(self.node.look(path, recorded.as_ref()))
            }
            _ => match self.node.refuse_retired(&call) {
                Some(refused) => refused,
                None => {
                    self.check_call(&call);
                    let Some(refused) = self.node.refuse_mounted(&call) else {
                        self.node.called(number, call);
                        return;
                    };
                    refused
                }
            },
        };
        self.owner.returned(Self::moment(now), number, Ok(outcome));
    }

    /// The mount that the ledger records at a path.
    fn recorded(&self, path: &std::path::Path) -> Option<Mark> {
        let rows = self.owner.store.rows();
        let staged = rows.volume.iter().filter_map(|row| match &row.stage {
            Step::Up(intent, proof) if intent.args.staging_path == path => proof.mark.clone(),
            _ => None,
        });
        let published = rows.claims.iter().filter_map(|row| match &row.publish {
            Step::Up(intent, proof) if intent.args.target_path == path => proof.mark.clone(),
            _ => None,
        });
        staged.chain(published).next()
    }

    fn check_call(&mut self, call: &VolumeCall) {
        if self.node.in_flight.is_some() {
            self.violation(Law::V2, || format!("{call:?} is made while another call is in flight"));
        }
        self.check_args(call);
        if let VolumeCall::Order(_, _, order) = call {
            return self.check_order_call(call, order);
        }
        let Some((step, is_up)) = step_of(call) else { return };
        self.check_deletion(call);
        // The call may have been about to leave when its claim was given up.
        let is_leaving = matches!(&step, StepOf::Publish(path) if self.owner.store.takes_leave(path));
        let rows = self.owner.store.rows();
        let owned = rows.claims.iter().find(|claim| StepOf::Publish(claim.target_path.clone()) == step);
        let owner: Option<AllocationId> = owned.map(|claim| claim.allocation.clone());
        let abandoned = rows.abandoned.iter().find(|target| StepOf::Publish(target.path.clone()) == step);
        let left_by: Option<AllocationId> = abandoned.map(|target| target.allocation.clone());
        // Only an undo is called for a target that was given up.
        let is_abandoned = is_leaving || !is_up && left_by.is_some();
        let is_claimed = match &step {
            StepOf::Publish(_) => owner.is_some() || is_abandoned,
            // The existence needs no claim.
            StepOf::Exist => true,
            StepOf::Attach | StepOf::Stage(_) => self.owner.store.had_claims(),
        };
        if is_up && !is_claimed && !self.is_forced {
            self.violation(Law::V1, || format!("{call:?} is made for no claim that is on disk"));
        }
        if !self.is_written(call) && !is_abandoned && !self.is_forced {
            self.violation(Law::V5, || format!("{call:?} is made, and its intent is not on disk"));
        }
        let is_called_down = matches!(
            call,
            VolumeCall::Stage(_, _, _, Before::Down, _) | VolumeCall::Publish(_, _, _, Before::Down)
        );
        let is_given_up = matches!(&step, StepOf::Publish(path) if self.is_given_up(path));
        if is_called_down && self.node.sure(&step) != Sure::Down && !is_given_up && !self.is_forced {
            self.violation(Law::V4, || {
                format!("{call:?} is made as of a step that is down, and it may be up")
            });
        }
        let is_refused = self.node.refuse_mounted(call).is_some();
        if is_up && self.node.is_left_over(&step) && !is_refused && !self.is_forced {
            self.violation(Law::V7, || format!("{call:?} is made over what was given up and is mounted"));
        }
        if let Some((law, wrong)) = self.node.wrong_mode(call) {
            self.violation(law, || format!("{call:?} is made, {wrong}"));
        }
        self.check_order(&step, is_up);
        if !is_leaving {
            self.check_confirmed(call, owner.as_ref(), is_up);
        }
        if let (Some(owner), false) = (owner.or(left_by), is_up) {
            self.check_unused(&owner, &step);
        }
    }

    /// Whether the ledger has the intent of a call, with its arguments (V5). Without a publish context until the ledger has the outcome of
    /// the attachment that returned it.
    fn is_written(&self, call: &VolumeCall) -> bool {
        let rows = self.owner.store.rows();
        let volume = rows.volume.as_ref();
        let existence = volume.and_then(|row| row.existence.as_ref());
        let is_attaching = volume.is_some_and(|row| matches!(row.attach, Step::GoingUp(_)));
        let unknown = Context::new;
        match call {
            VolumeCall::Create(_, _, args) => existence.is_some_and(|existence| {
                let is_same = matches!(&existence.origin, Origin::Created(kept) if kept == args);
                is_same && matches!(existence.step, Step::GoingUp(_))
            }),
            VolumeCall::Delete(..) => {
                existence.is_some_and(|existence| matches!(existence.step, Step::GoingDown(_)))
            }
            VolumeCall::Attach(_, _, args, _) => matches!(
                volume.map(|row| &row.attach), Some(Step::GoingUp(intent)) if intent.args == *args),
            VolumeCall::Detach(_, _, args) => matches!(
                volume.map(|row| &row.attach), Some(Step::GoingDown(intent)) if intent.args == *args),
            VolumeCall::Stage(_, _, args, ..) => matches!(
                volume.map(|row| &row.stage),
                Some(Step::GoingUp(intent)) if intent.args == *args
                    || is_attaching && intent.args == StageArgs { publish_context: unknown(), ..args.clone() }),
            VolumeCall::Unstage(_, _, args) => matches!(
                volume.map(|row| &row.stage), Some(Step::GoingDown(intent)) if intent.args == *args),
            VolumeCall::Publish(_, _, args, _) => rows
                .claims
                .iter()
                .any(|row| matches!(
                    &row.publish,
                    Step::GoingUp(intent) if intent.args == *args
                        || is_attaching && intent.args == PublishArgs { publish_context: unknown(), ..args.clone() })),
            VolumeCall::Unpublish(_, _, path) => rows
                .claims
                .iter()
                .any(|row| matches!(&row.publish, Step::GoingDown(intent) if intent.args.target_path == *path)),
            // The intent of an order is checked with the rest of the order.
            VolumeCall::Order(..)
            | VolumeCall::ReadRoute
            | VolumeCall::Look { .. }
            | VolumeCall::AwaitAudits(_) => true,
        }
    }

    /// While a call is in flight that also creates directories for the next step, the ledger has the intent of that step.
    fn check_next(&mut self) {
        let Some(call) = self.node.in_flight.as_ref().map(|flight| &flight.call) else { return };
        let rows = self.owner.store.rows();
        let is_written = match call {
            VolumeCall::Attach(.., Some(path)) => {
                let staging = rows.volume.as_ref().and_then(|row| row.stage.intent());
                staging.is_some_and(|intent| intent.args.staging_path == *path)
            }
            VolumeCall::Stage(.., Some(path)) => {
                let mut publishing = rows.claims.iter().filter_map(|row| row.publish.intent());
                publishing.any(|intent| intent.args.target_path == *path)
            }
            _ => true,
        };
        if !is_written && !self.is_forced {
            let call = format!("{call:?}");
            self.violation(Law::V5, || {
                format!("with {call} directories are made for a step whose intent is not on disk")
            });
        }
    }

    /// Each step follows the one before it, and is undone in reverse (V3); an unclear step is neither up nor down (V4).
    fn check_order(&mut self, step: &StepOf, is_up: bool) {
        let route = self.node.route();
        let staged = self.node.maybe_up().find(|step| matches!(step, StepOf::Stage(_))).cloned();
        let attaches = route.controller.is_some_and(|controller| controller.attaches);
        let stages = self.node.stages;
        let needed = |step: Option<StepOf>| step.map_or(Sure::Down, |step| self.node.sure(&step));
        let wrong = match (step, is_up) {
            (StepOf::Stage(_), true) if attaches => Some(needed(Some(StepOf::Attach))),
            (StepOf::Publish(_), true) if stages => Some(needed(staged)),
            (StepOf::Publish(_), true) if attaches => Some(needed(Some(StepOf::Attach))),
            _ => None,
        };
        match wrong {
            Some(Sure::Down) => {
                self.violation(Law::V3, || format!("{step:?} is set up before what it needs"))
            }
            Some(Sure::Unsure) => {
                self.violation(Law::V4, || format!("{step:?} is set up on something that is unclear"));
            }
            Some(Sure::Up) | None => {}
        }
        let is_shared = matches!(step, StepOf::Stage(_) | StepOf::Attach);
        let abandoned = self.node.abandoned().filter(|_| is_shared && !is_up);
        if let Some((path, why)) = abandoned.map(|(path, why)| (path.clone(), why)) {
            self.violation(Law::V3, || {
                format!("{step:?} is undone, and {} was given up and {why}", path.display())
            });
        }
        let above = self.node.maybe_up().find(|other| match step {
            StepOf::Exist => !matches!(other, StepOf::Exist),
            StepOf::Attach => matches!(other, StepOf::Stage(_) | StepOf::Publish(_)),
            StepOf::Stage(_) => matches!(other, StepOf::Publish(_)),
            StepOf::Publish(_) => false,
        });
        let Some(above) = above.cloned().filter(|_| !is_up) else { return };
        let law = if self.node.sure(&above) == Sure::Up { Law::V3 } else { Law::V4 };
        self.violation(law, || format!("{step:?} is undone, and {above:?} may be up"));
    }

    /// Unconfirmed claims of an earlier run are left alone (V14).
    fn check_confirmed(&mut self, call: &VolumeCall, owner: Option<&AllocationId>, is_up: bool) {
        if matches!(call, VolumeCall::Create(..) | VolumeCall::Delete(..)) {
            return;
        }
        let claims = &self.owner.store.rows().claims;
        let is_left_alone = match owner {
            Some(owner) => self.unconfirmed.contains(owner),
            // The call was begun for a claim that may have been released since.
            None if is_up && self.has_claimed => false,
            None => {
                let mut held = claims.iter().filter(|claim| claim.desired == Desired::Held || is_up);
                !self.unconfirmed.is_empty() && held.all(|claim| self.unconfirmed.contains(&claim.allocation))
            }
        };
        if is_left_alone {
            self.violation(Law::V14, || format!("{call:?} is made, and the claim is not confirmed"));
        }
    }

    /// Nothing is unpublished under a process, unless nothing of it is left (V8).
    fn check_unused(&mut self, owner: &AllocationId, step: &StepOf) {
        let StepOf::Publish(path) = step else { return };
        let is_handed = |number: u8| *path == target(number, self.is_single);
        let number = number_of(owner).filter(|number| is_handed(*number));
        let user = number.and_then(|number| self.users.get(&number));
        let is_used = user.is_some_and(|user| user.is_holding && !user.has_lost_mount);
        if is_used && self.node.seen(path) != Some(false) {
            self.violation(Law::V8, || format!("{step:?} is undone, and {owner} has processes that use it"));
        }
    }
}
