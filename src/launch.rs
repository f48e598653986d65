//! Starts a host: opens the database, makes the addresses, and gives the root supervisor its parts.
//!
//! Addresses are made before any actor starts, and stay valid when an actor is restarted. Each [part](Part) declares in a file of its own
//! what it starts after; parts are stopped in reverse (S2).

mod options;
mod order;
mod part;
mod process_owners;
mod taken;

mod allocations;
mod catalog;
mod database;
mod directory;
mod drivers;
mod instances;
mod inventory;
mod processes;
mod registry;
mod volumes;

use std::sync::Arc;

use callboard_actors::allocation::Layout;
use callboard_actors::datadir::{DataDir, Lost};
use callboard_actors::driver::client::DriverConnections;
use callboard_actors::eventor::TaskJournals;
use callboard_actors::lease::Connections;
use callboard_actors::ownership::{self, HeldMark, default_marks_dir};
use callboard_actors::pauses::{self, Pause};
use callboard_actors::persister::Persister;
use callboard_actors::process::TaskProcesses;
use callboard_actors::shell::{Address, Clock, Database, IN_FLIGHT_MAX, Reservation, Settings};
use callboard_actors::supervisor::{self, AwaitStarted, Child, SupervisorSpec};
use callboard_actors::vocabulary::milliseconds;
use tokio::sync::watch;

use crate::host::{Handles, Host, HostEnd, StartError};

pub(crate) use self::options::Options;
pub use self::order::PartsError;
pub(crate) use self::part::AnyPart;
pub use self::part::{EndingRest, Part, PartContext, PartLifecycle};
#[cfg(feature = "cli")]
pub(crate) use self::process_owners::ProcessOwners;

/// Starts a host on the present arbiter. If one part does not start, those before it are stopped again.
pub(crate) async fn launch(options: Options) -> Result<Host, StartError> {
    launch_with(options, async |_: &Host| Ok(vec![])).await
}

/// The same with additional parts, which `add` makes after the data directory is locked and before any actor starts. If it fails, nothing
/// is started.
pub(crate) async fn launch_with<E: From<StartError>>(
    options: Options,
    add: impl AsyncFnOnce(&Host) -> Result<Vec<AnyPart>, E>,
) -> Result<Host, E> {
    volumes::check(&options.volumes)?;
    let layout = Layout::new(options.data_dir.clone(), options.runtime_dir()).map_err(StartError::from)?;
    let Held { directory, database, owner, mark } = hold(&options).await?;
    let (tell_database, present) = watch::channel(None);
    let (tell_end, ended) = watch::channel(None);
    let present =
        Database::following(present, database.run(), options.disk_health.clone(), options.notices.clone());
    let lost = directory::watch(directory, ended.clone());
    if options.clock.is_none() {
        watch_for_pauses(ended.clone());
    }
    let host = host(&options, owner, present, ended, lost);
    let (budget, settings) = (options.budget, settings(&options));
    let mut parts = parts(&host, options, layout, (database.clone(), tell_database));
    let context = PartContext { host: host.clone(), settings: settings.clone() };
    let added = add(&host).await.and_then(|added| {
        parts.extend(added);
        children(&parts, &context).map_err(|error| StartError::from(error).into())
    });
    let (children, reservations) = match added {
        Ok(made) => made,
        Err(error) => {
            database::close(database).await;
            return Err(error);
        }
    };
    let spec = SupervisorSpec { budget, ..SupervisorSpec::default() };
    let supervisor = supervisor::start(host.supervisor(), spec, children, settings);
    actix_rt::spawn(async move {
        let ending = supervisor.ended().await;
        let end = HostEnd { ending, steps: supervisor.stop_steps() };
        // The data directory and the addresses of its parts belong to this host until now.
        drop((mark, reservations));
        // It may no longer have a reader.
        tell_end.send_replace(Some(end));
    });
    let started = host.supervisor().ask(AwaitStarted).await;
    started.map_err(|error| StartError::Ended(error.to_string()))?.map_err(StartError::from)?;
    Ok(host)
}

/// The resources of a host before any of its actors runs.
struct Held {
    directory: Option<DataDir>,
    database: Persister,
    /// The identity of the data directory.
    owner: Arc<str>,
    mark: Option<HeldMark>,
}

