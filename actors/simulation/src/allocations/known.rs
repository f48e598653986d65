//! The knowledge of the laws about each allocation.

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::allocation::{AllocationSpec, Task};
use callboard_actors::allocations::Order;
use callboard_actors::shell::AskId;
use callboard_actors::vocabulary::{Attempt, Health};

/// The number of messages that were answered already and are sent again.
pub(super) const NO_ASKER: AskId = AskId::new(0);

/// The known state of one allocation.
#[derive(Debug, Clone, Hash)]
pub(in super::super) struct Known {
    pub(super) spec: Arc<AllocationSpec>,
    /// The state of its task, as reported by the host.
    pub(in super::super) task: Task,
    /// The health that was last reported.
    pub(super) health: Health,
    /// The present life of its supervisor.
    pub(in super::super) life: Attempt,
    /// Whether that life has ended, and its owner was notified.
    pub(super) is_down: bool,
    /// Whether it crashed too often.
    pub(in super::super) is_given_up: bool,
    /// The orders that were accepted and not answered.
    pub(in super::super) orders: BTreeMap<AskId, Order>,
    /// The last order that was ever accepted.
    pub(super) noted: AskId,
    /// The last order that the present supervisor received.
    pub(super) told: AskId,
    /// How many orders it has received since it was started.
    pub(super) told_ever: usize,
    /// Whether it was reported as registered since its task has started (V13).
    pub(super) is_registered: bool,
    /// The stops that waited for the volumes of its plugin, and take effect when the wait is over; and whether the present
    /// supervisor has received each.
    pub(super) late: BTreeMap<AskId, bool>,
}

impl Known {
    /// Whether this is the message due for the order under that number. Where a task was started while its preparation was unanswered, the
    /// listener may be that task; no other listener is accepted.
    pub(super) fn is_order(&self, ask: AskId, order: &Order) -> bool {
        match self.orders.get(&ask) {
            Some(Order::Prepare) if self.task == Task::Running => *order == Order::Adopt,
            said => said == Some(order),
        }
    }

    /// Whether its present supervisor may receive this now: each order once, and in order.
    pub(super) fn is_next(&mut self, ask: AskId) -> bool {
        match self.late.get_mut(&ask) {
            Some(is_told) => !std::mem::replace(is_told, true),
            None => ask > self.told,
        }
    }

    /// A new supervisor of it has received nothing yet.
    pub(super) fn begins_anew(&mut self) {
        (self.told, self.told_ever) = (NO_ASKER, 0);
        self.late.values_mut().for_each(|is_told| *is_told = false);
    }

    pub(super) fn new(spec: &AllocationSpec) -> Self {
        Self {
            spec: Arc::new(spec.clone()),
            task: Task::NotStarted,
            health: Health::Starting,
            life: Attempt::default(),
            is_down: true,
            is_given_up: false,
            orders: BTreeMap::new(),
            noted: NO_ASKER,
            told: NO_ASKER,
            told_ever: 0,
            is_registered: false,
            late: BTreeMap::new(),
        }
    }

    /// An order that is repeated after a crash is older than all that followed, and changes nothing about the task.
    pub(super) fn takes(&mut self, id: AskId, order: &Order) {
        if id > self.noted || *order == Order::Stop {
            self.noted = self.noted.max(id);
            let task = match (self.task, order) {
                (Task::Leaving, _) | (_, Order::Stop) => Task::Leaving,
                (_, Order::Start) => Task::Running,
                (_, Order::Exit(_)) => Task::Exited,
                (Task::NotStarted, Order::Prepare | Order::Adopt) => Task::NotStarted,
                (Task::Running | Task::Exited, Order::Prepare | Order::Adopt) => Task::Exited,
            };
            self.is_registered &= task == self.task;
            self.task = task;
        }
        self.orders.insert(id, order.clone());
    }
}
