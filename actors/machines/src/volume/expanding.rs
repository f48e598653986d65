//! Expands a volume: first at the storage, then on this node, where the volume is published (C109 to C113, C149 to C153).

use super::operation::Operation;
use super::order::{GrowArgs, Order, OrderRecord};
use super::order_messages::{Done, Expanded, OrderError};
use super::ordered::Ordered;
use super::outcome::Expands;
use super::planning::Need;
use super::record::{Step, VolumeChange};
use super::state::{Claim, Volume};
use super::waits::Wait;
use crate::csi::{Call, CapacityRange, VolumeCapability};
use crate::kernel::StepContext;

impl Volume {
    /// Whether an expansion of this volume can be ordered, by present knowledge of the volume and its plugin.
    pub(super) fn admit_expansion(&self, order: &Order, what: String) -> Result<(), OrderError> {
        let volume = self.record.spec.key.clone();
        let Some(expands) = self.expands() else { return Ok(()) };
        let holders = self.holders();
        match expands {
            Expands::Not if !self.expands_on_node() => {
                Err(OrderError::Unsupported { volume, what, needed: order.needed() })
            }
            Expands::Offline if !holders.is_empty() => Err(OrderError::InUse { volume, what, holders }),
            Expands::Not | Expands::Offline | Expands::Online => Ok(()),
        }
    }

    /// The condition under which the controller expands volumes; `None` while the controller is away.
    fn expands(&self) -> Option<Expands> {
        let route = self.route.as_ref()?;
        match (&route.controller, &route.node) {
            (Some(controller), _) => Some(controller.expands),
            // A plugin without a controller may do it on the node alone.
            (None, Some(node)) if !node.requires_controller => Some(Expands::Not),
            (None, _) => None,
        }
    }

    fn expands_on_node(&self) -> bool {
        self.node().is_some_and(|node| node.expands)
    }

    // === The next call ===

    /// Whether the call to the node comes next: the controller has answered, or has no such call.
    pub(super) fn is_next_on_node(&self, record: &OrderRecord) -> bool {
        let is_for_node_alone =
            record.at_controller.is_down() && self.expands() == Some(Expands::Not) && self.expands_on_node();
        record.at_controller.is_up() || is_for_node_alone
    }

    /// Whether the controller has answered, and the node half has no such call.
    pub(super) fn needs_no_node(&self, record: &OrderRecord) -> bool {
        let node = self.node();
        record.at_controller.is_up() && record.on_node.is_down() && node.is_some_and(|node| !node.expands)
    }

    pub(super) fn expansion_need(&self, record: &OrderRecord) -> Need<()> {
        if self.is_next_on_node(record) {
            return self.node_need(record);
        }
        let begin = Need::Operation(Operation::Order(record.number, record.order.call()));
        match &record.at_controller {
            Step::GoingUp(_) | Step::GoingDown(_) => Need::Waits(Wait::InFlight),
            Step::Up(..) => Need::Met(()),
            Step::Down | Step::Unknown(..) => match self.expands() {
                None => Need::Waits(Wait::Controller),
                Some(Expands::Not) => Need::Waits(Wait::ExpandingPlugin),
                Some(Expands::Online) => begin,
                Some(Expands::Offline) if self.is_down() => begin,
                Some(Expands::Offline) => Need::Waits(Wait::Vacancy),
            },
        }
    }

    fn node_need(&self, record: &OrderRecord) -> Need<()> {
        let node = self.node();
        match (&record.on_node, node) {
            (Step::GoingUp(_) | Step::GoingDown(_), _) => Need::Waits(Wait::InFlight),
            (Step::Up(..), _) => Need::Met(()),
            (Step::Down | Step::Unknown(..), None) => Need::Waits(Wait::Node),
            (Step::Down | Step::Unknown(..), Some(node)) if !node.expands => {
                Need::Waits(Wait::ExpandingPlugin)
            }
            (Step::Down | Step::Unknown(..), Some(_)) => match self.published() {
                Some(_) => Need::Operation(Operation::Order(record.number, Call::NodeExpandVolume)),
                None => Need::Waits(Wait::Publication),
            },
        }
    }

    /// A claim with a proven mount; one that writes, if there is one (V7, V14).
    fn published(&self) -> Option<&Claim> {
        let is_there = |claim: &&Claim| claim.is_wanted() && claim.is_proven && claim.record.publish.is_up();
        let claims = self.in_order().into_iter().filter(is_there);
        claims.min_by_key(|claim| claim.record.usage.read_only)
    }

