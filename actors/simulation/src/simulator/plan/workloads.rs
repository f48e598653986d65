//! Plans the events of supervised allocations.

use callboard_actors::allocation::Task;
use callboard_actors::vocabulary::Timestamp;

use super::super::super::allocation::Reply;
use super::super::event::EventKind;
use super::super::faults::Fault;
use super::super::host_model::HostModel;
use super::super::workloads::{WorkloadDoing, WorkloadOrder, Workloads, WorkloadsDoing};
use super::agenda::Planned;
use super::{Plan, micros};

impl Plan {
    /// A message of a host about an allocation: mostly the next required one, sometimes another one, and often none.
    pub(super) fn act_of_workload(
        &mut self,
        at: Timestamp,
        who: u32,
        host_model: &HostModel,
    ) -> Option<WorkloadDoing> {
        let next = host_model.workloads.next_order(who).filter(|_| !self.random.once_in(8));
        let order = next.or_else(|| match (host_model.workloads.task(who), self.random.below(12)) {
            (None, 0..=8) => Some(WorkloadOrder::Prepare),
            (Some(Task::NotStarted), 0..=1) | (Some(Task::Exited), 0..=4) => Some(WorkloadOrder::Prepare),
            (Some(Task::NotStarted | Task::Exited), 5..=7) => Some(WorkloadOrder::Start),
            (Some(Task::Running), 0..=1) | (Some(Task::Leaving), 0) => Some(WorkloadOrder::Prepare),
            (Some(Task::Running), 2) => Some(WorkloadOrder::Start),
            (Some(Task::Running), 3..=4) => Some(WorkloadOrder::Exit),
            (Some(_), 8) => Some(WorkloadOrder::Leave),
            (None | Some(Task::NotStarted | Task::Running | Task::Exited | Task::Leaving), _) => None,
        });
        if order.is_some() && self.random.once_in(4) {
            let soon = micros(self.random.below(3_000));
            self.add(at + soon, Planned::Hurry(who));
        }
        order.map(WorkloadDoing::Order)
    }

    /// The details of an event that happens by itself: which of its calls is answered, and how.
    pub(super) fn workload_goes_on(
        &mut self,
        who: u32,
        doing: WorkloadDoing,
        host_model: &HostModel,
    ) -> Option<WorkloadDoing> {
        let WorkloadDoing::Meet(..) = doing else { return Some(doing) };
        let open = host_model.workloads.open_calls(who);
        let place = u8::try_from(self.random.below(u64::try_from(open).unwrap_or(0))).unwrap_or(0);
        (open > 0).then(|| WorkloadDoing::Meet(place, self.reply()))
    }

    /// The result of a call to a task or its files. Each bad way is a fault of its own.
    fn reply(&mut self) -> Reply {
        let ways = [
            (Fault::Hang, Reply::Late),
            (Fault::NotReady, Reply::Bad),
            (Fault::Fail, Reply::Bad),
            (Fault::Lie, Reply::Odd),
        ];
        self.meets(&ways, 12, Reply::Good)
    }

    /// One of the supervised allocations, if there is any.
    fn some_workload(&mut self, host_model: &HostModel) -> Option<u32> {
        let count = host_model.workloads.count();
        let place = self.random.place(count);
        (count > 0).then(|| Workloads::number(place))
    }

    /// The process of a supervised task dies, if this fault happens.
    pub(super) fn workload_dies(&mut self, host_model: &HostModel) -> Option<EventKind> {
        let who = self.some_workload(host_model)?;
        self.does(Fault::Die, 4).then_some(EventKind::Workload(who, WorkloadDoing::Die))
    }

    /// A supervisor or its owner crashes, once in this many times.
    pub(super) fn workload_crashes(&mut self, once_in: u64, host_model: &HostModel) -> Option<EventKind> {
        let who = self.some_workload(host_model)?;
        let crash = match self.random.below(8) {
            0..=2 => EventKind::Workload(who, WorkloadDoing::Crash),
            3..=5 => EventKind::Workload(who, WorkloadDoing::Fall),
            6 => EventKind::Workloads(WorkloadsDoing::Crash),
            _ => EventKind::Workloads(WorkloadsDoing::Fall),
        };
        self.random.once_in(once_in).then_some(crash)
    }
}
