//! The supervised allocations of a simulated host: their owner, and each with its supervisor, its task and its files.
//!
//! ```text
//!   host ── prepare, adopt, started, exited, stop ──► owner ── the same, at once ──► supervisor of a2
//!     ▲                                               │  ▲                           supervisor of a5 ...
//!     └── answers, changed, gone ─────────────────────┘  └── answers, news, endings ──┘
//!
//!   supervisor ── register, deregister ──► registry
//!     │  ▲  └──── health, end of calls ──► registry, instances
//!     │  └── answers, whenever they arrive
//!     └──► process, socket, files
//! ```
//!
//! All other allocations call the registry directly, as a host without supervisors would.

mod calls;
mod ending;
mod event;
mod host;
mod owner;
mod word;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use self::calls::{Asked, Pending, Round};
pub use self::event::{WorkloadDoing, WorkloadOrder, WorkloadsDoing};
pub(super) use self::event::{write_workload, write_workloads};
use callboard_actors::allocation::{
    Allocation, AllocationCall, AllocationConfig, AllocationNews, AllocationOutcome, AllocationPhase,
    AllocationSpec, Layout, Listener, Plan, Task,
};
use callboard_actors::allocations::{Allocations, AllocationsOutcome};
use callboard_actors::shell::CallLost;
use callboard_actors::vocabulary::{
    AllocationId, Attempt, Health, Moment, PluginKey, PluginName, PluginType, RestartBudget, Role, TaskName,
    Timestamp,
};

use self::owner::OwnerModel;
use self::word::Kind;
use super::super::allocation::{AllocationLaws, Reply, Surroundings};
use super::super::instances::NoDisk;
use super::super::stand_in::{Rules, StandIn};
use super::super::tamper::Tamper;
use super::event::EventKind;
use super::host_model::{HostModel, Signal};
use super::names::Names;

type Supervisor = StandIn<Allocation, NoDisk, AllocationLaws>;
/// The faults of the supervisors, and of their owner.
type Wrong = (Option<Rc<dyn Tamper<Allocation>>>, Option<Rc<dyn Tamper<Allocations>>>);

/// One in this many allocations is supervised.
const SUPERVISED_EVERY: u32 = 3;
/// How long a plugin has to become ready.
pub(super) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// All supervised allocations.
#[derive(Debug, Clone)]
pub(super) struct Workloads {
    all: Vec<Workload>,
    places: BTreeMap<AllocationId, usize>,
    owner_model: OwnerModel,
    /// The questions of supervisors to the registry and the instances, by their number.
    asked: BTreeMap<u64, Asked>,
    /// The allocations in which something has changed since the world last looked.
    changed: Vec<usize>,
    tamper: Option<Rc<dyn Tamper<Allocation>>>,
    steps: u64,
}

/// A supervised allocation.
#[derive(Debug, Clone)]
struct Workload {
    spec: Rc<AllocationSpec>,
    slot: Option<Box<Held>>,
    /// How many supervisors it has had. Answers to an earlier one are dropped.
    life: u64,
    /// Its phase and health, as last reported to its host.
    phase: AllocationPhase,
    health: Health,
    around: Surroundings,
    /// Whether the process runs.
    runs: bool,
    /// Whether the next start is prepared.
    is_ready: bool,
    /// Whether its latest start was lost on its way to the owner.
    is_unsaid: bool,
    /// Whether its supervisor has cleaned up everything, and whether the files could not be removed then.
    has_left: bool,
    is_untidy: bool,
    /// Whether it is gone since its supervisors crashed too often, and the registry has received no message about it since.
    is_abandoned: bool,
    calls: Vec<Pending>,
    /// The deadline of each call.
    deadlines: Vec<(u64, Timestamp, Duration)>,
    round: Option<Round>,
    /// Answers in flight to its supervisor.
    arrivals: VecDeque<(u64, AllocationOutcome)>,
    /// The answers of its supervisors to their owner, by its call, and their notifications, with their lives.
    answers: VecDeque<(u64, AllocationsOutcome)>,
    news: VecDeque<(Attempt, AllocationNews)>,
    /// Whether nothing has happened to it since it came to rest.
    is_content: bool,
}

/// A living supervisor.
#[derive(Debug, Clone)]
struct Held {
    /// The life of the supervisor as its owner numbers it.
    life: Attempt,
    supervisor: Supervisor,
    /// Its unanswered orders, by the call of its owner.
    told: BTreeMap<u64, Kind>,
    /// Whether it was requested to detach.
    is_detached: bool,
    /// How many of its steps are counted.
    counted: u64,
}

impl Workloads {
    pub(super) fn new(names: &Names, (tamper, of_owner): Wrong) -> Self {
        let numbers = (0..names.allocations()).filter(|who| place_of(*who).is_some());
        let all: Vec<Workload> = numbers.map(|who| Workload::new(names, who)).collect();
        let id = |workload: &Workload| workload.spec.allocation.clone();
        let places = all.iter().map(id).zip(0..).collect();
        let owner_model = OwnerModel::new(of_owner);
        Self { all, places, owner_model, asked: BTreeMap::new(), changed: Vec::new(), tamper, steps: 0 }
    }

