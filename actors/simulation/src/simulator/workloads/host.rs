//! The messages of a host about its supervised allocations, its notifications, and its end.

use callboard_actors::allocations::{
    AdoptAllocation, AllocationsAnswer, AllocationsAsk, AllocationsNews, Order, PrepareAllocation,
    StopAllocation, TaskExited, TaskStarted,
};
use callboard_actors::shell::StopMode;

use super::super::super::allocations::Known;
use super::super::super::law::Law;
use super::super::host_model::HostPhase;
use super::owner::NO_ASKER;
use super::*;

impl HostModel {
    /// Does nothing if the host cannot send this now.
    pub(super) fn order_workload(&mut self, place: usize, order: WorkloadOrder) {
        if !self.is_up() {
            return;
        }
        self.catch_up_owner();
        let task = self.workloads.task_at(place);
        let workload = &mut self.workloads.all[place];
        let allocation = workload.spec.allocation.clone();
        let is_known = task.is_some();
        let ask = match order {
            WorkloadOrder::Prepare => {
                // Any earlier process has ended. A process that outlived its host is adopted, and a leaving allocation is refused.
                if task != Some(Task::Leaving) {
                    workload.runs &= task != Some(Task::Running);
                    (workload.is_ready, workload.is_unsaid) = (false, false);
                }
                let spec = (*workload.spec).clone();
                if workload.runs {
                    AllocationsAsk::AdoptAllocation(AdoptAllocation { spec })
                } else {
                    AllocationsAsk::PrepareAllocation(PrepareAllocation { spec })
                }
            }
            WorkloadOrder::Start if is_known && task != Some(Task::Leaving) => {
                // A task that was adopted, or whose start was lost on its way, keeps its process.
                let is_there = workload.runs && (workload.is_unsaid || task != Some(Task::Running));
                workload.around.process += u64::from(!is_there);
                (workload.runs, workload.is_unsaid) = (true, false);
                AllocationsAsk::TaskStarted(TaskStarted { allocation })
            }
            WorkloadOrder::Exit if task == Some(Task::Running) => {
                (workload.runs, workload.is_unsaid) = (false, false);
                AllocationsAsk::TaskExited(TaskExited { allocation, how: "signal 9".to_owned() })
            }
            WorkloadOrder::Leave if is_known => {
                AllocationsAsk::StopAllocation(StopAllocation { allocation, even_if_used: false })
            }
            WorkloadOrder::Start | WorkloadOrder::Exit | WorkloadOrder::Leave => return,
        };
        let moment = self.moment();
        let owner_model = &mut self.workloads.owner_model;
        let asker = owner_model.next_asker(place, order);
        owner_model.owner.ask(moment, asker, ask);
        self.carry_owner();
    }

    // === Its notifications ===

    /// A caller may rely on the answer that an allocation is stopped.
    pub(super) fn host_hears(&mut self, asker: u64, answer: &AllocationsAnswer) {
        if asker == NO_ASKER {
            return;
        }
        let Some((place, _)) = self.workloads.owner_model.unanswered.remove(&asker) else {
            let what = format!("question {asker} to the owner of the allocations was answered twice");
            return self.violation(Law::Shell7, what);
        };
        let workload = &mut self.workloads.all[place];
        workload.is_content = false;
        match answer {
            AllocationsAnswer::PrepareAllocation(Ok(_)) | AllocationsAnswer::AdoptAllocation(Ok(_)) => {
                workload.is_ready = true;
            }
            // The routing ends first, then the process.
            AllocationsAnswer::StopAllocation(Ok(_)) => {
                workload.runs = false;
                let has_files = workload.around.has_directory && !workload.is_untidy;
                if workload.slot.is_some() && has_files {
                    let what = format!("{} is said to be stopped, and has not put away", workload.name());
                    self.violation(Law::A5, what);
                }
            }
            AllocationsAnswer::PrepareAllocation(Err(_))
            | AllocationsAnswer::AdoptAllocation(Err(_))
            | AllocationsAnswer::TaskStarted(_)
            | AllocationsAnswer::TaskExited(_)
            | AllocationsAnswer::StopAllocation(Err(_))
            | AllocationsAnswer::ListAllocations(_)
            | AllocationsAnswer::DescribeAllocations(_)
            | AllocationsAnswer::AllocationReported(()) => {}
        }
    }

    /// A crash loses the message of its step.
    pub(super) fn host_is_refused(&mut self, asker: u64) {
        if let Some((place, WorkloadOrder::Start)) = self.workloads.owner_model.unanswered.remove(&asker) {
            let workload = &mut self.workloads.all[place];
            (workload.is_unsaid, workload.is_content) = (true, false);
        }
    }

