//! Handles orders: each is on disk before its first call and until its outcome is certain, and is called again after any interruption.

use super::controller_orders::group_status;
use super::lifecycle::Exists;
use super::messages::VolumeAnswer;
use super::news::{OrderStatus, VolumeNews};
use super::operation::Operation;
use super::order::{Order, OrderCall, OrderRecord, OrderResult};
use super::order_messages::{Done, OrderError, PlaceOrder};
use super::ordered::Ordered;
use super::outcome::{Failure, Known, VolumeCall, VolumeOutcome};
use super::planning::Need;
use super::record::{Intent, Step, Towards, VolumeChange};
use super::state::{Flight, Volume, VolumeTimer};
use super::steps::Begun;
use crate::csi::Call;
use crate::kernel::{AskId, CallLost, StepContext};
use crate::vocabulary::text::escaped;
use crate::vocabulary::{Generation, Timestamp};

impl Volume {
    /// Accepts an order, or repeats one.
    pub(super) fn place_order(
        &mut self,
        (id, asked_at): (AskId, Timestamp),
        asked: &PlaceOrder,
        cx: &mut StepContext<Self>,
    ) {
        let PlaceOrder { order, within } = asked;
        if let Err(error) = self.admit_order(order) {
            cx.reply(id, VolumeAnswer::PlaceOrder(Err(error)));
            return;
        }
        cx.start_timer(VolumeTimer::Waiter(id), asked_at + *within);
        if let Some(ordered) =
            self.orders.iter_mut().find(|ordered| ordered.record.order.is_asked_for_by(order))
        {
            ordered.tries.is_held = false;
            ordered.waiters.push(id);
            return;
        }
        let record = OrderRecord {
            number: self.orders.last().map_or(1, |last| last.record.number + 1),
            volume_id: self.record.spec.volume_id.clone(),
            order: order.clone(),
            capability: self.capability(),
            at_controller: Step::Down,
            on_node: Step::Down,
        };
        let mut ordered = Ordered::new(record);
        ordered.waiters.push(id);
        // Before any call is made for it, it is on disk (V5).
        cx.persist(VolumeChange::KeepOrder(ordered.record.clone()));
        self.orders.push(ordered);
    }

    /// Whether this order was placed, and is not done.
    pub(super) fn is_ordered(&self, order: &Order) -> bool {
        self.orders.iter().any(|ordered| ordered.record.order.is_asked_for_by(order))
    }

    /// Whether an order is not done and does not wait for the next claim.
    pub(super) fn has_open_orders(&self) -> bool {
        self.orders.iter().any(|ordered| !self.is_resting(ordered))
    }

    fn admit_order(&self, order: &Order) -> Result<(), OrderError> {
        let (volume, what) = (self.record.spec.key.clone(), order.to_string());
        if self.stopping.is_some() {
            return Err(OrderError::Stopping { volume, what });
        }
        if let Some(state) = self.exists().why_unclaimed() {
            let is_deletion = matches!(order, Order::DeleteSnapshot { .. } | Order::DeleteGroup { .. });
            let state = match self.exists() {
                Exists::BeingDeleted if is_deletion => {
                    "it is being deleted; name another volume of the plugin"
                }
                _ => state,
            };
            let is_transient = self.exists().is_changing();
            return Err(OrderError::NotThere { volume, what, state, is_transient });
        }
        let (orders, waiting) = (self.orders.len(), self.waiting());
        let is_known = self.is_ordered(order);
        let is_full = !is_known && orders >= self.config.options.orders_max;
        if is_full || waiting >= self.config.options.waiting_max {
            return Err(OrderError::Full { volume, orders, waiting });
        }
        if is_known {
            return Ok(());
        }
        let is_before = |ordered: &&Ordered| ordered.stands_before(order) && !self.is_resting(ordered);
        let before = self.orders.iter().find(is_before);
        if let Some(before) = before {
            let before = before.record.order.to_string();
            return Err(OrderError::Another { volume, what, before });
        }
        if matches!(order, Order::DeleteGroup { snapshot_ids, .. } if snapshot_ids.is_empty()) {
            return Err(OrderError::NotOrdered { volume, what });
        }
        if let Err(fault) = order.check(&self.record.spec.volume_id) {
            return Err(OrderError::Invalid { volume, what, reason: fault.to_string() });
        }
        match order {
            Order::Expand { .. } => self.admit_expansion(order, what),
            Order::TakeSnapshot { .. }
            | Order::DeleteSnapshot { .. }
            | Order::Modify { .. }
            | Order::TakeGroup(_)
            | Order::DeleteGroup { .. } => self.admit_at_controller(order, what),
        }
    }

