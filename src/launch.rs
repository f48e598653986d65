//! The one place that knows everyone: opens the database, makes the addresses, and gives the root supervisor its children.
//!
//! Addresses are made before any actor starts, and stay valid whoever is restarted. Children are started in the order in
//! which they need each other, and stopped in reverse: allocations say goodbye while registry and instances still hear it,
//! and the database is closed when nobody writes any more (S2).

mod database;
mod process_owners;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocation::{Addresses, AllocationOptions, Layout};
use callboard_actors::allocations::{self, Allocations, AllocationsMemory, AllocationsOptions};
use callboard_actors::driver::ProcessOwner;
use callboard_actors::drivers::{self, Drivers, DriversMemory, DriversOptions};
use callboard_actors::instances::{self, Instances, InstancesOptions};
use callboard_actors::inventory::{self, Inventory, InventoryOptions};
use callboard_actors::ownership::{self, HeldMark, default_marks_dir};
use callboard_actors::persister::{MemoryDisk, Persister};
use callboard_actors::process::{Binder, Surroundings, random_bytes};
use callboard_actors::processes::{self, DurableRecords, ListProcesses, Processes, ProcessesOptions};
use callboard_actors::registry::{self, DurableStore, List, Registry, RegistryOptions, SocketCheck};
use callboard_actors::shell::{
    Address, Clock, Database, Drills, Ending, IN_FLIGHT_MAX, Journal, Notices, Running, Settings,
};
use callboard_actors::supervisor::{self, AwaitStarted, Child, ChildSpec, Strategy, SupervisorSpec};
use callboard_actors::vocabulary::{RestartBudget, RunNumber};
use tokio::sync::watch;

use crate::host::{
    Gates, Host, Parts, StartError, describe_allocations, describe_drivers, describe_instances,
};

pub(crate) use self::process_owners::ProcessOwners;

/// How much longer a child may take to end than what it waits for itself.
const STOP_MARGIN: Duration = Duration::from_secs(5);
/// How long a start may take: a large database is read in this time.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long the owners of drivers and of processes may take to end at least. They say themselves how long it takes with the
/// graces of what they own.
const OWNER_STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Everything that may be chosen.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) data_dir: PathBuf,
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) registry: RegistryOptions,
    pub(crate) instances: InstancesOptions,
    pub(crate) inventory: InventoryOptions,
    pub(crate) allocation: AllocationOptions,
    pub(crate) drivers: DriversOptions,
    pub(crate) binder: Option<Binder>,
    pub(crate) budget: RestartBudget,
    /// How many messages may be in the mailbox of each actor that is spoken to.
    pub(crate) messages_max: usize,
    pub(crate) notices: Notices,
    /// Tells the time; the system's clock unless a script has one of its own.
    pub(crate) clock: Option<Clock>,
    /// Where random numbers start; anywhere unless a script is to go the same way each time.
    pub(crate) seed: Option<u64>,
    /// The disk on which the database lies, if it is not a file.
    pub(crate) disk: Option<MemoryDisk>,
    /// Who writes down what happens, if anybody does.
    pub(crate) journal: Option<Journal>,
    /// Where actors are found to let things go wrong in them, if anybody wants to.
    pub(crate) drills: Option<Drills>,
    /// Who launches the processes of drivers, if it is not the host's own owner of processes.
    pub(crate) process_owners: Option<ProcessOwners>,
}

impl Options {
    pub(crate) fn new(data_dir: PathBuf) -> Self {
        Self {
            data_dir,
            runtime_dir: None,
            allocation: AllocationOptions::default(),
            registry: RegistryOptions::default(),
            instances: InstancesOptions::default(),
            inventory: InventoryOptions::default(),
            drivers: DriversOptions::default(),
            binder: None,
            budget: RestartBudget::default(),
            messages_max: IN_FLIGHT_MAX,
            notices: Notices::default(),
            clock: None,
            seed: None,
            disk: None,
            journal: None,
            drills: None,
            process_owners: None,
        }
    }
}

/// The addresses of everyone.
struct Cast {
    registry: Address<Registry>,
    instances: Address<Instances>,
    inventory: Address<Inventory>,
    allocations: Address<Allocations>,
    processes: Address<Processes>,
    drivers: Address<Drivers>,
}