/// Opens the data directory and its database, and determines their owner. If a step fails, nothing stays open.
async fn hold(options: &Options) -> Result<Held, StartError> {
    let directory = directory::open(options).await?;
    let database = database::open(options).await?;
    let held = async {
        let directory = directory?;
        // After the lock of the database is taken: only the host that holds the directory determines its owner.
        let (owner, mark) = settle(options, database.run().get() == 1).await?;
        Ok::<_, StartError>((directory, owner, mark))
    };
    match held.await {
        Ok((directory, owner, mark)) => Ok(Held { directory, database, owner, mark }),
        Err(error) => {
            database::close(database).await;
            Err(error)
        }
    }
}

/// Watches for pauses of this process while the host runs. A host with a clock of its own, as in a script, has none.
fn watch_for_pauses(mut ended: watch::Receiver<Option<HostEnd>>) {
    let say = |pause: Pause| {
        tracing::warn!(
            length_ms = milliseconds(pause.length()),
            suspended_ms = milliseconds(pause.suspended),
            "the host did not run for a while: it was stopped, its machine was suspended, or it got no processor; \
             deadlines that passed meanwhile are postponed"
        );
    };
    actix_rt::spawn(async move {
        tokio::select! {
            () = pauses::watch(say) => {}
            _ = ended.wait_for(Option::is_some) => {}
        }
    });
}

/// The handles of a host whose actors are about to start.
fn host(
    options: &Options,
    owner: Arc<str>,
    database: Database,
    ended: watch::Receiver<Option<HostEnd>>,
    lost: watch::Receiver<Option<Lost>>,
) -> Host {
    let limit = options.messages_max;
    Host::from_handles(Handles {
        data_dir: options.data_dir.clone(),
        lost,
        owner,
        database: database.clone().refusing(taken::TAKEN),
        own_database: database,
        notices: options.notices.clone(),
        supervisor: Address::vacant("host", IN_FLIGHT_MAX),
        registry: Address::vacant("registry", limit),
        instances: Address::vacant("instances", limit),
        connections: Connections::default(),
        task_processes: task_processes(options),
        inventory: Address::vacant("inventory", limit),
        allocations: Address::vacant("allocations", limit),
        processes: Address::vacant("processes", limit),
        drivers: Address::vacant("drivers", limit),
        driver_connections: DriverConnections::default(),
        task_journals: TaskJournals::default(),
        catalog: Address::vacant("catalog", limit),
        volumes: Address::vacant("volumes", limit),
        journal: options.journal.clone(),
        ended,
    })
}

/// The configured listeners: which processes may listen at the sockets of allocations.
fn task_processes(options: &Options) -> TaskProcesses {
    let processes = TaskProcesses::default();
    options.probings.iter().for_each(|(allocation, probing)| {
        processes.set_listener(allocation.clone(), probing.listener);
    });
    processes
}

/// The surroundings of every actor of the host.
fn settings(options: &Options) -> Settings {
    Settings {
        clock: options.clock.unwrap_or_else(Clock::system),
        notices: options.notices.clone(),
        seed: options.seed,
        journal: Some(options.journal.clone()),
        drills: options.drills.clone(),
        ..Settings::default()
    }
}

/// All parts: ours, and after them those of the host program.
fn parts(
    host: &Host,
    options: Options,
    layout: Layout,
    (database, tell_database): (Persister, watch::Sender<Option<Persister>>),
) -> Vec<AnyPart> {
    let mut parts = vec![
        database::part(&options, database, tell_database),
        processes::part(host, &options).into(),
        registry::part(host, &options).into(),
        instances::part(host, &options).into(),
        drivers::part(host, &options).into(),
        allocations::part(host, &options, layout).into(),
        inventory::part(host, &options).into(),
        catalog::part(host, &options).into(),
        volumes::part(host, &options).into(),
    ];
    parts.extend(options.parts);
    parts
}

/// The parts as children of the root, in the order in which they start, and the reservations of their addresses.
fn children(parts: &[AnyPart], context: &PartContext) -> Result<(Vec<Child>, Vec<Reservation>), PartsError> {
    let wishes: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.after.as_slice())).collect();
    let order = order::start_order(&wishes)?;
    let mut reservations = Vec::with_capacity(parts.len());
    for part in parts {
        reservations.extend(part.reserve()?);
    }
    let children = order.into_iter().map(|place| (parts[place].make)(context)).collect();
    Ok((children, reservations))
}

/// Determines the owner of the data directory, and holds its mark while the host runs. A database in memory has no host on this machine.
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