    // === The next call ===

    /// The remaining need of an order.
    pub(super) fn order_need(&self, ordered: &Ordered) -> Need<()> {
        match ordered.record.order {
            Order::Expand { .. } => self.expansion_need(&ordered.record),
            Order::TakeSnapshot { .. }
            | Order::DeleteSnapshot { .. }
            | Order::Modify { .. }
            | Order::TakeGroup(_)
            | Order::DeleteGroup { .. } => self.controller_need(ordered),
        }
    }

    /// Whether nothing is to be done about an order before the next claim.
    pub(super) fn is_resting(&self, ordered: &Ordered) -> bool {
        let is_expansion = matches!(ordered.record.order, Order::Expand { .. });
        is_expansion && self.claims.is_empty() && self.is_next_on_node(&ordered.record)
    }

    /// Answers callers whose orders are done to the extent that is possible now.
    pub(super) fn settle_orders(&mut self, cx: &mut StepContext<Self>) {
        if self.record.existence.is_none() {
            return self.drop_orders(cx);
        }
        for number in self.orders_that(|ordered| self.needs_no_node(&ordered.record)) {
            let done = self.expanded(number, false);
            self.finish_order(number, &Ok(done), cx);
        }
        for number in self.orders_that(|ordered| self.is_resting(ordered)) {
            let done = self.expanded(number, true);
            self.answer_order(number, &Ok(done), cx);
        }
    }

    /// The volume does not exist: its orders can no longer be done.
    fn drop_orders(&mut self, cx: &mut StepContext<Self>) {
        for number in self.orders_that(|_| true) {
            let what = self.what(number);
            let (volume, state) = (self.record.spec.key.clone(), "it does not exist any more");
            let error = OrderError::NotThere { volume, what, state, is_transient: false };
            self.finish_order(number, &Err(error), cx);
        }
    }

    // === Calls ===

    pub(super) fn begin_order(
        &mut self,
        number: u64,
        call: Call,
        generation: Generation,
        cx: &mut StepContext<Self>,
    ) -> Option<Begun> {
        let grow = self.grow_args(number);
        let ordered = self.ordered_mut(number)?;
        let record = &mut ordered.record;
        let (call, was_unknown) = if call == Call::NodeExpandVolume {
            let was_unknown = !record.on_node.is_down();
            let args = grow?;
            record.on_node = Step::GoingUp(Intent { args: args.clone(), generation });
            (OrderCall::Grow(args), was_unknown)
        } else {
            let was_unknown = !record.at_controller.is_down();
            let intent = record.at_controller.intent().cloned().unwrap_or(Intent { args: (), generation });
            record.at_controller = Step::GoingUp(intent);
            (ordered.args_of(call), was_unknown)
        };
        cx.persist(VolumeChange::KeepOrder(ordered.record.clone()));
        Some((VolumeCall::Order(self.record.spec.clone(), generation, call), was_unknown))
    }

