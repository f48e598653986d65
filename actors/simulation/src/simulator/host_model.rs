//! The model of a host: a registry with its disk, the instances, the inventory, and all their callers.
//!
//! It applies one event at a time, and checks the laws after each. It uses no random numbers: the same events have the same result.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::instances::InstancesOptions;
use callboard_actors::inventory::{InstancesItem, Inventory};
use callboard_actors::registry::{Registry, RegistryAsk, RegistryOptions};
use callboard_actors::shell::{Message, StopMode};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::super::drivers::DriversModel;
use super::super::instances::{InstancesModel, NoDisk};
use super::super::inventory::InventoryLaws;
use super::super::law::Law;
use super::super::law_checker::Verdict;
use super::super::observed::Observed;
use super::super::registry::{RegistryDisk, RegistryLaws, may_wait};
use super::super::stand_in::{Rules, StandIn};
use super::super::supervision::Family;
use super::super::tamper::Tamper;
use super::Simulation;
use super::database::Database;
use super::disk::DiskTrouble;
use super::drivers::{Wishes, drivers_model};
use super::event::EventKind;
use super::inventory::new_inventory;
use super::names::Names;
use super::processes::OwnedProcesses;
use super::supervision::family;
use super::tampers::Tampers;
use super::volumes::OwnedVolumes;
use super::workloads::Workloads;
use crate::random::mixed;

pub(super) type RegistryActor = StandIn<Registry, RegistryDisk, RegistryLaws>;
pub(super) type InventoryActor = StandIn<Inventory, NoDisk, InventoryLaws>;

/// The phase of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostPhase {
    Running,
    /// The owner of the supervisors of allocations and the volumes were requested to stop in this mode, and no other actor yet.
    StoppingWorkloads(StopMode),
    /// The other consumers were requested to stop, and the registry not yet.
    StoppingConsumers,
    /// The registry was requested to stop.
    StoppingRegistry,
    Down,
}

/// A signal to the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// This event can happen by itself now.
    Ready(EventKind),
    /// A plugin is being called.
    Called(u32),
    /// This event is due at this time.
    Due(EventKind, Timestamp),
}

#[derive(Debug, Clone)]
pub(super) struct HostModel {
    pub(super) names: Names,
    options: RegistryOptions,
    tamper: Option<Rc<dyn Tamper<Registry>>>,
    pub(super) registry: RegistryActor,
    pub(super) instances_model: InstancesModel,
    pub(super) inventory: InventoryActor,
    pub(super) drivers_model: DriversModel,
    pub(super) wishes: Wishes,
    pub(super) owned: OwnedProcesses,
    pub(super) volumes: OwnedVolumes,
    pub(super) database: Option<Database>,
    /// The present fault of the disk.
    pub(super) disk: Option<DiskTrouble>,
    pub(super) family: Family,
    pub(super) workloads: Workloads,
    pub(super) inventory_follow: Option<u64>,
    pub(super) inventory_inbox: VecDeque<InstancesItem>,
    pub(super) inventory_is_owed: bool,
    pub(super) inbox: usize,
    pub(super) is_owed: bool,
    /// The calls of the supervisor of the instances to the registry, by the number under which it asks.
    pub(super) registry_calls: BTreeMap<u64, u64>,
    pub(super) phase: HostPhase,
    pub(super) now: Timestamp,
    askers: u64,
    pub(super) unanswered: BTreeSet<u64>,
    /// The callers that asked the registry a question that no disk may delay.
    pub(super) prompt: BTreeSet<u64>,
    steps_before: u64,
    pub(super) signals: Vec<Signal>,
    /// The effects of the present event, if a trace is made.
    pub(super) trace: Option<Vec<Observed>>,
    pub(super) verdict: Verdict,
}

impl HostModel {
    pub(super) fn new(simulation: &Simulation, tampers: Tampers) -> Self {
        let Simulation { plugins, allocations, drivers, processes, volumes, has_database, .. } = *simulation;
        let (tamper, names) = (tampers.registry, Names::new(plugins, allocations));
        let now = Timestamp::from_epoch(Duration::from_secs(1_000_000));
        let options =
            RegistryOptions { restore_grace: Duration::from_secs(20), ..RegistryOptions::default() };
        let laws = RegistryLaws::new(options.clone(), false);
        let mut disk = RegistryDisk::new(now);
        if has_database {
            disk.stand_beside_a_database();
        }
        let registry = StandIn::begin(options.clone(), disk, laws, Rules::default());
        let mut host_model = Self {
            workloads: Workloads::new(&names, (tampers.allocation, tampers.allocations)),
            names,
            registry: registry.tampered_with(tamper.clone()),
            options,
            tamper,
            instances_model: InstancesModel::new(InstancesOptions::default()),
            inventory: new_inventory(),
            drivers_model: drivers_model(drivers, tampers.drivers),
            wishes: Wishes::new(drivers),
            owned: OwnedProcesses::new(processes, tampers.processes),
            volumes: OwnedVolumes::new(volumes, &tampers.volume),
            database: has_database.then(|| Database::new(tampers.database)),
            disk: None,
            family: family(tampers.supervisors),
            inventory_follow: None,
            inventory_inbox: VecDeque::new(),
            inventory_is_owed: false,
            inbox: 0,
            is_owed: false,
            registry_calls: BTreeMap::new(),
            phase: HostPhase::Running,
            now,
            askers: 0,
            unanswered: BTreeSet::new(),
            prompt: BTreeSet::new(),
            steps_before: 0,
            signals: Vec::new(),
            trace: None,
            verdict: Verdict::NONE,
        };
        host_model.start_host();
        host_model
    }

