//! Keeps one supervisor for each allocation: start, restart after a crash, giving up after too many, and
//! removal after a stop (A5, S3).

use std::collections::VecDeque;
use std::time::Duration;

use super::behaviour::make;
use super::messages::{AllocationPhase, AllocationStatus, AllocationStopped, AllocationsAnswer};
use super::messages::{AllocationsNews, PrepareError, UnknownAllocation};
use super::orders::{NO_ASKER, noted, refuse};
use super::state::{
    Allocations, AllocationsCall, AllocationsChange, AllocationsOptions, AllocationsTimer, Entry, Leaving,
    Order, Record, SupervisorEnded,
};
use crate::allocation::{AllocationConfig, Task};
use crate::kernel::{AskId, Ending, StepContext, StopMode};
use crate::supervisor::{ChildState, DynamicChild};
use crate::vocabulary::{AllocationId, Health, Moment};

/// The timeout for the report of a supervisor that has ended.
const REPORT_WAIT: Duration = Duration::from_secs(1);

impl Entry {
    pub(super) fn new(record: Record, moment: Moment) -> Self {
        let spec = &record.spec;
        let status = AllocationStatus {
            allocation: spec.allocation.clone(),
            task: spec.task.clone(),
            plugin: spec.plugin.clone(),
            role: spec.role,
            phase: AllocationPhase::Prepared,
            health: Health::Starting,
            socket: record.plan.context.socket.clone(),
            since: moment.now,
            last_event: "known, and not started yet".to_owned(),
        };
        let leaving = match record.task {
            Task::Leaving => Leaving::Stopping(None),
            Task::NotStarted | Task::Running | Task::Exited => Leaving::No,
        };
        let mut child = DynamicChild::new(ChildState::Pausing);
        child.start(record.life);
        Self {
            record,
            status,
            child,
            is_over: false,
            given_up: None,
            leaving,
            orders: VecDeque::new(),
            crashes: 0,
        }
    }

    /// Whether its supervisor takes orders.
    pub(super) const fn is_running(&self) -> bool {
        !self.is_over && self.child.life().is_some()
    }

    /// Whether its supervisor crashed and is restarted after a pause.
    fn is_pausing(&self) -> bool {
        !self.is_over && self.child.state() == ChildState::Pausing
    }

    /// Its supervisor has ended, and no other supervisor follows.
    pub(super) fn finish(&mut self) {
        (self.is_over, self.given_up) = (true, None);
    }

    /// The configuration of a supervisor: the state of the task and the last status of its predecessor.
    pub(super) fn birth(&self, options: &AllocationsOptions) -> AllocationConfig {
        AllocationConfig {
            spec: (*self.record.spec).clone(),
            plan: (*self.record.plan).clone(),
            options: options.of(&self.record.spec.allocation),
            task: self.record.task,
            health: self.status.health.clone(),
        }
    }

    /// Whether the task was started while its preparation is pending, and that start was answered already.
    fn is_started_before_prepared(&self) -> bool {
        let waits = |is_meant: fn(&Order) -> bool| self.orders.iter().any(|(_, order)| is_meant(order));
        self.record.task == Task::Running && waits(Order::prepares) && !waits(|order| *order == Order::Start)
    }

    /// Takes out an order that waits for its answer.
    pub(super) fn take_order(&mut self, ask: AskId) -> Option<Order> {
        let at = self.orders.iter().position(|(id, _)| *id == ask)?;
        self.orders.remove(at).map(|(_, order)| order)
    }

    /// Whether the allocation was never prepared, and this is its last pending preparation.
    pub(super) fn is_hopeless(&self, ask: AskId) -> bool {
        let mut others = self.orders.iter().filter(|(id, _)| *id != ask);
        !self.record.is_prepared && self.leaving == Leaving::No && !others.any(|(_, order)| order.prepares())
    }
}