    pub(super) fn order_returned(
        &mut self,
        flight: &Flight,
        outcome: &Result<VolumeOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        let Operation::Order(number, call) = flight.what else { return };
        let is_on_node = call == Call::NodeExpandVolume;
        let Some(ordered) = self.ordered_mut(number) else {
            // It was forgotten by force while the call was in flight.
            return;
        };
        let record = &mut ordered.record;
        let is_in_flight = match is_on_node {
            true => matches!(record.on_node, Step::GoingUp(_)),
            false => matches!(record.at_controller, Step::GoingUp(_)),
        };
        if !is_in_flight {
            return;
        }
        match (brought(outcome), done_by(call)) {
            (Ok(OrderResult::Expanded { capacity_bytes, is_node_next }), _) if !is_on_node => {
                self.note_expanded(number, capacity_bytes, is_node_next, cx);
            }
            (Ok(OrderResult::Grown { capacity_bytes }), _) if is_on_node => {
                self.note_grown(number, capacity_bytes, cx);
            }
            (Ok(OrderResult::Snapshot(snapshot)), _) if call == Call::CreateSnapshot => {
                self.snapshot_taken(number, snapshot, cx);
            }
            (Ok(OrderResult::Group(group)), _)
                if matches!(call, Call::CreateVolumeGroupSnapshot | Call::GetVolumeGroupSnapshot) =>
            {
                self.group_taken(number, group, cx);
            }
            (Ok(OrderResult::Nothing), Some(done)) => self.finish_order(number, &Ok(done), cx),
            (Err(failure), Some(done)) if call.is_undo() && failure.known == Known::Absent => {
                self.deletion_denied(flight, (number, done), failure, cx);
            }
            (Ok(_), _) => self.order_failed(flight, number, &another(), cx),
            (Err(failure), _) => {
                if call == Call::GetVolumeGroupSnapshot {
                    self.group_not_told(number, &failure);
                }
                self.order_failed(flight, number, &failure, cx);
            }
        }
    }

    pub(super) fn order_failed(
        &mut self,
        flight: &Flight,
        number: u64,
        failure: &Failure,
        cx: &mut StepContext<Self>,
    ) {
        let is_certain = failure.known != Known::Unclear && !flight.was_unknown;
        let is_final = matches!(failure.known, Known::Refused | Known::Unsupported);
        let is_spent = self.try_failed(cx.moment(), &flight.what, failure);
        let (volume, what, reason) =
            (self.record.spec.key.clone(), self.what(number), failure.reason.clone());
        let Some(ordered) = self.ordered_mut(number) else {
            return;
        };
        let record = &mut ordered.record;
        if let Step::GoingUp(intent) = record.on_node.clone() {
            record.on_node = if is_certain { Step::Down } else { Step::Unknown(Towards::Up, intent) };
            if is_final {
                // Growing has no inverse, and is never repeated by itself (C152).
                let error = OrderError::NotOnNode { volume, what, reason };
                self.fail_order(number, &error, cx);
            } else if is_certain {
                self.keep_order(number, cx);
            }
            return;
        }
        let Step::GoingUp(intent) = record.at_controller.clone() else { return };
        record.at_controller = if is_certain { Step::Down } else { Step::Unknown(Towards::Up, intent) };
        match is_certain {
            true if is_final || is_spent => {
                let error = OrderError::Refused { volume, what, reason };
                self.fail_order(number, &error, cx);
            }
            true => self.keep_order(number, cx),
            // A refusal after an unclear try proves nothing about that try (C017).
            false if is_final => {
                ordered.tries.is_held = true;
                self.answer_order(number, &Err(OrderError::Unclear { volume, what, reason }), cx);
            }
            // Unknown needs no write: an intent on disk means the same after a restart.
            false => {}
        }
    }

    // === The ledger and the callers ===

    pub(super) fn keep_order(&self, number: u64, cx: &mut StepContext<Self>) {
        if let Some(ordered) = self.ordered(number) {
            cx.persist(VolumeChange::KeepOrder(ordered.record.clone()));
        }
    }

    pub(super) fn fail_order(&mut self, number: u64, error: &OrderError, cx: &mut StepContext<Self>) {
        let what = self.what(number);
        self.finish_order(number, &Err(error.clone()), cx);
        cx.publish(VolumeNews::OrderFailed { what, reason: error.to_string() });
    }

    /// The outcome of an order is certain: the order is forgotten before any caller is answered.
    pub(super) fn finish_order(
        &mut self,
        number: u64,
        result: &Result<Done, OrderError>,
        cx: &mut StepContext<Self>,
    ) {
        cx.persist(VolumeChange::ForgetOrder(number));
        self.answer_order(number, result, cx);
        self.orders.retain(|ordered| ordered.record.number != number);
    }

