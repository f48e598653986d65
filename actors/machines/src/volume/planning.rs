//! Chooses the next operation of a volume: one at a time, in the order of V3.

use std::path::PathBuf;

use super::operation::Operation;
use super::record::{PublishArgs, StageArgs, Step, Usage};
use super::state::{Claim, Volume};
use super::waits::Wait;
use crate::csi::Context;
use crate::kernel::StopMode;
use crate::vocabulary::Timestamp;

/// The remaining need of a claim for a step.
pub(super) enum Need<T> {
    /// Nothing: the step has this result.
    Met(T),
    /// This operation comes first.
    Operation(Operation),
    /// Another condition must be met first.
    Waits(Wait),
}

impl Volume {
    /// The first of these operations that can begin now.
    pub(super) fn next_operation(&self, wanted: &[Operation], now: Timestamp) -> Option<Operation> {
        wanted.iter().find(|wanted| self.may_begin(wanted, now)).cloned()
    }

    /// All operations to be done, the most urgent one first; none while one is in flight. Operations that free capacity precede those that
    /// take it.
    pub(super) fn wanted_operations(&self) -> Vec<Operation> {
        if self.flight.is_some() || self.stopping == Some(StopMode::Detach) || self.is_out_of_time {
            return Vec::new();
        }
        let claims = self.in_order();
        let is_undone = |claim: &&&Claim| {
            !claim.record.publish.is_down() && (claim.is_released() || claim.is_stale && claim.is_wanted())
        };
        let undone = claims.iter().filter(is_undone);
        let mut operations: Vec<_> =
            undone.map(|claim| Operation::Unpublish(claim.record.allocation.clone())).collect();
        let is_unused = self.claims.is_empty() && self.lost.is_empty();
        if is_unused || self.stopping.is_none() {
            operations.extend(self.abandoned_operations());
        }
        if is_unused {
            operations.extend(self.down_operation());
        }
        if self.stopping.is_none() {
            operations.extend(self.existence_operation());
            let wanted = claims.iter().filter(|claim| claim.is_wanted() && !claim.is_stale);
            operations.extend(wanted.filter_map(|claim| match self.need(claim) {
                Need::Operation(next) => Some(next),
                Need::Met(()) | Need::Waits(_) => None,
            }));
            // Claims precede orders: they tolerate less delay.
            operations.extend(self.orders.iter().filter_map(|ordered| match self.order_need(ordered) {
                Need::Operation(next) => Some(next),
                Need::Met(()) | Need::Waits(_) => None,
            }));
        }
        operations
    }

    /// The next undo of the state that claims share (V3).
    fn down_operation(&self) -> Option<Operation> {
        let shared = match (self.record.stage.is_down(), self.record.attach.is_down()) {
            (false, _) => Operation::Unstage,
            (true, false) => Operation::Detach,
            (true, true) => return None,
        };
        // A claim that was given up by force may still be published above it (C131).
        match self.abandoned.is_empty() {
            true => Some(shared),
            false => self.abandoned_operations().next(),
        }
    }

    /// Whether the half of the plugin for it is there, and it does not have to wait for its next try.
    fn may_begin(&self, wanted: &Operation, now: Timestamp) -> bool {
        let has_node = || self.node().is_some();
        let has_controller = || self.route.as_ref().is_some_and(|route| route.controller.is_some());
        let is_reachable = match wanted {
            Operation::LookAtStage | Operation::LookAt(_) | Operation::LookAtAbandoned(_) => true,
            other if other.is_at_controller() => has_controller(),
            _ => has_node(),
        };
        let tries = self.tries_of(wanted);
        is_reachable && !tries.is_some_and(|tries| tries.waits(wanted.towards(), now))
    }

    /// The next operation of a claim, until its mount is proven.
    pub(super) fn need(&self, claim: &Claim) -> Need<()> {
        let id = &claim.record.allocation;
        if claim.record.publish.is_down()
            && let Some(first) = self.abandoned_operation_at(&claim.record.target_path)
        {
            return Need::Operation(first);
        }
        match &claim.record.publish {
            Step::Up(..) if claim.is_proven => Need::Met(()),
            Step::Up(..) => Need::Operation(Operation::LookAt(id.clone())),
            Step::GoingUp(_) | Step::GoingDown(_) => Need::Waits(Wait::InFlight),
            // Nothing is set up below a possible publication with a mode that the plugin no longer knows (C138, C154).
            Step::Unknown(_, intent) if self.asked_as(&claim.record.usage) != intent.args.usage => {
                Need::Operation(Operation::Unpublish(id.clone()))
            }
            Step::Down | Step::Unknown(..) => match self.publish_args(claim) {
                // The state below it has to be undone, and only unknown publications block that (V3).
                Need::Waits(Wait::Others) if self.is_in_the_way(claim) => {
                    Need::Operation(Operation::Unpublish(id.clone()))
                }
                Need::Waits(why) => Need::Waits(why),
                Need::Operation(first) => Need::Operation(first),
                Need::Met(args) => match &claim.record.publish {
                    // A step that may be set up with other arguments is undone first (C138).
                    Step::Unknown(_, intent) if intent.args != args => {
                        Need::Operation(Operation::Unpublish(id.clone()))
                    }
                    _ => Need::Operation(Operation::Publish(id.clone())),
                },
            },
        }
    }