impl Allocations {
    /// Starts a supervisor, and sends it all pending orders. It takes a preparation for the next start of the task, so a
    /// start that followed one is sent again, too.
    pub(super) fn start(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        self.last_life = self.last_life.next();
        entry.record.life = self.last_life;
        entry.child.start(self.last_life);
        entry.given_up = None;
        cx.persist(AllocationsChange::Keep(allocation.clone(), entry.record.clone()));
        let life = entry.record.life;
        let config = Box::new(entry.birth(&self.options));
        make(life, AllocationsCall::Start { life, config }, cx);
        let start_again = entry.is_started_before_prepared().then_some((NO_ASKER, Order::Start));
        let waiting: Vec<(AskId, Order)> = entry.orders.iter().cloned().chain(start_again).collect();
        waiting.into_iter().for_each(|(id, order)| self.tell(allocation, id, order, cx));
    }

    /// Starts a supervisor that was given up, with a full restart budget.
    pub(super) fn revive(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        if let Some(entry) = self.entries.get_mut(allocation) {
            entry.child.forgive();
        }
        self.start(allocation, cx);
    }

    pub(super) fn restart(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        if self.entries.get(allocation).is_some_and(Entry::is_pausing) {
            self.start(allocation, cx);
        }
    }

    pub(super) fn end(&mut self, allocation: &AllocationId, mode: StopMode, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(allocation) else { return };
        let life = entry.record.life;
        make(life, AllocationsCall::End { allocation: allocation.clone(), life, mode }, cx);
    }

    pub(super) fn kill(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(allocation) else { return };
        let life = entry.record.life;
        make(life, AllocationsCall::Kill { allocation: allocation.clone(), life }, cx);
    }

    // === Endings ===

