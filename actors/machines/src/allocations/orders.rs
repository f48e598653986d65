//! The orders of the host for an allocation, forwarded to its supervisor in the same order.

use std::sync::Arc;

use super::messages::{AllocationsAnswer, AllocationsNews, PrepareError, UnknownAllocation};
use super::state::{
    Allocations, AllocationsCall, AllocationsChange, Entry, Leaving, Order, OrderAnswer, Record,
};
use crate::AskError;
use crate::allocation::{AllocationSpec, Plan, Task};
use crate::kernel::{AskId, CallKey, StepContext, StopMode};
use crate::vocabulary::{AllocationId, Attempt, Generation, Timestamp};

/// The asker of an order that is repeated after its answer, or that nothing waits for. The shell counts from one.
pub(super) const NO_ASKER: AskId = AskId::new(0);

impl Allocations {
    // === Preparing ===

    pub(super) fn prepare(
        &mut self,
        said: (Timestamp, AskId),
        spec: &AllocationSpec,
        order: Order,
        cx: &mut StepContext<Self>,
    ) {
        let allocation = spec.allocation.clone();
        let admitted = match self.entries.get(&allocation) {
            Some(entry) => self.check_known(entry, spec),
            None => self.admit(spec, cx).inspect_err(|error| {
                let (allocation, reason) = (allocation.clone(), error.to_string());
                cx.publish(AllocationsNews::Refused { allocation, reason });
            }),
        };
        match admitted {
            Ok(()) => self.give(&allocation, said, order, cx),
            Err(error) => refuse(said.1, &order, error, cx),
        }
    }

    fn check_known(&self, entry: &Entry, spec: &AllocationSpec) -> Result<(), PrepareError> {
        let allocation = spec.allocation.clone();
        // A stop that waits for an answer was requested before this preparation.
        if self.ending.is_some() || entry.leaving != Leaving::No || self.is_asked_to_stop(&allocation) {
            return Err(PrepareError::Stopping { allocation });
        }
        if let Some(difference) = difference(&entry.record.spec, spec) {
            return Err(PrepareError::SpecChanged { allocation, difference });
        }
        if entry.orders.len() >= self.options.orders_max {
            let reason = format!("{} messages already wait for it; try again later", entry.orders.len());
            return Err(PrepareError::Failed { allocation, reason });
        }
        Ok(())
    }

    fn admit(&mut self, spec: &AllocationSpec, cx: &mut StepContext<Self>) -> Result<(), PrepareError> {
        if self.ending.is_some() {
            return Err(PrepareError::Stopping { allocation: spec.allocation.clone() });
        }
        if self.entries.len() >= self.options.allocations_max {
            return Err(PrepareError::Full { held: self.entries.len() });
        }
        let plan = Arc::new(Plan::new(&self.options.layout, spec)?);
        let spec = Arc::new(spec.clone());
        let record = Record {
            spec,
            plan,
            life: Attempt::default(),
            task: Task::NotStarted,
            said: (Timestamp::default(), NO_ASKER),
            is_prepared: false,
            is_registered: false,
        };
        let allocation = record.spec.allocation.clone();
        self.entries.insert(allocation.clone(), Entry::new(record, cx.moment()));
        self.start(&allocation, cx);
        Ok(())
    }

    // === Orders ===

    pub(super) fn pass_on(
        &mut self,
        allocation: &AllocationId,
        said: (Timestamp, AskId),
        order: Order,
        cx: &mut StepContext<Self>,
    ) {
        let is_known =
            self.entries.get(allocation).is_some_and(|entry| !matches!(entry.leaving, Leaving::Refused(..)));
        if is_known {
            self.give(allocation, said, order, cx);
            return;
        }
        let (_, id) = said;
        let unknown = UnknownAllocation { allocation: allocation.clone() };
        match order {
            Order::Start => cx.reply(id, AllocationsAnswer::TaskStarted(Err(unknown))),
            Order::Exit(_) => cx.reply(id, AllocationsAnswer::TaskExited(Err(unknown))),
            Order::Stop => cx.reply(id, AllocationsAnswer::StopAllocation(Err(unknown.into()))),
            // These orders create the allocation, so it has an entry.
            Order::Prepare | Order::Adopt => {}
        }
    }