    /// The number of supervised allocations.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }

    /// Whether a supervisor has asked under this number.
    pub(super) fn has_asked(&self, asker: u64) -> bool {
        self.asked.contains_key(&asker)
    }

    /// The number of the allocation at this place.
    pub(super) const fn number(place: u32) -> u32 {
        place * SUPERVISED_EVERY + SUPERVISED_EVERY - 1
    }

    /// Whether this allocation has a supervisor.
    pub(super) const fn is_supervised(who: u32) -> bool {
        place_of(who).is_some()
    }

    /// How many steps their owner and all supervisors have taken.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether their owner has ended.
    pub(super) const fn have_ended(&self) -> bool {
        self.owner_model.has_ended()
    }

    /// The name of the plugin of a supervised allocation, and the halves of the plugin that the allocation serves.
    pub(super) fn workload(names: &Names, who: u32) -> (PluginName, Role) {
        let served = names.served_by(who);
        let role = match served[..] {
            [_, _, ..] => Role::Monolith,
            [PluginKey { plugin_type: PluginType::CsiController, .. }] => Role::Controller,
            [_] | [] => Role::Node,
        };
        (served[0].name.clone(), role)
    }

    /// The result of an identity check: whether the process that was registered runs. Only supervised allocations are checked.
    pub(super) fn is_there(&self, allocation: &AllocationId, version: Option<&str>) -> bool {
        let place = self.places.get(allocation);
        place.is_none_or(|place| self.all[*place].runs_as(version))
    }
}

/// The place of an allocation with this number among the supervised ones, if it is supervised.
const fn place_of(who: u32) -> Option<usize> {
    if who % SUPERVISED_EVERY == SUPERVISED_EVERY - 1 {
        Some((who / SUPERVISED_EVERY) as usize)
    } else {
        None
    }
}

impl Workload {
    fn new(names: &Names, who: u32) -> Self {
        let (plugin, role) = Workloads::workload(names, who);
        let provider = format!("{plugin}.example").into();
        let task = TaskName::new("plugin").expect("it is a name");
        let mut spec = AllocationSpec::new(names.allocation(who), task, plugin, role);
        spec.health_timeout = HEALTH_TIMEOUT;
        let plan = Plan::new(&layout(), &spec).expect("the paths are short");
        let around = Surroundings::new(spec.allocation.clone(), plan.context.socket, provider);
        Self {
            spec: Rc::new(spec),
            slot: None,
            life: 0,
            phase: AllocationPhase::Prepared,
            health: Health::Starting,
            around,
            runs: false,
            is_ready: false,
            is_unsaid: false,
            has_left: false,
            is_untidy: false,
            is_abandoned: false,
            calls: Vec::new(),
            deadlines: Vec::new(),
            round: None,
            arrivals: VecDeque::new(),
            answers: VecDeque::new(),
            news: VecDeque::new(),
            is_content: false,
        }
    }

    fn name(&self) -> &AllocationId {
        &self.spec.allocation
    }

    /// Whether the process of this version runs.
    fn runs_as(&self, version: Option<&str>) -> bool {
        self.runs && version == Some(&*self.around.version())
    }

    /// A supervisor takes its slot. A crash ends the supervisor, as in production.
    fn begin_supervisor(
        &mut self,
        life: Attempt,
        config: AllocationConfig,
        now: Timestamp,
        tamper: Option<Rc<dyn Tamper<Allocation>>>,
    ) {
        let laws = AllocationLaws::new(config.clone(), now);
        let budget = RestartBudget { limit: 0, window: Duration::from_secs(1) };
        let supervisor = StandIn::begin(config, NoDisk, laws, Rules { budget, ..Rules::default() });
        let supervisor = supervisor.tampered_with(tamper);
        let told = BTreeMap::new();
        self.slot = Some(Box::new(Held { life, supervisor, told, is_detached: false, counted: 0 }));
        self.has_left = false;
    }

    /// No caller waits for answers any longer. Questions to the registry and the instances still arrive there.
    fn forget_caller(&mut self) {
        self.life += 1;
        self.calls.clear();
        self.deadlines.clear();
        self.arrivals.clear();
        self.round = None;
    }

    /// Its supervisor is let go, and messages of its supervisors in flight are dropped.
    fn let_go(&mut self) {
        self.forget_caller();
        self.slot = None;
        self.answers.clear();
        self.news.clear();
    }

    // === Calls that return ===