/// Starts a host on the present arbiter.
pub(crate) async fn launch(options: Options) -> Result<Host, StartError> {
    let runtime_dir = options.runtime_dir.clone().unwrap_or_else(allocations::default_runtime_dir);
    let layout = Layout::new(options.data_dir.clone(), runtime_dir)?;
    let database = database::open(&options).await?;
    // Behind the lock of the database: only who holds the directory says whose it is.
    let (owner, held) = match settle(&options, database.run().get() == 1).await {
        Ok(settled) => settled,
        Err(error) => {
            database::close(database).await;
            return Err(error);
        }
    };
    let (tell, present) = watch::channel(None);
    let store = Database::following(present, database.run(), options.notices.clone());
    let messages_max = options.messages_max;
    let cast = Cast {
        registry: Address::vacant("registry", messages_max),
        instances: Address::vacant("instances", messages_max),
        inventory: Address::vacant("inventory", messages_max),
        allocations: Address::vacant("allocations", messages_max),
        processes: Address::vacant("processes", messages_max),
        drivers: Address::vacant("drivers", messages_max),
    };
    let gates = Gates::default();
    let settings = Settings {
        clock: options.clock.unwrap_or_else(Clock::system),
        notices: options.notices.clone(),
        seed: options.seed,
        journal: options.journal.clone().or_else(|| Some(gates.journal())),
        drills: options.drills.clone(),
        ..Settings::default()
    };
    let root = Address::vacant("host", IN_FLIGHT_MAX);
    let spec = SupervisorSpec { strategy: Strategy::OneForOne, budget: options.budget, ..Default::default() };
    let children = children(&options, (layout, &owner), (database, tell), &cast, &store, &settings);
    let running = supervisor::start(&root, spec, children, settings);
    let ended = watch_over(&running, held);
    root.ask(AwaitStarted).await.map_err(|error| StartError::Ended(error.to_string()))??;
    Ok(Host::from_parts(Parts {
        data_dir: options.data_dir,
        owner,
        database: store,
        notices: options.notices,
        supervisor: root,
        registry: cast.registry,
        instances: cast.instances,
        inventory: cast.inventory,
        allocations: cast.allocations,
        processes: cast.processes,
        drivers: cast.drivers,
        #[cfg(feature = "cli")]
        gates,
        ended,
    }))
}

/// Finds out whose the data directory is, and holds its mark as long as the host runs. A database in memory is no host of this
/// machine.
async fn settle(options: &Options, is_new: bool) -> Result<(Arc<str>, Option<HeldMark>), StartError> {
    let (data_dir, is_in_memory) = (options.data_dir.clone(), options.disk.is_some());
    let look = move || match (!is_in_memory).then(default_marks_dir).flatten() {
        Some(marks) => ownership::settle_and_hold(&data_dir, is_new, &marks),
        None => ownership::settle(&data_dir, is_new).map(|mark| (mark, None)),
    };
    // Another host that is just ending is waited for.
    let settled = actix_rt::task::spawn_blocking(look).await;
    Ok(settled.map_err(|error| StartError::Ended(error.to_string()))??)
}

/// Passes the ending of the root on to whoever asks, from any thread. Until then the mark of the host is held.
fn watch_over(running: &Running, held: Option<HeldMark>) -> watch::Receiver<Option<Ending>> {
    let (tell, ended) = watch::channel(None);
    let ending = running.ended();
    actix_rt::spawn(async move {
        let ending = ending.await;
        drop(held);
        tell.send_replace(Some(ending));
    });
    ended
}

fn children(
    options: &Options,
    (layout, owner): (Layout, &Arc<str>),
    (database, tell): (Persister, watch::Sender<Option<Persister>>),
    cast: &Cast,
    store: &Database,
    settings: &Settings,
) -> Vec<Child> {
    let (records, run) = (DurableRecords::new(store), store.run());
    let store = DurableStore::new(store);
    vec![
        database::child(options, database, tell),
        processes_child(options, owner, cast, records, settings),
        registry_child(options, &cast.registry, store, settings),
        instances_child(options, cast, settings),
        drivers_child(options, cast, run, settings),
        inventory_child(options, cast, settings),
        allocations_child(options, layout, cast, settings),
    ]
}

fn spec(name: &str, stop_deadline: Duration) -> ChildSpec {
    ChildSpec { start_deadline: START_DEADLINE, stop_deadline, ..ChildSpec::new(name, name) }
}

/// One whose end takes as long as the graces of what it owns.
fn owner_spec(name: &str) -> ChildSpec {
    ChildSpec { stop_longest: Duration::MAX, ..spec(name, OWNER_STOP_DEADLINE) }
}