    /// The number of steps of all machines so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps_before
            + self.registry.steps()
            + self.instances_model.steps()
            + self.inventory.steps()
            + self.drivers_model.steps()
            + self.owned.model.steps()
            + self.volumes.steps()
            + self.family.steps()
            + self.workloads.steps()
    }

    /// The time, and a random number that is derived from it.
    pub(super) fn moment(&self) -> Moment {
        let micros = u64::try_from(self.now.since_epoch().as_micros()).unwrap_or(u64::MAX);
        Moment { now: self.now, random: mixed(micros) }
    }

    // === The lifecycle of a host ===

    /// Starts all actors except the registry, which reads its store first.
    pub(super) fn start_host(&mut self) {
        self.phase = HostPhase::Running;
        let moment = self.moment();
        self.instances_model.load(moment);
        self.inventory.loaded(moment, ());
        self.signals.push(Signal::Ready(EventKind::Load(true)));
        self.start_drivers();
        self.plan_processes();
        self.plan_volumes();
        self.start_family();
        self.carry_owner();
        self.dispatch();
    }

    /// The host is gone in the middle of any work. This number of writes of the registry, and of the owner of the processes, are on disk.
    pub(super) fn end_run(&mut self, reached: usize, reached_of_processes: usize) {
        // All others keep their own counts.
        self.steps_before += self.registry.steps() + self.instances_model.steps() + self.inventory.steps();
        self.drivers_model.next_run();
        self.owned.model.next_run(reached_of_processes);
        self.volumes.next_run(reached);
        self.family.fall();
        self.workloads.next_run(self.phase != HostPhase::StoppingRegistry);
        let mut disk = self.registry.store.clone();
        let mut laws = self.registry.checker.clone();
        disk.begin_run(reached, self.now);
        laws.forget_listeners();
        let registry = StandIn::begin(self.options.clone(), disk, laws, Rules::default());
        self.registry = registry.tampered_with(self.tamper.clone());
        self.instances_model = InstancesModel::new(InstancesOptions::default());
        self.instances_model.noted = self.trace.as_ref().map(|_| Vec::new());
        self.inventory = new_inventory();
        (self.inventory_follow, self.inventory_is_owed) = (None, false);
        self.inventory_inbox.clear();
        (self.inbox, self.is_owed) = (0, false);
        self.registry_calls.clear();
        self.unanswered.clear();
        self.prompt.clear();
        self.disk = None;
        self.signals.clear();
        self.phase = HostPhase::Down;
    }

    pub(super) fn request_stop(&mut self, mode: StopMode) {
        self.phase = HostPhase::StoppingWorkloads(mode);
        self.stop_workloads(mode);
        self.stop_volumes(mode);
    }

    /// The supervisors of allocations and the volumes have stopped: the other consumers follow, then the registry, and then the owner of
    /// the processes. After that nothing may be left.
    fn go_on_stopping(&mut self) {
        if let HostPhase::StoppingWorkloads(mode) = self.phase
            && self.workloads.have_ended()
            && self.volumes_have_ended()
        {
            self.phase = HostPhase::StoppingConsumers;
            let moment = self.moment();
            self.stop_drivers(mode);
            self.processes_will_stop(mode);
            self.stop_family(mode);
            self.inventory.request_stop(moment, StopMode::Stop);
            self.instances_model.request_stop(moment);
        }
        if self.phase == HostPhase::StoppingConsumers
            && self.instances_model.has_ended
            && self.inventory.has_ended()
            && self.drivers_model.has_ended
            && !self.family.lives()
        {
            self.phase = HostPhase::StoppingRegistry;
            self.registry.request_stop(self.moment(), StopMode::Stop);
        }
        if self.phase == HostPhase::StoppingRegistry && self.registry.has_ended() && self.stop_processes() {
            if self.instances_model.children_count() > 0 {
                let what =
                    format!("{} instances are left after the end", self.instances_model.children_count());
                self.violation(Law::S4, what);
            }
            self.close_database();
            // Writes that a sick disk has not taken by now are lost.
            let [written, of_processes] = match self.disk {
                None => [self.registry.store.waiting(), self.owned.model.waiting()],
                Some(_) => [0, 0],
            };
            self.end_run(written, of_processes);
            self.signals.push(Signal::Ready(EventKind::Start));
        }
    }

    /// Whether a host runs, and was not requested to stop.
    pub(super) fn is_up(&self) -> bool {
        self.phase == HostPhase::Running
    }

    /// Whether no host runs.
    pub(super) fn is_down(&self) -> bool {
        self.phase == HostPhase::Down
    }

    // === Questions ===

    pub(super) fn ask_registry<Q: Message<Registry>>(&mut self, message: Q) {
        if self.phase == HostPhase::Running {
            self.question_registry(message);
        }
    }

    /// Asks the registry in any state of the host, and returns the number under which the answer comes.
    pub(super) fn question_registry<Q: Message<Registry>>(&mut self, message: Q) -> u64 {
        self.say_to_registry(message.into_ask())
    }

    /// A message of the supervisor of the instances to the registry.
    pub(super) fn instances_tell(&mut self, call: u64, ask: RegistryAsk) {
        self.registry_calls.insert(self.askers + 2, call);
        self.say_to_registry(ask);
    }

    pub(super) fn say_to_registry(&mut self, ask: RegistryAsk) -> u64 {
        self.askers += 2;
        self.unanswered.insert(self.askers);
        if !may_wait(&ask) {
            self.prompt.insert(self.askers);
        }
        self.registry.ask(self.moment(), self.askers, ask);
        self.askers
    }

    pub(super) fn ask_instances<Q: Message<callboard_actors::instances::Instances>>(&mut self, message: Q) {
        if self.phase == HostPhase::Running {
            let asker = self.next_asker();
            self.instances_model.ask(self.moment(), asker, message.into_ask());
        }
    }

    pub(super) fn ask_inventory<Q: Message<Inventory>>(&mut self, message: Q) {
        if self.phase == HostPhase::Running {
            let asker = self.next_asker();
            self.inventory.ask(self.moment(), asker, message.into_ask());
        }
    }

    /// An odd number for the next caller; callers of the registry have even numbers.
    pub(super) fn next_asker(&mut self) -> u64 {
        self.askers += 2;
        self.unanswered.insert(self.askers + 1);
        self.askers + 1
    }

    pub(super) fn answered(&mut self, asker: u64) {
        if !self.unanswered.remove(&asker) {
            self.violation(Law::Shell7, format!("question {asker} was answered twice"));
        }
    }

    pub(super) fn violation(&mut self, law: Law, what: String) {
        self.verdict.violation(law, || what);
    }

    /// No actor has taken a step for the permitted time.
    pub(super) fn stands_still(&mut self) {
        let what = format!("no actor takes a step any more, and the host is {:?}", self.phase);
        self.violation(Law::Shell7, what);
    }

    /// Every caller must have an answer by now.
    pub(super) fn check_answered(&mut self) {
        if !self.unanswered.is_empty() && self.phase == HostPhase::Running {
            let what = format!("questions {:?} were never answered", self.unanswered);
            self.violation(Law::Shell7, what);
        }
    }

    // === Effects ===

    pub(super) fn note(&mut self, came: impl FnOnce() -> Observed) {
        if let Some(trace) = &mut self.trace {
            trace.push(came());
        }
    }

    /// Records the effects of each event from now on.
    pub(super) fn begin_trace(&mut self) {
        self.trace = Some(Vec::new());
        self.instances_model.noted = Some(Vec::new());
        self.drivers_model.told = Some(Vec::new());
        self.owned.model.told = Some(Vec::new());
        self.family.told = Some(Vec::new());
    }

    /// Carries out the effects that have left, and plans the following events.
    pub(super) fn dispatch(&mut self) {
        self.dispatch_registry();
        self.dispatch_instances();
        self.dispatch_inventory();
        self.dispatch_drivers();
        self.dispatch_processes();
        self.dispatch_database();
        self.dispatch_family();
        self.go_on_stopping();
        self.plan();
        self.plan_drivers();
        self.plan_workloads();
        self.verdict.heard_of(self.registry.checker.verdict.broken());
        self.verdict.heard_of(self.instances_model.broken());
        self.verdict.heard_of(self.drivers_model.broken());
        self.verdict.heard_of(self.owned.model.broken());
        self.verdict.heard_of(self.inventory.checker.verdict.broken());
    }
}