    /// Whether this claim may be published, while no claim is published for certain.
    fn is_in_the_way(&self, claim: &Claim) -> bool {
        let is_up = |other: &Claim| !matches!(other.record.publish, Step::Down | Step::Unknown(..));
        !claim.record.publish.is_down()
            && self.lost.is_empty()
            && !self.claims.values().any(|other| is_up(other))
    }

    /// The arguments with which a claim is published, once all earlier steps are up.
    pub(super) fn publish_args(&self, claim: &Claim) -> Need<PublishArgs> {
        if self.is_expanded_offline() {
            return Need::Waits(Wait::Expansion);
        }
        let usage = &self.asked_as(&claim.record.usage);
        let publish_context = match self.attachment(usage) {
            Need::Met(context) => context,
            Need::Operation(first) => return Need::Operation(first),
            Need::Waits(why) => return Need::Waits(why),
        };
        let staging_path = match self.staging(usage, &publish_context) {
            Need::Met(path) => path,
            Need::Operation(first) => return Need::Operation(first),
            Need::Waits(why) => return Need::Waits(why),
        };
        Need::Met(PublishArgs {
            target_path: claim.record.target_path.clone(),
            staging_path,
            publish_context,
            usage: usage.clone(),
        })
    }

    /// The publish context of the attachment; an empty one if the plugin attaches nothing (C121, C127).
    pub(super) fn attachment(&self, usage: &Usage) -> Need<Context> {
        match &self.record.attach {
            Step::Up(intent, context) if intent.args.capability == usage.capability => {
                Need::Met(context.clone())
            }
            Step::Unknown(_, intent) if intent.args.capability == usage.capability && self.may_attach() => {
                Need::Operation(Operation::Attach)
            }
            Step::Up(..) | Step::Unknown(..) => self.undo_first(),
            Step::GoingUp(_) | Step::GoingDown(_) => Need::Waits(Wait::InFlight),
            Step::Down => {
                let Some(route) = &self.route else { return Need::Waits(Wait::Route) };
                match (&route.node, &route.controller) {
                    (None, _) => Need::Waits(Wait::Node),
                    (Some(node), _) if !node.requires_controller => Need::Met(Context::new()),
                    (Some(_), None) => Need::Waits(Wait::Controller),
                    (Some(_), Some(controller)) if !controller.attaches => Need::Met(Context::new()),
                    (Some(node), Some(_)) if node.node_id.is_none() => Need::Waits(Wait::NodeId),
                    (Some(_), Some(_)) => Need::Operation(Operation::Attach),
                }
            }
        }
    }

    /// Whether the present controller attaches; a controller that is away may attach (C070, V16).
    fn may_attach(&self) -> bool {
        let controller = self.controller();
        controller.is_none_or(|controller| controller.attaches)
    }

    /// The staging path for a publication; `None` if the plugin does not stage (C122, C135).
    fn staging(&self, usage: &Usage, context: &Context) -> Need<Option<PathBuf>> {
        let Some(route) = &self.route else { return Need::Waits(Wait::Route) };
        let Some(node) = &route.node else { return Need::Waits(Wait::Node) };
        let fits = |args: &StageArgs| {
            args.capability == usage.capability && args.publish_context == *context && !self.is_stage_stale
        };
        match &self.record.stage {
            Step::Up(intent, proof) if fits(&intent.args) => {
                if proof.mark.is_some() && !self.is_stage_proven {
                    return Need::Operation(Operation::LookAtStage);
                }
                // The generation that publishes decides whether it is passed on (V16).
                Need::Met(node.stages.then(|| intent.args.staging_path.clone()))
            }
            // A generation that does not stage is never asked to stage; it may still be asked to undo (C120, V16).
            Step::Unknown(_, intent) if fits(&intent.args) && node.stages => {
                Need::Operation(Operation::Stage)
            }
            // Another claim is published without it: an earlier generation may have left it, when the row of the volume was damaged.
            Step::Unknown(..) if !node.stages && self.is_published_unstaged() => Need::Met(None),
            Step::Up(..) | Step::Unknown(..) => self.undo_first(),
            Step::GoingUp(_) | Step::GoingDown(_) => Need::Waits(Wait::InFlight),
            Step::Down if node.stages => Need::Operation(Operation::Stage),
            Step::Down => Need::Met(None),
        }
    }

    /// Whether a claim is published without a staging.
    fn is_published_unstaged(&self) -> bool {
        self.claims.values().any(|claim| match &claim.record.publish {
            Step::Up(intent, _) => intent.args.staging_path.is_none(),
            _ => false,
        })
    }

    /// The state that claims share is undone before it is set up with other arguments, unless it is in use (V3, C138), or may be in use by
    /// a claim that is not confirmed (V14).
    fn undo_first<T>(&self) -> Need<T> {
        let is_confirmed = self.claims.values().all(|claim| !claim.is_provisional);
        match self.down_operation() {
            Some(undo) if is_confirmed && self.are_unpublished() => Need::Operation(undo),
            Some(_) | None => Need::Waits(Wait::Others),
        }
    }
}