fn registry_child(
    options: &Options,
    address: &Address<Registry>,
    store: DurableStore,
    settings: &Settings,
) -> Child {
    let (options, settings) = (options.registry.clone(), settings.clone());
    let (seated, asked) = (address.clone(), address.clone());
    let child = Child::new(spec("registry", Duration::from_secs(5)), move || {
        let check = SocketCheck { deadline: options.check_deadline };
        let running = registry::start(&seated, options.clone(), check, store.clone(), settings.clone());
        std::future::ready(Ok(running))
    });
    // It is up when it has read its records and answers.
    child
        .ready_when(move || {
            let answer = asked.ask(List);
            async move { answer.await.map(drop).map_err(|error| error.to_string()) }
        })
        .seen_at(address)
}

/// The processes of plugins. They are found again or ended before anyone may launch one.
fn processes_child(
    options: &Options,
    owner: &Arc<str>,
    cast: &Cast,
    records: DurableRecords,
    settings: &Settings,
) -> Child {
    let (address, asked) = (cast.processes.clone(), cast.processes.clone());
    let (data_dir, binder, settings) = (options.data_dir.clone(), options.binder.clone(), settings.clone());
    let owner = Arc::clone(owner);
    let runtime_dir = options.runtime_dir.clone().unwrap_or_else(allocations::default_runtime_dir);
    // Drivers end their own before this; what is left has its own grace.
    let child = Child::new(owner_spec("processes"), move || {
        let surroundings = Surroundings::new(&data_dir, Arc::clone(&owner), binder.clone(), true);
        let surroundings =
            surroundings.map(|surroundings| surroundings.with_short_directory(runtime_dir.clone()));
        let started = surroundings.and_then(|surroundings| {
            let options = ProcessesOptions::new(random_bytes()?);
            Ok(processes::start(&address, options, surroundings, records.clone(), settings.clone()))
        });
        std::future::ready(started.map_err(|error| error.to_string()))
    });
    child
        .ready_when(move || {
            let answer = asked.ask(ListProcesses);
            async move { answer.await.map(drop).map_err(|error| error.to_string()) }
        })
        .seen_at(&cast.processes)
}

fn drivers_child(options: &Options, cast: &Cast, run: RunNumber, settings: &Settings) -> Child {
    let owner: Rc<dyn ProcessOwner> = match &options.process_owners {
        Some(owners) => owners.make(),
        None => Rc::new(cast.processes.clone()),
    };
    let (options, settings) = (options.drivers.clone(), settings.clone());
    let address = cast.drivers.clone();
    let memory = DriversMemory::of_run(run);
    let child = Child::new(owner_spec("drivers"), move || {
        let (options, memory) = (options.clone(), memory.clone());
        let running = drivers::start(&address, options, owner.clone(), memory, settings.clone());
        std::future::ready(Ok(running))
    });
    let address = cast.drivers.clone();
    child.described_by(move || describe_drivers(address.clone()))
}

fn instances_child(options: &Options, cast: &Cast, settings: &Settings) -> Child {
    let (options, settings) = (options.instances, settings.clone());
    let (address, registry) = (cast.instances.clone(), cast.registry.clone());
    // Whoever has not retired by then is killed, which is over at once.
    let stop_deadline = options.retire_deadline + STOP_MARGIN;
    let child = Child::new(spec("instances", stop_deadline), move || {
        let running = instances::start(&address, registry.clone(), options, settings.clone());
        std::future::ready(Ok(running))
    });
    let address = cast.instances.clone();
    child.described_by(move || describe_instances(address.clone()))
}

fn inventory_child(options: &Options, cast: &Cast, settings: &Settings) -> Child {
    let (options, settings) = (options.inventory, settings.clone());
    let (address, instances) = (cast.inventory.clone(), cast.instances.clone());
    let drivers = cast.drivers.clone();
    let child = Child::new(spec("inventory", Duration::from_secs(5)), move || {
        let running =
            inventory::start(&address, instances.clone(), Some(drivers.clone()), options, settings.clone());
        std::future::ready(Ok(running))
    });
    child.seen_at(&cast.inventory)
}

fn allocations_child(options: &Options, layout: Layout, cast: &Cast, settings: &Settings) -> Child {
    let settings = settings.clone();
    let options = AllocationsOptions { each: options.allocation, ..AllocationsOptions::new(layout) };
    let address = cast.allocations.clone();
    let neighbours =
        Rc::new(Addresses { registry: cast.registry.clone(), instances: cast.instances.clone() });
    let memory = AllocationsMemory::default();
    let stop_deadline = options.shutdown_deadline() + STOP_MARGIN;
    let child = Child::new(spec("allocations", stop_deadline), move || {
        let (options, neighbours) = (options.clone(), neighbours.clone());
        let running = allocations::start(&address, options, neighbours, memory.clone(), settings.clone());
        std::future::ready(Ok(running))
    });
    let address = cast.allocations.clone();
    child.described_by(move || describe_allocations(address.clone()))
}
