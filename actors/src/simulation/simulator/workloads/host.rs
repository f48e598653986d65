//! What a host says of its supervised allocations, and what becomes of them when it ends.

use super::*;
use crate::allocation::{AllocationAsk, Listener, MakeReady, NoteExit, NoteStart, SignOff};
use crate::shell::StopMode;

impl Company {
    /// Nothing comes of what a host cannot say now: who leaves is prepared again when it is gone.
    pub(super) fn order_workload(&mut self, place: usize, order: WorkloadOrder) {
        if !self.is_up() {
            return;
        }
        let (moment, tamper) = (self.moment(), self.workloads.tamper.clone());
        let workload = &mut self.workloads.all[place];
        let is_vacant = matches!(workload.seat, Seat::Vacant);
        let (task, is_leaving) = (workload.owner.task, workload.owner.task == Task::Leaving && !is_vacant);
        match order {
            WorkloadOrder::Prepare if !is_leaving => {
                // Whatever ran before has ended. What outlived its host is welcome.
                workload.runs &= task != Task::Running;
                let listener = if workload.runs { Listener::Welcome } else { Listener::Refused };
                workload.is_ready = false;
                if is_vacant {
                    workload.has_left = false;
                    workload.take_seat(moment.now, tamper);
                }
                workload.is_told(moment, AllocationAsk::MakeReady(MakeReady { listener }));
            }
            WorkloadOrder::Start if !is_vacant && !is_leaving => {
                let is_adopted = workload.runs && task == Task::NotStarted;
                workload.around.process += u64::from(!is_adopted);
                workload.runs = true;
                workload.is_told(moment, AllocationAsk::NoteStart(NoteStart));
            }
            WorkloadOrder::Exit if !is_vacant && task == Task::Running => {
                workload.runs = false;
                workload.is_told(moment, AllocationAsk::NoteExit(NoteExit { how: "signal 9".to_owned() }));
            }
            WorkloadOrder::Leave if !is_vacant => {
                workload.is_told(moment, AllocationAsk::SignOff(SignOff));
            }
            WorkloadOrder::Prepare | WorkloadOrder::Start | WorkloadOrder::Exit | WorkloadOrder::Leave => {}
        }
    }

    /// Another supervisor takes the place of the one that fell, and hears what has no answer.
    pub(super) fn raise_workload(&mut self, place: usize) {
        let (moment, tamper) = (self.moment(), self.workloads.tamper.clone());
        let workload = &mut self.workloads.all[place];
        if matches!(workload.seat, Seat::Pausing) {
            workload.is_raised(moment, tamper);
        }
    }

    /// All supervisors are told to stop, or to leave everything as it is for the next host.
    pub(in super::super) fn stop_workloads(&mut self, mode: StopMode) {
        let moment = self.moment();
        for place in 0..self.workloads.all.len() {
            self.catch_up_workload(place);
            let tamper = self.workloads.tamper.clone();
            let workload = &mut self.workloads.all[place];
            match (&workload.seat, mode) {
                // Born leaving, it puts everything away.
                (Seat::Pausing, StopMode::Stop) => {
                    workload.owner.task = Task::Leaving;
                    workload.is_raised(moment, tamper);
                }
                (Seat::Pausing, StopMode::Detach) => {
                    workload.seat = Seat::Vacant;
                    workload.owner.forgets();
                }
                (Seat::Vacant, StopMode::Stop) => workload.runs = false,
                (Seat::Vacant, StopMode::Detach) | (Seat::Taken(_), _) => {}
            }
            if let Seat::Taken(supervisor) = &mut workload.seat {
                supervisor.request_stop(moment, mode);
            }
            self.carry_workload(place);
        }
    }
}

impl Workloads {
    /// The host is gone. If it was killed, every other process goes with it; if it was not, it saw to them.
    pub(in super::super) fn next_run(&mut self, is_killed: bool) {
        self.asked.clear();
        self.stirred.clear();
        for (place, workload) in (0_u64..).zip(&mut self.all) {
            workload.forget_caller();
            workload.seat = Seat::Vacant;
            workload.owner.forgets();
            workload.has_left = false;
            (workload.is_prepared, workload.is_ready) = (false, false);
            workload.runs &= !is_killed || (place + workload.around.process).is_multiple_of(2);
        }
    }

    /// What a host in its right mind says of this allocation next, if anything must be said.
    pub(in super::super) fn next_order(&self, who: u32) -> Option<WorkloadOrder> {
        self.all.get(place_of(who)?)?.next_order()
    }

    /// What its task is doing, as its host knows, if somebody looks after it.
    pub(in super::super) fn task(&self, who: u32) -> Option<Task> {
        let workload = self.all.get(place_of(who)?)?;
        (!matches!(workload.seat, Seat::Vacant)).then_some(workload.owner.task)
    }

    /// How many calls to its task and files can come back.
    pub(in super::super) fn open_calls(&self, who: u32) -> usize {
        let workload = place_of(who).and_then(|place| self.all.get(place));
        workload.map_or(0, |workload| workload.calls.iter().filter(|call| !call.hangs).count())
    }
}

impl Workload {
    fn is_told(&mut self, moment: Moment, ask: AllocationAsk) {
        let asker = self.owner.says(&ask);
        if let Seat::Taken(supervisor) = &mut self.seat {
            supervisor.ask(moment, asker, ask);
        }
    }

    fn is_raised(&mut self, moment: Moment, tamper: Option<Rc<dyn Tamper<Allocation>>>) {
        self.take_seat(moment.now, tamper);
        let again = self.owner.says_again();
        if let Seat::Taken(supervisor) = &mut self.seat {
            again.into_iter().for_each(|(asker, ask)| supervisor.ask(moment, asker, ask));
        }
    }

    /// A task that outlived its host is adopted, one that died or is asked for is restarted, and what is prepared is started.
    pub(super) fn next_order(&self) -> Option<WorkloadOrder> {
        let is_vacant = matches!(self.seat, Seat::Vacant);
        let waits = self.owner.unanswered.values().any(|ask| matches!(ask, AllocationAsk::MakeReady(_)));
        match self.owner.task {
            _ if is_vacant => self.runs.then_some(WorkloadOrder::Prepare),
            Task::Running if !self.runs || self.phase == AllocationPhase::AwaitingRestart => {
                Some(WorkloadOrder::Exit)
            }
            Task::Running | Task::Leaving => None,
            Task::NotStarted | Task::Exited if waits => None,
            Task::NotStarted | Task::Exited if self.is_ready => Some(WorkloadOrder::Start),
            Task::NotStarted => self.runs.then_some(WorkloadOrder::Prepare),
            Task::Exited => None,
        }
    }
}