    /// Sends a new order, and records the state of the task. An order that is repeated after a crash, and is older than other
    /// orders, does not change that state; a stop does, since it may have waited while the others arrived.
    fn give(
        &mut self,
        allocation: &AllocationId,
        said: (Timestamp, AskId),
        order: Order,
        cx: &mut StepContext<Self>,
    ) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        let is_again = order != Order::Stop && said <= entry.record.said;
        let task = if is_again { entry.record.task } else { after(entry.record.task, &order) };
        if task != entry.record.task {
            (entry.record.task, entry.record.said) = (task, said);
            entry.record.is_registered = false;
            cx.persist(AllocationsChange::Keep(allocation.clone(), entry.record.clone()));
        }
        if order == Order::Stop && entry.leaving == Leaving::No {
            entry.leaving = Leaving::Stopping(None);
        }
        let (_, id) = said;
        entry.orders.push_back((id, order.clone()));
        // A new supervisor gets all pending orders when it is started; a supervisor that has ended needs none.
        if entry.is_running() {
            // The supervisor takes a preparation for the next start of the task, which has happened already.
            let is_started = is_again && task == Task::Running && order.prepares();
            self.tell(allocation, id, order, cx);
            if is_started {
                self.tell(allocation, NO_ASKER, Order::Start, cx);
            }
        } else if entry.given_up.is_some() {
            self.revive(allocation, cx);
        }
    }

    pub(super) fn tell(
        &self,
        allocation: &AllocationId,
        ask: AskId,
        order: Order,
        cx: &mut StepContext<Self>,
    ) {
        let Some(entry) = self.entries.get(allocation) else { return };
        // If the task runs while its preparation is repeated, it was started after that: the listener may be the task.
        let is_started = order == Order::Prepare && entry.record.task == Task::Running;
        let order = if is_started { Order::Adopt } else { order };
        let life = entry.record.life;
        let key = CallKey { generation: Generation::default(), attempt: life };
        let call = AllocationsCall::Tell { allocation: allocation.clone(), life, ask, order };
        cx.call(key, self.options.order_deadline(), call);
    }

    pub(super) fn told(
        &mut self,
        allocation: &AllocationId,
        ask: AskId,
        answer: &Result<OrderAnswer, AskError>,
        cx: &mut StepContext<Self>,
    ) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        // Its supervisor crashed; the next one gets the order again.
        let Ok(answer) = answer else { return };
        match answer {
            // A stopping supervisor refuses it for that reason, and cleans up before it ends.
            OrderAnswer::Prepared(Err(error)) if entry.is_hopeless(ask) => {
                let Some(order) = entry.take_order(ask) else { return };
                self.turn_away(allocation, (ask, order), error.clone(), cx);
            }
            OrderAnswer::Prepared(prepared) => {
                let Some(order) = entry.take_order(ask) else { return };
                if prepared.is_ok() && !entry.record.is_prepared {
                    entry.record.is_prepared = true;
                    cx.persist(AllocationsChange::Keep(allocation.clone(), entry.record.clone()));
                }
                match prepared {
                    Ok(context) if order == Order::Adopt => {
                        cx.reply(ask, AllocationsAnswer::AdoptAllocation(Ok(context.clone())));
                    }
                    Ok(context) => {
                        cx.reply(ask, AllocationsAnswer::PrepareAllocation(Ok(context.clone())));
                    }
                    Err(error) => refuse(ask, &order, error.clone(), cx),
                }
            }
            OrderAnswer::Noted => {
                let Some(order) = entry.take_order(ask) else { return };
                noted(ask, &order, cx);
            }
            // The callers, if any, are answered when the supervisor has ended: soon, or late if it owes a deregistration.
            OrderAnswer::Stopped(report) => {
                entry.leaving = Leaving::Stopping(Some(report.clone()));
                self.await_report(allocation, cx);
                self.conclude(allocation, cx);
            }
        }
    }
}

impl Allocations {
    /// Removes an allocation that could not be prepared. If its task was never reported, there is nothing to clean up; a
    /// task that was started nevertheless may be registered, and is stopped like any other.
    fn turn_away(
        &mut self,
        allocation: &AllocationId,
        (id, order): (AskId, Order),
        error: PrepareError,
        cx: &mut StepContext<Self>,
    ) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        let is_running = entry.is_running();
        if entry.record.task != Task::NotStarted {
            refuse(id, &order, error, cx);
            entry.leaving = Leaving::Stopping(None);
            entry.record.task = Task::Leaving;
            cx.persist(AllocationsChange::Keep(allocation.clone(), entry.record.clone()));
            // Otherwise its successor gets the stop in its configuration.
            if is_running {
                self.tell(allocation, NO_ASKER, Order::Stop, cx);
            }
            return;
        }
        entry.leaving = Leaving::Refused(id, order, error);
        if is_running {
            self.end(allocation, StopMode::Detach, cx);
        } else {
            // The supervisor crashed after this answer, and no successor is needed.
            entry.finish();
            self.conclude(allocation, cx);
        }
    }
}

const fn after(task: Task, order: &Order) -> Task {
    match (task, order) {
        (Task::Leaving, _) | (_, Order::Stop) => Task::Leaving,
        (_, Order::Start) => Task::Running,
        (Task::NotStarted, Order::Prepare | Order::Adopt) => Task::NotStarted,
        (Task::Running | Task::Exited, Order::Prepare | Order::Adopt) | (_, Order::Exit(_)) => Task::Exited,
    }
}

fn difference(known: &AllocationSpec, given: &AllocationSpec) -> Option<&'static str> {
    let fields = [
        ("task", known.task != given.task),
        ("plugin", known.plugin != given.plugin),
        ("role", known.role != given.role),
        ("socket mount directory", known.socket_mount_dir != given.socket_mount_dir),
        ("volume mount directory", known.volume_mount_dir != given.volume_mount_dir),
        ("health timeout", known.health_timeout != given.health_timeout),
        ("restart policy", known.restart_when != given.restart_when),
        ("isolation", known.isolation != given.isolation),
        ("environment", known.environment != given.environment),
        ("failover policy", known.policy != given.policy),
    ];
    fields.into_iter().find_map(|(field, differs)| differs.then_some(field))
}

pub(super) fn refuse(id: AskId, order: &Order, error: PrepareError, cx: &mut StepContext<Allocations>) {
    match order {
        Order::Prepare => cx.reply(id, AllocationsAnswer::PrepareAllocation(Err(error))),
        Order::Adopt => cx.reply(id, AllocationsAnswer::AdoptAllocation(Err(error))),
        // Only preparing can be refused.
        Order::Start | Order::Exit(_) | Order::Stop => {}
    }
}

pub(super) fn noted(id: AskId, order: &Order, cx: &mut StepContext<Allocations>) {
    match order {
        Order::Start => cx.reply(id, AllocationsAnswer::TaskStarted(Ok(()))),
        Order::Exit(_) => cx.reply(id, AllocationsAnswer::TaskExited(Ok(()))),
        // These have other answers.
        Order::Prepare | Order::Adopt | Order::Stop => {}
    }
}