    /// The task or its files answer a call. A call that hangs returns at its deadline.
    fn meets(&mut self, moment: Moment, place: usize, reply: Reply) {
        let Some(held) = &mut self.slot else { return };
        let mut open = self.calls.iter_mut().enumerate().filter(|(_, call)| !call.hangs);
        let Some((at, pending)) = open.nth(place) else { return };
        if reply == Reply::Late {
            pending.hangs = true;
            return;
        }
        let Pending { number, call, process, is_taken, .. } = self.calls.remove(at);
        let is_dead = !self.runs || process != self.around.process;
        let reply = if is_dead && matches!(call, AllocationCall::Ask(_)) { Reply::Bad } else { reply };
        if call == AllocationCall::RemoveDirectory {
            self.is_untidy = reply != Reply::Good;
        }
        let met =
            if is_taken { Some(Ok(self.around.taken())) } else { self.around.meet(&call, process, reply) };
        let Some(outcome) = met else { return };
        self.deadlines.retain(|(other, ..)| *other != number);
        held.supervisor.returned(moment, number, outcome);
    }

    /// The oldest answer of the registry or the instances arrives.
    fn hears(&mut self, moment: Moment) {
        let Some(held) = &mut self.slot else { return };
        let Some((number, outcome)) = self.arrivals.pop_front() else { return };
        self.deadlines.retain(|(other, ..)| *other != number);
        held.supervisor.returned(moment, number, Ok(outcome));
    }

    /// Calls past their deadline are lost, and due timers run.
    fn is_due(&mut self, moment: Moment) {
        let Some(held) = &mut self.slot else { return };
        while let Some(at) = self.deadlines.iter().position(|(_, until, _)| *until <= moment.now) {
            let (number, _, within) = self.deadlines.remove(at);
            if self.calls.iter().any(|pending| pending.is_removal(number)) {
                self.is_untidy = true;
            }
            self.calls.retain(|pending| pending.number != number);
            held.supervisor.returned(moment, number, Err(CallLost::DeadlineExceeded(within)));
        }
        held.supervisor.timers_due(moment);
    }

    fn next_due(&self) -> Option<Timestamp> {
        let held = self.slot.as_ref()?;
        let deadlines = self.deadlines.iter().map(|(_, until, _)| *until);
        deadlines.chain(held.supervisor.next_timer()).min()
    }
}

impl HostModel {
    pub(super) fn workload_does(&mut self, who: u32, doing: WorkloadDoing) {
        let Some(place) = place_of(who).filter(|place| *place < self.workloads.all.len()) else { return };
        self.catch_up_workload(place);
        let (moment, is_up) = (self.moment(), self.is_up());
        let task = self.workloads.task_at(place);
        let workload = &mut self.workloads.all[place];
        match doing {
            WorkloadDoing::Order(order) => self.order_workload(place, order),
            WorkloadDoing::Answer => self.answer_arrives(place),
            WorkloadDoing::News => self.news_arrive(place),
            WorkloadDoing::Meet(nth, reply) => workload.meets(moment, nth.into(), reply),
            WorkloadDoing::Deliver => workload.hears(moment),
            WorkloadDoing::Due => workload.is_due(moment),
            // A host that has not reported its task yet would see that the process is gone.
            WorkloadDoing::Die if task == Some(Task::Running) => workload.runs = false,
            WorkloadDoing::Crash if is_up => {
                if let Some(held) = &mut workload.slot {
                    held.supervisor.crash_next_step();
                }
            }
            WorkloadDoing::Fall if is_up => self.supervisor_is_killed(place),
            // At the end of a host no supervisor is killed.
            WorkloadDoing::Die | WorkloadDoing::Crash | WorkloadDoing::Fall => {}
        }
        self.carry_workload(place);
    }

    /// Timers that were due meanwhile run at their time, also in a history without the event of that.
    fn catch_up_workload(&mut self, place: usize) {
        let present = self.moment();
        while let Some(due) = self.workloads.all[place].next_due().filter(|due| *due < present.now) {
            self.workloads.all[place].is_due(Moment { now: due, ..present });
            self.carry_workload(place);
        }
    }

    /// Plans the possible and the due events of the supervised allocations.
    pub(super) fn plan_workloads(&mut self) {
        self.plan_owner();
        for place in std::mem::take(&mut self.workloads.changed) {
            let who = Workloads::number(u32::try_from(place).unwrap_or(u32::MAX));
            let workload = &self.workloads.all[place];
            let ready = [
                (workload.calls.iter().any(|call| !call.hangs), WorkloadDoing::Meet(0, Reply::Good)),
                (!workload.arrivals.is_empty(), WorkloadDoing::Deliver),
                (!workload.answers.is_empty(), WorkloadDoing::Answer),
                (!workload.news.is_empty(), WorkloadDoing::News),
            ];
            let due = workload.next_due();
            for (_, doing) in ready.into_iter().filter(|(is_ready, _)| *is_ready) {
                self.signals.push(Signal::Ready(EventKind::Workload(who, doing)));
            }
            if let Some(at) = due {
                self.signals.push(Signal::Due(EventKind::Workload(who, WorkloadDoing::Due), at));
            }
        }
    }
}

/// The paths of all files.
fn layout() -> Layout {
    Layout::new("/data", "/run/callboard").expect("they are short and absolute")
}
