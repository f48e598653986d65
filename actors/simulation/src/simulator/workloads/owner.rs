//! The owner of the supervisors, and its orders to them.
//!
//! Its messages reach a supervisor at once, as in production.

use callboard_actors::allocation::{
    AllocationAsk, AllocationOptions, DescribeAllocation, MakeReady, NoteExit, NoteStart, StopSupervision,
};
use callboard_actors::allocations::{AllocationsCall, AllocationsOptions, Order, SupervisorEnded};
use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::Backoff;

use super::super::super::allocations::{AllocationsLaws, Known, Memory};
use super::super::super::law::Law;
use super::super::super::law_checker::NO_CALLER_WAITS;
use super::super::super::observed::Observed;
use super::super::super::stand_in::Left;
use super::*;

type Owner = StandIn<Allocations, Memory, AllocationsLaws>;

/// The asker of notifications, which wait for no answer.
pub(super) const NO_ASKER: u64 = 0;

/// The owner, and the messages of all supervisors in flight to it.
#[derive(Debug, Clone)]
pub(super) struct OwnerModel {
    pub(super) owner: Owner,
    tamper: Option<Rc<dyn Tamper<Allocations>>>,
    /// The deadline of each of its calls.
    deadlines: Vec<(u64, Timestamp, Duration)>,
    /// The call with which it waits for endings.
    pub(super) await_endings: Option<u64>,
    /// The ended supervisors that were not reported to it.
    pub(super) endings: Vec<SupervisorEnded>,
    askers: u64,
    /// The host's callers that wait for an answer, each with its allocation and order.
    pub(super) unanswered: BTreeMap<u64, (usize, WorkloadOrder)>,
    /// How many of its steps are counted.
    counted: u64,
    /// Whether something has changed here since the world last looked.
    pub(super) is_stirred: bool,
}

impl OwnerModel {
    pub(super) fn new(tamper: Option<Rc<dyn Tamper<Allocations>>>) -> Self {
        Self {
            owner: owner(Memory::default(), AllocationsLaws::default(), tamper.clone()),
            tamper,
            deadlines: Vec::new(),
            await_endings: None,
            endings: Vec::new(),
            askers: NO_ASKER,
            unanswered: BTreeMap::new(),
            counted: 0,
            is_stirred: true,
        }
    }

    /// The owner of the next host starts without knowledge.
    pub(super) fn next_run(&mut self) {
        *self = Self { askers: self.askers, ..Self::new(self.tamper.take()) };
    }

    /// A successor replaces this owner, with its memory.
    fn succeed(&mut self) {
        let (memory, mut laws) = (self.owner.store.clone(), self.owner.checker.clone());
        laws.succeed();
        let successor = owner(memory, laws, self.tamper.clone());
        *self = Self { owner: successor, askers: self.askers, ..Self::new(self.tamper.take()) };
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.owner.has_ended()
    }

    /// The known state of an allocation, from its messages.
    pub(super) fn known(&self, allocation: &AllocationId) -> Option<&Known> {
        self.owner.checker.known(allocation)
    }

    /// A number for a question of the host about an allocation.
    pub(super) fn next_asker(&mut self, place: usize, order: WorkloadOrder) -> u64 {
        self.askers += 1;
        self.unanswered.insert(self.askers, (place, order));
        self.askers
    }

    fn next_due(&self) -> Option<Timestamp> {
        let deadlines = self.deadlines.iter().map(|(_, until, _)| *until);
        deadlines.chain(self.owner.next_timer()).min()
    }

    /// Calls past their deadline are lost, and due timers run.
    fn is_due(&mut self, moment: Moment) {
        while let Some(at) = self.deadlines.iter().position(|(_, until, _)| *until <= moment.now) {
            let (number, _, within) = self.deadlines.remove(at);
            self.owner.returned(moment, number, Err(CallLost::DeadlineExceeded(within)));
        }
        self.owner.timers_due(moment);
    }

    pub(super) fn returned(&mut self, moment: Moment, number: u64, outcome: AllocationsOutcome) {
        self.deadlines.retain(|(other, ..)| *other != number);
        self.owner.returned(moment, number, Ok(outcome));
    }

    /// It is built from its memory, and makes its calls again.
    fn load(&mut self, moment: Moment) {
        self.deadlines.clear();
        self.await_endings = None;
        let image = self.owner.store.image();
        self.owner.loaded(moment, image);
    }
}

impl Workloads {
    /// The state of the task at this place, as reported to its owner, if it is known there.
    pub(super) fn task_at(&self, place: usize) -> Option<Task> {
        Some(self.owner_model.known(&self.all[place].spec.allocation)?.task)
    }

    fn place_of(&self, allocation: &AllocationId) -> Option<usize> {
        self.places.get(allocation).copied()
    }

