//! The supervised allocations of a simulated company: each with its supervisor, its task and its files.
//!
//! ```text
//!   host ── prepare, started, exited, stop ──► supervisor ── register, deregister ──► registry
//!                                               │  ▲  └───── health, end of calls ──► registry, instances
//!                       process, socket, files ◄┘  └── answers, whenever they arrive
//! ```
//!
//! All others speak with the registry themselves, as a host without supervisors would.

mod calls;
mod ending;
mod event;
mod host;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use self::calls::{Asked, Pending, Round};
pub(super) use self::event::write_workload;
pub use self::event::{WorkloadDoing, WorkloadOrder};
use super::super::allocation::{AllocationLaws, Owner, Reply, Surroundings};
use super::super::instances::NoBooks;
use super::super::stand_in::{Rules, StandIn};
use super::super::tamper::Tamper;
use super::company::{Company, Signal};
use super::event::Happening;
use super::roles::Cast;
use crate::allocation::{
    Allocation, AllocationCall, AllocationConfig, AllocationOptions, AllocationOutcome, AllocationPhase,
    AllocationSpec, Layout, Plan, Task,
};
use crate::shell::CallLost;
use crate::vocabulary::{
    AllocationId, Health, Moment, PluginKey, PluginName, PluginType, RestartBudget, Role, TaskName, Timestamp,
};

type Supervisor = StandIn<Allocation, NoBooks, AllocationLaws>;

/// Every so many allocations one is supervised.
const SUPERVISED_EVERY: u32 = 3;
/// How long a plugin has to become ready.
pub(super) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// All supervised allocations.
#[derive(Debug, Clone)]
pub(super) struct Workloads {
    all: Vec<Workload>,
    places: BTreeMap<AllocationId, usize>,
    /// What supervisors have asked the registry and the instances, by the number under which they did.
    asked: BTreeMap<u64, Asked>,
    /// Those at which something has changed since the world looked.
    stirred: Vec<usize>,
    tamper: Option<Rc<dyn Tamper<Allocation>>>,
    steps: u64,
}

/// One of them.
#[derive(Debug, Clone)]
struct Workload {
    config: Rc<AllocationConfig>,
    seat: Seat,
    /// How many supervisors it has had. What is answered to an earlier one arrives nowhere.
    life: u64,
    owner: Owner,
    /// Where it has got to, as last told.
    phase: AllocationPhase,
    around: Surroundings,
    /// Whether the process runs.
    runs: bool,
    /// Whether its supervisor has ever prepared it in this run of the host, and whether the next start is prepared.
    is_prepared: bool,
    is_ready: bool,
    /// Whether it has left, and whether its files could not be removed then.
    has_left: bool,
    is_untidy: bool,
    calls: Vec<Pending>,
    /// Until when each call has time.
    deadlines: Vec<(u64, Timestamp, Duration)>,
    round: Option<Round>,
    /// Answers on their way to its supervisor.
    arrivals: VecDeque<(u64, AllocationOutcome)>,
    /// How many steps of its supervisor are counted.
    counted: u64,
}

/// Whether somebody looks after it.
#[derive(Debug, Clone)]
enum Seat {
    Vacant,
    /// Its supervisor fell, and another one comes after a pause.
    Pausing,
    Taken(Box<Supervisor>),
}