    fn answer_order(&mut self, number: u64, result: &Result<Done, OrderError>, cx: &mut StepContext<Self>) {
        let ordered = self.ordered_mut(number);
        let waiters = ordered.map(|ordered| std::mem::take(&mut ordered.waiters));
        for waiter in waiters.into_iter().flatten() {
            self.answer(waiter, VolumeAnswer::PlaceOrder(result.clone()), cx);
        }
    }

    /// The order with this number, in words.
    pub(super) fn what(&self, number: u64) -> String {
        let ordered = self.ordered(number);
        ordered.map_or_else(String::new, |ordered| ordered.record.order.to_string())
    }

    /// The host stops: orders that were begun are in the ledger.
    pub(super) fn stop_orders(&mut self, cx: &mut StepContext<Self>) {
        for number in self.orders_that(|_| true) {
            let (volume, what) = (self.record.spec.key.clone(), self.what(number));
            self.answer_order(number, &Err(OrderError::Stopping { volume, what }), cx);
        }
    }

    /// The time of a caller is over, if the caller waits for an order.
    pub(super) fn gave_up_on_order(&mut self, id: AskId) -> Option<VolumeAnswer> {
        let (volume, doing) = (self.record.spec.key.clone(), self.doing());
        let ordered = self.orders.iter_mut().find(|ordered| ordered.waiters.contains(&id))?;
        ordered.waiters.retain(|waiter| *waiter != id);
        let what = ordered.record.order.to_string();
        Some(VolumeAnswer::PlaceOrder(Err(OrderError::Pending { volume, what, doing })))
    }

    /// Forgets by force orders without a certain outcome. Returns their numbers, and what may be left.
    pub(super) fn forget_orders(&mut self) -> (Vec<u64>, Vec<String>) {
        let is_open = |ordered: &&Ordered| !self.is_resting(ordered);
        let left = |ordered: &Ordered| {
            let id = ordered.taken.as_ref().map(|taken| format!(", with the id {}", escaped(taken.id())));
            format!("\"{}\" is {}{}", ordered.record.order, ordered.state(), id.unwrap_or_default())
        };
        let open = self.orders.iter().filter(is_open);
        open.map(|ordered| (ordered.record.number, left(ordered))).unzip()
    }

    /// These orders were forgotten by force: their callers are answered with what may be left.
    pub(super) fn answer_forced_orders(
        &mut self,
        numbers: &[u64],
        left: &[String],
        cx: &mut StepContext<Self>,
    ) {
        for number in numbers {
            let (volume, what, left) = (self.record.spec.key.clone(), self.what(*number), left.join("; "));
            self.answer_order(*number, &Err(OrderError::Forced { volume, what, left }), cx);
        }
        self.orders.retain(|ordered| !numbers.contains(&ordered.record.number));
    }

    pub(super) fn order_statuses(&self) -> Vec<OrderStatus> {
        let status = |ordered: &Ordered| OrderStatus {
            what: ordered.record.order.to_string(),
            state: ordered.state(),
            is_resting: self.is_resting(ordered),
            error: ordered.tries.error.as_deref().map(str::to_owned),
            snapshot: ordered.record.order.snapshot_name().map(str::to_owned),
            group: group_status(ordered),
        };
        self.orders.iter().map(status).collect()
    }
}

/// The result when this call has succeeded, if the call determines it alone.
const fn done_by(call: Call) -> Option<Done> {
    match call {
        Call::DeleteSnapshot => Some(Done::SnapshotDeleted),
        Call::ControllerModifyVolume => Some(Done::Modified),
        Call::DeleteVolumeGroupSnapshot => Some(Done::GroupDeleted),
        _ => None,
    }
}

fn another() -> Failure {
    Failure { known: Known::Unclear, reason: "the reply does not match the call".to_owned() }
}

/// The result of the call of an order.
fn brought(outcome: &Result<VolumeOutcome, CallLost>) -> Result<OrderResult, Failure> {
    match outcome {
        Ok(VolumeOutcome::Ordered(brought)) => brought.clone(),
        Ok(_) => Err(another()),
        Err(lost @ CallLost::Busy(_)) => Err(Failure { known: Known::NotMade, reason: lost.to_string() }),
        Err(lost) => Err(Failure { known: Known::Unclear, reason: lost.to_string() }),
    }
}
