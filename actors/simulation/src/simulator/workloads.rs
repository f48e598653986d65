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
//! All others speak with the registry themselves, as a host without supervisors would.

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
/// What is wrong with the supervisors, and with their owner.
type Wrong = (Option<Rc<dyn Tamper<Allocation>>>, Option<Rc<dyn Tamper<Allocations>>>);

/// Every so many allocations one is supervised.
const SUPERVISED_EVERY: u32 = 3;
/// How long a plugin has to become ready.
pub(super) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// All supervised allocations.
#[derive(Debug, Clone)]
pub(super) struct Workloads {
    all: Vec<Workload>,
    places: BTreeMap<AllocationId, usize>,
    owner_model: OwnerModel,
    /// What supervisors have asked the registry and the instances, by the number under which they did.
    asked: BTreeMap<u64, Asked>,
    /// Those at which something has changed since the world looked.
    changed: Vec<usize>,
    tamper: Option<Rc<dyn Tamper<Allocation>>>,
    steps: u64,
}

/// One of them.
#[derive(Debug, Clone)]
struct Workload {
    spec: Rc<AllocationSpec>,
    slot: Option<Box<Held>>,
    /// How many supervisors it has had. What is answered to an earlier one arrives nowhere.
    life: u64,
    /// Where it has got to and how it is, as its host was told last.
    phase: AllocationPhase,
    health: Health,
    around: Surroundings,
    /// Whether the process runs.
    runs: bool,
    /// Whether the next start is prepared.
    is_ready: bool,
    /// Whether its latest start was lost on its way to the owner.
    is_unsaid: bool,
    /// Whether its supervisor has put everything away, and whether the files could not be removed then.
    has_left: bool,
    is_untidy: bool,
    /// Whether it is gone since its supervisors crashed too often, and the registry has got no message about it since.
    is_abandoned: bool,
    calls: Vec<Pending>,
    /// Until when each call has time.
    deadlines: Vec<(u64, Timestamp, Duration)>,
    round: Option<Round>,
    /// Answers on their way to its supervisor.
    arrivals: VecDeque<(u64, AllocationOutcome)>,
    /// What its supervisors have answered to their owner, by its call, and have told it, with their lives.
    answers: VecDeque<(u64, AllocationsOutcome)>,
    news: VecDeque<(Attempt, AllocationNews)>,
    /// Whether nothing has happened to it since nothing more was to be expected of it.
    is_content: bool,
}

/// Who looks after it.
#[derive(Debug, Clone)]
struct Held {
    /// Which life of its supervisor this is to its owner.
    life: Attempt,
    supervisor: Supervisor,
    /// What it was told and has not answered, by the call of its owner.
    told: BTreeMap<u64, Kind>,
    /// Whether it was told to leave everything in place.
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

    /// How many there are.
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

    /// The name of the plugin of a supervised allocation, and which halves of it that serves.
    pub(super) fn workload(names: &Names, who: u32) -> (PluginName, Role) {
        let served = names.served_by(who);
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

    /// A supervisor takes its slot. A crash ends it, as in production.
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

    /// No caller waits for answers any more. What was asked of the registry and the instances arrives there all the same.
    fn forget_caller(&mut self) {
        self.life += 1;
        self.calls.clear();
        self.deadlines.clear();
        self.arrivals.clear();
        self.round = None;
    }

    /// Its supervisor is let go, and nothing that one said arrives any more.
    fn let_go(&mut self) {
        self.forget_caller();
        self.slot = None;
        self.answers.clear();
        self.news.clear();
    }

    // === What comes back ===

    /// The task or its files meet a call. One that hangs comes back when its time is up.
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

    /// Calls whose time is up are lost, and what is due runs.
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
            // A host that has not spoken of its task yet would see that it is not there.
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

/// Where everything would lie.
fn layout() -> Layout {
    Layout::new("/data", "/run/callboard").expect("they are short and absolute")
}