impl Workloads {
    pub(super) fn new(cast: &Cast, tamper: Option<Rc<dyn Tamper<Allocation>>>) -> Self {
        let numbers = (0..cast.allocations()).filter(|who| place_of(*who).is_some());
        let all: Vec<Workload> = numbers.map(|who| Workload::new(cast, who)).collect();
        let id = |workload: &Workload| workload.config.spec.allocation.clone();
        let places = all.iter().map(id).zip(0..).collect();
        Self { all, places, asked: BTreeMap::new(), stirred: Vec::new(), tamper, steps: 0 }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// The number of the allocation at this place.
    pub(super) const fn number(place: u32) -> u32 {
        place * SUPERVISED_EVERY + SUPERVISED_EVERY - 1
    }

    /// Whether this allocation has a supervisor.
    pub(super) const fn is_supervised(who: u32) -> bool {
        place_of(who).is_some()
    }

    /// How many steps all supervisors have taken.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether none of them has a supervisor any more.
    pub(super) fn are_vacant(&self) -> bool {
        self.all.iter().all(|workload| matches!(workload.seat, Seat::Vacant))
    }

    /// The name of the plugin of a supervised allocation, and which halves of it that serves.
    pub(super) fn workload(cast: &Cast, who: u32) -> (PluginName, Role) {
        let served = cast.served_by(who);
        let role = match served[..] {
            [_, _, ..] => Role::Monolith,
            [PluginKey { plugin_type: PluginType::CsiController, .. }] => Role::Controller,
            [_] | [] => Role::Node,
        };
        (served[0].name.clone(), role)
    }

    /// What supervises is as this identity check finds it: the process that was registered runs.
    pub(super) fn is_there(&self, allocation: &AllocationId, version: Option<&str>) -> bool {
        let place = self.places.get(allocation);
        place.is_none_or(|place| self.all[*place].runs_as(version))
    }
}

/// Where an allocation of this number stands among the supervised ones, if it is one.
const fn place_of(who: u32) -> Option<usize> {
    if who % SUPERVISED_EVERY == SUPERVISED_EVERY - 1 {
        Some((who / SUPERVISED_EVERY) as usize)
    } else {
        None
    }
}

impl Workload {
    fn new(cast: &Cast, who: u32) -> Self {
        let (plugin, role) = Workloads::workload(cast, who);
        let provider = format!("{plugin}.example").into();
        let task = TaskName::new("plugin").expect("it is a name");
        let mut spec = AllocationSpec::new(cast.allocation(who), task, plugin, role);
        spec.health_timeout = HEALTH_TIMEOUT;
        let layout = Layout::new("/data", "/run/callboard").expect("they are short and absolute");
        let plan = Plan::new(&layout, &spec).expect("the paths are short");
        let (allocation, socket) = (spec.allocation.clone(), plan.context.socket.clone());
        let (options, task, health) = (options(), Task::NotStarted, Health::Starting);
        Self {
            config: Rc::new(AllocationConfig { spec, plan, options, task, health }),
            seat: Seat::Vacant,
            life: 0,
            owner: Owner::new(),
            phase: AllocationPhase::Prepared,
            around: Surroundings::new(allocation, socket, provider),
            runs: false,
            is_prepared: false,
            is_ready: false,
            has_left: false,
            is_untidy: false,
            calls: Vec::new(),
            deadlines: Vec::new(),
            round: None,
            arrivals: VecDeque::new(),
            counted: 0,
        }
    }

    /// Whether the process of this version runs.
    fn runs_as(&self, version: Option<&str>) -> bool {
        self.runs && version == Some(&*self.around.version())
    }

    /// A supervisor takes its seat, and knows what its owner knows.
    fn take_seat(&mut self, now: Timestamp, tamper: Option<Rc<dyn Tamper<Allocation>>>) {
        let (task, health) = (self.owner.task, self.owner.health.clone());
        let config = AllocationConfig { task, health, ..(*self.config).clone() };
        let laws = AllocationLaws::new(config.clone(), now);
        let budget = RestartBudget { limit: 0, window: Duration::from_secs(1) };
        let supervisor = StandIn::begin(config, NoBooks, laws, Rules { budget, ..Rules::default() });
        self.seat = Seat::Taken(Box::new(supervisor.tampered_with(tamper)));
        self.counted = 0;
    }

    /// Nobody waits for answers any more. What was asked of the registry and the instances arrives there all the same.
    fn forget_caller(&mut self) {
        self.life += 1;
        self.calls.clear();
        self.deadlines.clear();
        self.arrivals.clear();
        self.round = None;
    }

    // === What comes back ===

    /// The task or its files meet a call. One that hangs comes back when its time is up.
    fn meets(&mut self, moment: Moment, place: usize, reply: Reply) {
        let Seat::Taken(supervisor) = &mut self.seat else { return };
        let mut open = self.calls.iter_mut().enumerate().filter(|(_, call)| !call.hangs);
        let Some((at, pending)) = open.nth(place) else { return };
        if reply == Reply::Late {
            pending.hangs = true;
            return;
        }
        let Pending { number, call, process, .. } = self.calls.remove(at);
        let is_dead = !self.runs || process != self.around.process;
        let reply = if is_dead && matches!(call, AllocationCall::Ask(_)) { Reply::Bad } else { reply };
        if call == AllocationCall::RemoveDirectory {
            self.is_untidy = reply != Reply::Good;
        }
        let Some(outcome) = self.around.meet(&call, process, reply) else { return };
        self.deadlines.retain(|(other, ..)| *other != number);
        supervisor.returned(moment, number, outcome);
    }