    /// The supervisor of this life, if it lives.
    fn held(&mut self, place: usize, life: Attempt) -> Option<&mut Held> {
        self.all[place].slot.as_deref_mut().filter(|held| held.life == life)
    }
}

impl HostModel {
    pub(in super::super) fn workloads_do(&mut self, doing: WorkloadsDoing) {
        self.catch_up_owner();
        let (moment, is_up) = (self.moment(), self.is_up());
        let owner_model = &mut self.workloads.owner_model;
        match doing {
            WorkloadsDoing::Endings => self.endings_arrive(),
            WorkloadsDoing::Due => owner_model.is_due(moment),
            WorkloadsDoing::Crash if is_up => owner_model.owner.crash_next_step(),
            WorkloadsDoing::Fall if is_up => {
                self.workloads.all.iter_mut().for_each(Workload::let_go);
                self.workloads.owner_model.succeed();
                // The successor starts a moment later.
                self.now = self.now + Duration::from_millis(1);
            }
            // An owner is not replaced at the end of a host.
            WorkloadsDoing::Crash | WorkloadsDoing::Fall => {}
        }
        self.carry_owner();
    }

    /// Timers that were due meanwhile run at their time, also in a history without the event of that.
    pub(super) fn catch_up_owner(&mut self) {
        let present = self.moment();
        while let Some(due) = self.workloads.owner_model.next_due().filter(|due| *due < present.now) {
            self.workloads.owner_model.is_due(Moment { now: due, ..present });
            self.carry_owner();
        }
    }

    // === Its effects ===

    /// Carries out the effects of the owner, or puts them in flight.
    pub(in super::super) fn carry_owner(&mut self) {
        let (moment, mut left) = (self.moment(), Vec::new());
        loop {
            let owner_model = &mut self.workloads.owner_model;
            if owner_model.owner.is_loading() {
                owner_model.load(moment);
            }
            owner_model.owner.take_left(&mut left);
            if let Some(trace) = &mut self.trace {
                trace.extend(Observed::noted("allocations", &mut owner_model.owner));
            }
            if left.is_empty() && !owner_model.owner.is_loading() {
                break;
            }
            for left in left.drain(..) {
                self.take_from_owner(left);
            }
        }
        let owner_model = &mut self.workloads.owner_model;
        owner_model.is_stirred = true;
        let steps = owner_model.owner.steps();
        self.workloads.steps += steps - std::mem::replace(&mut owner_model.counted, steps);
        self.verdict.heard_of(owner_model.owner.checker.verdict.broken());
    }

    fn take_from_owner(&mut self, left: Left<Allocations>) {
        self.note(|| Observed::left_to("allocations", &left, |asker| asker != NO_ASKER));
        match left {
            Left::Answer(Some(asker), answer) => self.host_hears(asker, &answer),
            Left::Refused(asker, _) => self.host_is_refused(asker),
            Left::News(_, news) => self.host_is_told(news),
            Left::Call { number, deadline, call } => self.owner_calls(number, deadline, call),
            Left::Ended(_) => self.owner_has_ended(),
            Left::Answer(None, _) => self.violation(Law::Shell7, NO_CALLER_WAITS.to_owned()),
            Left::Snapshot(..) => {}
        }
    }

    fn owner_calls(&mut self, number: u64, deadline: Duration, call: AllocationsCall) {
        let (moment, until) = (self.moment(), self.now + deadline);
        let owner_model = &mut self.workloads.owner_model;
        // It may be of a life that a crash has ended meanwhile.
        if owner_model.owner.awaits(number) {
            owner_model.deadlines.push((number, until, deadline));
        }
        let outcome = match call {
            AllocationsCall::AwaitEndings => {
                owner_model.await_endings = Some(number);
                return;
            }
            AllocationsCall::Tell { allocation, life, order, .. } => {
                return self.tell_supervisor(number, &allocation, life, Kind::Order, said(order));
            }
            AllocationsCall::Look { allocation, life } => {
                let look = AllocationAsk::DescribeAllocation(DescribeAllocation);
                return self.tell_supervisor(number, &allocation, life, Kind::Look, look);
            }
            AllocationsCall::Start { life, config } => {
                self.start_supervisor(life, *config);
                AllocationsOutcome::Done
            }
            AllocationsCall::End { allocation, life, mode } => {
                self.end_supervisor(&allocation, life, mode);
                AllocationsOutcome::Done
            }
            AllocationsCall::Kill { allocation, life } => {
                if let Some(place) = self.workloads.place_of(&allocation)
                    && self.workloads.held(place, life).is_some()
                {
                    self.supervisor_is_killed(place);
                }
                AllocationsOutcome::Done
            }
            AllocationsCall::AwaitUnused { .. } => AllocationsOutcome::Unused(Ok(Ok(()))),
            AllocationsCall::Describe(_) => AllocationsOutcome::Described(BTreeMap::new()),
        };
        self.workloads.owner_model.returned(moment, number, outcome);
    }