    pub(super) fn supervisor_ended(&mut self, ended: &SupervisorEnded, cx: &mut StepContext<Self>) {
        let SupervisorEnded { allocation, life, ending } = ended;
        let is_ending = self.ending.is_some();
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        if entry.child.ended(*life).is_none() {
            return;
        }
        let is_expected = match (&entry.leaving, ending) {
            (Leaving::Refused(..), _) | (Leaving::Stopping(_), Ending::Normal) => true,
            // A supervisor that has cleaned up may still owe the deregistration.
            (
                Leaving::Stopping(_),
                Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_) | Ending::Killed,
            )
            | (Leaving::No, _) => is_ending,
        };
        if is_expected {
            entry.finish();
            self.conclude(allocation, cx);
        } else {
            self.crashed(allocation, ending, cx);
        }
    }

    fn crashed(&mut self, allocation: &AllocationId, ending: &Ending, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        entry.crashes += 1;
        let limits = (&self.options.restart_budget, &self.options.restart_pauses);
        if entry.child.fell(AllocationsTimer::Restart(allocation.clone()), limits, cx) {
            return;
        }
        let reason = format!("its supervisor ended too often; the last time {ending}");
        entry.given_up = Some(reason.clone());
        entry.status.health = Health::Unhealthy { reason: reason.clone() };
        entry.status.last_event.clone_from(&reason);
        cx.publish(AllocationsNews::Changed(entry.status.clone()));
        self.answer_in_its_place(allocation, &reason, cx);
    }

    fn answer_in_its_place(&mut self, allocation: &AllocationId, reason: &str, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        if let Leaving::Stopping(report) = &mut entry.leaving {
            let remarks = vec![format!("{reason}; nothing was cleaned up")];
            report.get_or_insert(AllocationStopped { deregistered: false, remarks });
            entry.finish();
            self.conclude(allocation, cx);
            return;
        }
        for (id, order) in std::mem::take(&mut entry.orders) {
            let (allocation, reason) = (allocation.clone(), reason.to_owned());
            refuse(id, &order, PrepareError::Failed { allocation, reason }, cx);
            // The next supervisor gets the state of the task in its configuration.
            noted(id, &order, cx);
        }
    }

    /// Removes an allocation when its supervisor has ended and all its reports have arrived.
    pub(super) fn conclude(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get(allocation) else { return };
        if !entry.is_over {
            return;
        }
        let is_asked_for = entry.orders.iter().any(|(_, order)| *order == Order::Stop);
        if is_asked_for && entry.leaving == Leaving::Stopping(None) {
            // Its report is pending, or it was requested too late.
            self.await_report(allocation, cx);
            return;
        }
        self.let_go(allocation, cx);
    }

    /// Waits briefly for the missing report and ending of a supervisor.
    pub(super) fn await_report(&self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        cx.start_timer(AllocationsTimer::ReportWait(allocation.clone()), cx.now() + REPORT_WAIT);
    }

    pub(super) fn report_wait_over(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        match (entry.is_over, &entry.leaving) {
            (true, _) => self.let_go(allocation, cx),
            // It has cleaned up and continues only for the deregistration that it owes.
            (false, Leaving::Stopping(Some(report))) => {
                entry.orders.retain(|(id, order)| {
                    let is_stop = *order == Order::Stop;
                    if is_stop {
                        cx.reply(*id, AllocationsAnswer::StopAllocation(Ok(report.clone())));
                    }
                    !is_stop
                });
            }
            (false, Leaving::No | Leaving::Stopping(None) | Leaving::Refused(..)) => {}
        }
    }

    fn let_go(&mut self, allocation: &AllocationId, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.remove(allocation) else { return };
        cx.cancel_timer(AllocationsTimer::ReportWait(allocation.clone()));
        cx.cancel_timer(AllocationsTimer::Restart(allocation.clone()));
        // The owner that is started after a detached owner takes over what the detached owner leaves in place.
        if self.ending != Some(StopMode::Detach) || matches!(entry.leaving, Leaving::Refused(..)) {
            cx.persist(AllocationsChange::Forget(allocation.clone()));
        }
        if self.ending != Some(StopMode::Detach) {
            cx.publish(AllocationsNews::Gone(allocation.clone()));
        }
        answer_open_orders(allocation, entry, cx);
    }

    // === The end of the host ===

    /// Ends all supervisors concurrently, in bounded time (S3).
    pub(super) fn end_all(&mut self, mode: StopMode, cx: &mut StepContext<Self>) {
        self.end_waiting_stops(mode, cx);
        self.ending = Some(mode);
        let timeout = self.options.shutdown_deadline();
        cx.start_timer(AllocationsTimer::StopDeadline, cx.now() + timeout);
        let all: Vec<AllocationId> = self.entries.keys().cloned().collect();
        for allocation in all {
            self.end_one(&allocation, mode, cx);
        }
    }

    fn end_one(&mut self, allocation: &AllocationId, mode: StopMode, cx: &mut StepContext<Self>) {
        let Some(entry) = self.entries.get_mut(allocation) else { return };
        if mode == StopMode::Stop {
            if entry.leaving == Leaving::No {
                entry.leaving = Leaving::Stopping(None);
            }
            entry.record.task = Task::Leaving;
            cx.persist(AllocationsChange::Keep(allocation.clone(), entry.record.clone()));
        }
        if entry.is_running() {
            self.end(allocation, mode, cx);
        } else if entry.is_pausing() && mode == StopMode::Stop {
            // A supervisor that is started in the leaving state cleans up and ends.
            self.start(allocation, cx);
        } else {
            entry.finish();
            self.conclude(allocation, cx);
        }
    }

    pub(super) fn stop_deadline_passed(&mut self, cx: &mut StepContext<Self>) {
        let all: Vec<AllocationId> = self.entries.keys().cloned().collect();
        all.iter().for_each(|allocation| self.kill(allocation, cx));
    }
}

fn answer_open_orders(allocation: &AllocationId, entry: Entry, cx: &mut StepContext<Allocations>) {
    let report = match entry.leaving {
        Leaving::Refused(id, order, error) => {
            refuse(id, &order, error, cx);
            None
        }
        Leaving::Stopping(report) => Some(report.unwrap_or_else(|| AllocationStopped {
            deregistered: false,
            remarks: vec!["its supervisor ended without a report".to_owned()],
        })),
        Leaving::No => None,
    };
    let unknown = || UnknownAllocation { allocation: allocation.clone() };
    for (id, order) in entry.orders {
        refuse(id, &order, PrepareError::Stopping { allocation: allocation.clone() }, cx);
        noted(id, &order, cx);
        if order == Order::Stop {
            let stopped = report.clone().ok_or_else(|| unknown().into());
            cx.reply(id, AllocationsAnswer::StopAllocation(stopped));
        }
    }
}