    /// The oldest answer of the registry or the instances arrives.
    fn hears(&mut self, moment: Moment) {
        let Seat::Taken(supervisor) = &mut self.seat else { return };
        let Some((number, outcome)) = self.arrivals.pop_front() else { return };
        self.deadlines.retain(|(other, ..)| *other != number);
        supervisor.returned(moment, number, Ok(outcome));
    }

    /// Calls whose time is up are lost, and what is due runs.
    fn is_due(&mut self, moment: Moment) {
        let Seat::Taken(supervisor) = &mut self.seat else { return };
        while let Some(at) = self.deadlines.iter().position(|(_, until, _)| *until <= moment.now) {
            let (number, _, within) = self.deadlines.remove(at);
            if self.calls.iter().any(|pending| pending.is_removal(number)) {
                self.is_untidy = true;
            }
            self.calls.retain(|pending| pending.number != number);
            supervisor.returned(moment, number, Err(CallLost::DeadlineExceeded(within)));
        }
        supervisor.timers_due(moment);
    }

    fn next_due(&self) -> Option<Timestamp> {
        let Seat::Taken(supervisor) = &self.seat else { return None };
        let deadlines = self.deadlines.iter().map(|(_, until, _)| *until);
        deadlines.chain(supervisor.next_timer()).min()
    }
}

impl Company {
    pub(super) fn workload_does(&mut self, who: u32, doing: WorkloadDoing) {
        let Some(place) = place_of(who).filter(|place| *place < self.workloads.all.len()) else { return };
        self.catch_up_workload(place);
        let (moment, is_up) = (self.moment(), self.is_up());
        let workload = &mut self.workloads.all[place];
        match doing {
            WorkloadDoing::Order(order) => self.order_workload(place, order),
            WorkloadDoing::Meet(nth, reply) => workload.meets(moment, nth.into(), reply),
            WorkloadDoing::Deliver => workload.hears(moment),
            WorkloadDoing::Due => workload.is_due(moment),
            WorkloadDoing::Raise => self.raise_workload(place),
            // A host that has not spoken of its task yet would see that it is not there.
            WorkloadDoing::Die if workload.owner.task == Task::Running => workload.runs = false,
            WorkloadDoing::Crash if is_up => {
                if let Seat::Taken(supervisor) = &mut workload.seat {
                    supervisor.light_fuse();
                }
            }
            WorkloadDoing::Fall if is_up && matches!(workload.seat, Seat::Taken(_)) => {
                workload.forget_caller();
                workload.seat = Seat::Pausing;
            }
            // Who ends the host brings no other one, and nobody falls twice.
            WorkloadDoing::Die | WorkloadDoing::Crash | WorkloadDoing::Fall => {}
        }
        self.carry_workload(place);
    }

    /// What was due meanwhile ran when it was, also in a history from which that event was left out.
    fn catch_up_workload(&mut self, place: usize) {
        let present = self.moment();
        while let Some(due) = self.workloads.all[place].next_due().filter(|due| *due < present.now) {
            self.workloads.all[place].is_due(Moment { now: due, ..present });
            self.carry_workload(place);
        }
    }

    /// What can go on among the supervised allocations, or is due there.
    pub(super) fn plan_workloads(&mut self) {
        for place in std::mem::take(&mut self.workloads.stirred) {
            let who = Workloads::number(u32::try_from(place).unwrap_or(u32::MAX));
            let workload = &self.workloads.all[place];
            let ready = [
                (workload.calls.iter().any(|call| !call.hangs), WorkloadDoing::Meet(0, Reply::Good)),
                (!workload.arrivals.is_empty(), WorkloadDoing::Deliver),
                (matches!(workload.seat, Seat::Pausing), WorkloadDoing::Raise),
            ];
            let due = workload.next_due();
            for (_, doing) in ready.into_iter().filter(|(is_ready, _)| *is_ready) {
                self.signals.push(Signal::Ready(Happening::Workload(who, doing)));
            }
            if let Some(at) = due {
                self.signals.push(Signal::Due(Happening::Workload(who, WorkloadDoing::Due), at));
            }
        }
    }
}

/// Everything takes a few seconds at most, so that much happens in a short time.
fn options() -> AllocationOptions {
    AllocationOptions {
        call_deadline: Duration::from_secs(1),
        registry_deadline: Duration::from_secs(3),
        round: Duration::from_secs(5),
        retire_deadline: Duration::from_secs(2),
        directory_deadline: Duration::from_secs(1),
        stop_deadline: Duration::from_secs(4),
        ..AllocationOptions::default()
    }
}