    fn start_supervisor(&mut self, life: Attempt, config: AllocationConfig) {
        let Some(place) = self.workloads.place_of(&config.spec.allocation) else { return };
        if self.workloads.held(place, life).is_some() {
            return;
        }
        let Workloads { all, owner_model, tamper, .. } = &mut self.workloads;
        let (workload, allocation) = (&mut all[place], config.spec.allocation.clone());
        // The old ending would be taken for the end of the new one.
        owner_model.endings.retain(|ended| (&ended.allocation, ended.life) != (&allocation, life));
        let is_alone = workload.slot.is_none();
        workload.begin_supervisor(life, config, self.now, tamper.clone());
        if !is_alone {
            self.violation(Law::A5, format!("two supervisors of {allocation} live at once"));
        }
        self.carry_workload(place);
    }

    /// Sends a supervisor a message, or reports that this life of it is over.
    fn tell_supervisor(
        &mut self,
        call: u64,
        allocation: &AllocationId,
        life: Attempt,
        kind: Kind,
        ask: AllocationAsk,
    ) {
        let Some(place) = self.workloads.place_of(allocation) else { return };
        self.catch_up_workload(place);
        let moment = self.moment();
        if let Some(held) = self.workloads.held(place, life) {
            held.told.insert(call, kind);
            held.supervisor.ask(moment, call, ask);
        } else {
            self.workloads.all[place].answers.push_back((call, kind.is_over()));
        }
        self.carry_workload(place);
    }

    fn end_supervisor(&mut self, allocation: &AllocationId, life: Attempt, mode: StopMode) {
        let Some(place) = self.workloads.place_of(allocation) else { return };
        self.catch_up_workload(place);
        let moment = self.moment();
        let Some(held) = self.workloads.held(place, life) else { return };
        held.is_detached |= mode == StopMode::Detach;
        held.supervisor.request_stop(moment, mode);
        self.carry_workload(place);
    }

    /// Plans the possible and the due events of the owner.
    pub(super) fn plan_owner(&mut self) {
        let owner_model = &mut self.workloads.owner_model;
        if !std::mem::take(&mut owner_model.is_stirred) {
            return;
        }
        if owner_model.await_endings.is_some() && !owner_model.endings.is_empty() {
            self.signals.push(Signal::Ready(EventKind::Workloads(WorkloadsDoing::Endings)));
        }
        if let Some(at) = owner_model.next_due() {
            self.signals.push(Signal::Due(EventKind::Workloads(WorkloadsDoing::Due), at));
        }
    }
}

/// An order as a message to a supervisor.
fn said(order: Order) -> AllocationAsk {
    match order {
        Order::Prepare => AllocationAsk::MakeReady(MakeReady { listener: Listener::Refused }),
        Order::Adopt => AllocationAsk::MakeReady(MakeReady { listener: Listener::Welcome }),
        Order::Start => AllocationAsk::NoteStart(NoteStart),
        Order::Exit(how) => AllocationAsk::NoteExit(NoteExit { how }),
        Order::Stop => AllocationAsk::StopSupervision(StopSupervision),
    }
}

/// Its own crashes are always recovered, like those of all others here.
fn owner(memory: Memory, laws: AllocationsLaws, tamper: Option<Rc<dyn Tamper<Allocations>>>) -> Owner {
    StandIn::begin(options(), memory, laws, Rules::default()).tampered_with(tamper)
}

/// All timeouts are a few seconds at most, so that much happens in a short time. Supervisors are given up as in production, but
/// at their second crash in a minute: the host sends another message to one that is given up, so that every law can hold in the end.
fn options() -> AllocationsOptions {
    AllocationsOptions {
        each: AllocationOptions {
            call_deadline: Duration::from_secs(1),
            registry_deadline: Duration::from_secs(3),
            round: Duration::from_secs(5),
            retire_deadline: Duration::from_secs(2),
            directory_deadline: Duration::from_secs(1),
            stop_deadline: Duration::from_secs(4),
            ..AllocationOptions::default()
        },
        allocations_max: usize::MAX,
        orders_max: 4,
        restart_budget: RestartBudget { limit: 1, window: Duration::from_secs(60) },
        restart_pauses: Backoff {
            first: Duration::from_millis(20),
            longest: Duration::from_secs(1),
            jitter_percent: 10,
            reset_after: Duration::from_secs(5),
        },
        ..AllocationsOptions::new(layout())
    }
}