    pub(super) fn host_is_told(&mut self, news: AllocationsNews) {
        let Workloads { all, places, owner_model, .. } = &mut self.workloads;
        match news {
            AllocationsNews::Changed(status) => {
                if let Some(place) = places.get(&status.allocation) {
                    (all[*place].phase, all[*place].health) = (status.phase, status.health);
                    all[*place].is_content = false;
                }
            }
            AllocationsNews::Gone(allocation) => {
                if let Some(place) = places.get(&allocation) {
                    all[*place].is_gone();
                    all[*place].is_abandoned = owner_model.owner.checker.abandoned.contains(&allocation);
                }
            }
            // Its phase shows that it requests a restart.
            AllocationsNews::Task(_)
            | AllocationsNews::Refused { .. }
            | AllocationsNews::RestartRequested { .. } => {}
        }
    }

    // === Its end ===

    /// All supervisors are requested to stop, or to leave everything as it is for the next host.
    pub(in super::super) fn stop_workloads(&mut self, mode: StopMode) {
        for place in 0..self.workloads.all.len() {
            self.catch_up_workload(place);
        }
        self.catch_up_owner();
        let moment = self.moment();
        self.workloads.owner_model.owner.request_stop(moment, mode);
        self.carry_owner();
    }

    /// The shell answers the callers that still wait.
    pub(super) fn owner_has_ended(&mut self) {
        self.workloads.owner_model.unanswered.clear();
        let is_stopped = self.phase == HostPhase::StoppingWorkloads(StopMode::Stop);
        for workload in &mut self.workloads.all {
            workload.runs &= !is_stopped;
        }
        if let Some(left) = self.workloads.all.iter().find(|workload| workload.slot.is_some()) {
            let what = format!("the owner of the allocations has ended, and {} is supervised", left.name());
            self.violation(Law::S4, what);
        }
    }
}

impl Workloads {
    /// The host is gone. If it was killed, every other process ends with it; otherwise it has handled all processes.
    pub(in super::super) fn next_run(&mut self, is_killed: bool) {
        self.asked.clear();
        self.changed.clear();
        self.owner_model.next_run();
        for (place, workload) in (0_u64..).zip(&mut self.all) {
            workload.let_go();
            workload.is_gone();
            (workload.has_left, workload.is_abandoned) = (false, false);
            workload.runs &= !is_killed || (place + workload.around.process).is_multiple_of(2);
        }
    }

    /// The next message that a correct host must send about this allocation, if there is one.
    pub(in super::super) fn next_order(&self, who: u32) -> Option<WorkloadOrder> {
        let workload = self.all.get(place_of(who)?)?;
        workload.next_order(self.owner_model.known(&workload.spec.allocation))
    }

    /// The state of its task, as its host knows, if it has a supervisor.
    pub(in super::super) fn task(&self, who: u32) -> Option<Task> {
        self.task_at(place_of(who).filter(|place| *place < self.all.len())?)
    }

    /// How many calls to its task and files can return.
    pub(in super::super) fn open_calls(&self, who: u32) -> usize {
        let workload = place_of(who).and_then(|place| self.all.get(place));
        workload.map_or(0, |workload| workload.calls.iter().filter(|call| !call.hangs).count())
    }
}

impl Workload {
    /// Its host no longer knows it. The process of an allocation that left in order was ended with it.
    fn is_gone(&mut self) {
        self.runs &= !self.has_left;
        (self.is_ready, self.is_unsaid, self.is_content) = (false, false, false);
        (self.phase, self.health) = (AllocationPhase::Prepared, Health::Starting);
    }

    /// A task that outlived its host is adopted; one that died, was given up or needs a restart is restarted; a prepared one is
    /// started; and a lost message is repeated.
    pub(super) fn next_order(&self, known: Option<&Known>) -> Option<WorkloadOrder> {
        let Some(known) = known else { return self.runs.then_some(WorkloadOrder::Prepare) };
        let waits = || known.orders.values().any(|order| matches!(order, Order::Prepare | Order::Adopt));
        let wants_restart = self.phase == AllocationPhase::AwaitingRestart || known.is_given_up;
        match known.task {
            Task::Running if !self.runs || wants_restart => Some(WorkloadOrder::Exit),
            Task::Running if self.is_unsaid => Some(WorkloadOrder::Start),
            Task::Running | Task::Leaving => None,
            Task::NotStarted | Task::Exited if waits() => None,
            Task::NotStarted | Task::Exited if self.is_ready || self.is_unsaid => Some(WorkloadOrder::Start),
            Task::NotStarted | Task::Exited if self.runs || known.is_given_up => Some(WorkloadOrder::Prepare),
            Task::NotStarted | Task::Exited => None,
        }
    }
}