    /// The arguments of the expansion on this node: from the present publication.
    pub(super) fn grow_args(&self, number: u64) -> Option<GrowArgs> {
        let record = &self.ordered(number)?.record;
        let Order::Expand { range } = record.order else { return None };
        let required_bytes = size_of(record).unwrap_or(range.required_bytes);
        let published = &self.published()?.record.publish.intent()?.args;
        Some(GrowArgs {
            volume_path: published.target_path.clone(),
            staging_path: published.staging_path.clone(),
            range: CapacityRange { required_bytes, ..range },
            capability: published.usage.capability.clone(),
        })
    }

    /// Whether claims have to wait for an expansion that may be under way at a plugin that expands only offline (C109).
    pub(super) fn is_expanded_offline(&self) -> bool {
        let may_be_under_way = self.orders.iter().any(|ordered| {
            matches!(ordered.record.order, Order::Expand { .. })
                && matches!(ordered.record.at_controller, Step::GoingUp(_) | Step::Unknown(..))
        });
        let is_offline = self.is_shared_down() && self.are_unpublished();
        may_be_under_way && self.expands() == Some(Expands::Offline) && is_offline
    }

    /// The usage of the volume, for the calls that contain it (C112).
    pub(super) fn capability(&self) -> Option<VolumeCapability> {
        let claimed = || self.in_order().first().map(|claim| self.asked_as(&claim.record.usage).capability);
        let args = self.record.existence.as_ref().and_then(|existence| existence.args());
        claimed().or_else(|| args?.volume.capabilities.first().cloned())
    }

    // === Results ===

    /// The controller has answered. Only from here on the volume is known to have this size.
    pub(super) fn note_expanded(
        &mut self,
        number: u64,
        capacity_bytes: u64,
        is_node_next: bool,
        cx: &mut StepContext<Self>,
    ) {
        self.note_size(capacity_bytes);
        let Some(ordered) = self.ordered_mut(number) else {
            return;
        };
        let Step::GoingUp(intent) = ordered.record.at_controller.clone() else { return };
        ordered.record.at_controller = Step::Up(intent, capacity_bytes);
        ordered.tries = Default::default();
        self.replace_expansions(number, cx);
        if is_node_next {
            self.keep_order(number, cx);
        } else {
            let done = self.expanded(number, false);
            self.finish_order(number, &Ok(done), cx);
        }
    }

    /// Replaces earlier expansions that wait for the node: they are a part of this one.
    fn replace_expansions(&mut self, by: u64, cx: &mut StepContext<Self>) {
        let is_earlier =
            |ordered: &Ordered| ordered.record.number != by && ordered.record.at_controller.is_up();
        let (earlier, others): (Vec<_>, _) =
            std::mem::take(&mut self.orders).into_iter().partition(is_earlier);
        self.orders = others;
        for earlier in earlier {
            cx.persist(VolumeChange::ForgetOrder(earlier.record.number));
            let ordered = self.ordered_mut(by);
            ordered.into_iter().for_each(|ordered| ordered.waiters.extend(&earlier.waiters));
        }
    }

    pub(super) fn note_grown(&mut self, number: u64, capacity_bytes: u64, cx: &mut StepContext<Self>) {
        self.note_size(capacity_bytes);
        let done = self.expanded(number, false);
        self.finish_order(number, &Ok(done), cx);
    }

    fn note_size(&mut self, capacity_bytes: u64) {
        if capacity_bytes > 0 {
            self.expanded_bytes = self.expanded_bytes.max(Some(capacity_bytes));
        }
    }

    /// The answer to an expansion.
    pub(super) fn expanded(&self, number: u64, is_node_next: bool) -> Done {
        let ordered = self.ordered(number);
        let of_storage = ordered.and_then(|ordered| size_of(&ordered.record));
        Done::Expanded(Expanded { capacity_bytes: of_storage.or(self.expanded_bytes), is_node_next })
    }
}

/// The size in an order on disk.
pub(super) fn size_of(record: &OrderRecord) -> Option<u64> {
    match record.at_controller {
        Step::Up(_, bytes) if bytes > 0 => Some(bytes),
        _ => None,
    }
}
