//! `callboard run`: a host program. It reads a configuration, starts a host, an admin socket and an agent, and stops everything in order on
//! request.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocations::default_runtime_dir;
use callboard_actors::inventory::InventoryOptions;
use callboard_actors::logmon::{LogProgram, Logs, LogsError, LogsOptions};
use callboard_actors::shell::{Address, Clock, Ending, IN_FLIGHT_MAX, StopMode};
use callboard_actors::topology::Topology;
use callboard_actors::users::MACHINE_USERS;
use callboard_actors::vocabulary::AllocationId;
use clap::Args;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, interval_at};

use super::awaited::tell_awaited;
use super::left::Left;
use super::signals::Signals;
use super::{claims, departed, report_error, show};
use crate::admin::{
    self, AdminServer, AdminSocket, EventLog, ShutdownOrder, SocketError, Sources, Stopping, socket_path,
};
use crate::agent::{self, Agent, AgentOptions, ProcessHome};
use crate::config::{Config, Problem};
use crate::host::{Host, HostBuilder, StartError, system};
use crate::logging::{LogArgs, log_to_stderr};
use crate::output::{Palette, print_last};
use crate::process::{Binder, Keeper, usual_environment};
use crate::tasks::{
    self, TaskEnvironment, TaskEnvironmentOptions, TaskIdentities, Tasks, catalog_options, drivers_options,
};
use crate::usage::{UsageCollector, UsageView};
use crate::volumes::{Claimer, ConfiguredSecrets};

/// The directory of the log writer in the data directory.
pub(super) const LOGMON_DIRECTORY: &str = "logmon";
/// How many requests to stop may wait; the first request suffices.
const ORDERS_MAX: usize = 16;
/// How often a stop logs what it waits for.
const TELL_PAUSE: Duration = Duration::from_secs(5);

/// What can be said to `run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The configuration, a TOML file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    #[command(flatten)]
    log: LogArgs,
}

/// Why a host does not run, or no longer runs.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error("cannot make the event loop of the host: {0}")]
    System(#[source] std::io::Error),
    #[error("cannot start the keeper of the host's process groups: {0}")]
    Keeper(#[source] std::io::Error),
    #[error("cannot check what this machine permits for tasks: {0}")]
    Environment(#[source] std::io::Error),
    #[error("cannot collect the logs of tasks: {0}")]
    Logs(#[from] LogsError),
    #[error("the host has ended: {0}")]
    HostEnded(Ending),
    #[error("{0} came before the database was open: nothing was started")]
    ToldEarly(&'static str),
    #[error(transparent)]
    Left(#[from] Left),
}

/// Runs until it is requested to stop.
pub(super) fn run(args: &RunArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(error) => return report_error(&error, 2),
    };
    if let Err(error) = log_to_stderr(args.log) {
        return report_error(&error, 2);
    }
    for Problem { place, message } in &config.warnings {
        tracing::warn!(file = %args.config.display(), %place, "{message}");
    }
    // On this thread, because the kernel binds processes to the thread that starts them.
    let system = match system() {
        Ok(system) => system,
        Err(error) => return report_error(&RunError::System(error), 1),
    };
    let ended = system.block_on(host(config));
    // Dropping it would wait for the thread of the database, which a disk that does not respond may hold forever.
    std::mem::forget(system);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_error(&error, 1),
    }
}

/// Everything that runs.
struct Program {
    host: Host,
    logs: Logs,
    usage: Option<UsageCollector>,
    server: AdminServer,
    signals: Signals,
    keeper: Keeper,
    orders: mpsc::Receiver<ShutdownOrder>,
    stopping: watch::Sender<Option<Stopping>>,
}

/// Everything that is made before the first actor starts: if part of it fails, no process was started.
struct Outside {
    topology: Arc<Topology>,
    environment: TaskEnvironment,
    logs: Logs,
    socket: AdminSocket,
    events: EventLog,
}

/// The host with its configuration.
fn builder(config: &Config, runtime_dir: &Path, secrets: Arc<ConfiguredSecrets>) -> HostBuilder {
    let probings = config.allocations.iter().map(|allocation| (allocation.name.clone(), allocation.probing));
    Host::builder(&config.data_dir)
        .runtime_dir(runtime_dir)
        .drivers(drivers_options(config))
        .catalog(catalog_options(config))
        .registry(config.failover.registry())
        .instances(config.failover.instances())
        .inventory(inventory_options(config))
        .probings(probings.collect())
        .secrets(secrets)
}

/// Why the program ends.
enum Cause {
    Told,
    Ordered(ShutdownOrder),
    HostEnded(Ending),
}

async fn host(config: Config) -> Result<(), RunError> {
    let mut program = match Program::start(config).await {
        // It is requested to stop, and there is nothing to stop.
        Err(told @ RunError::ToldEarly(_)) => {
            tracing::info!("{told}");
            return Ok(());
        }
        started => started?,
    };
    let cause = program.until_told().await;
    let (mode, replies, error) = match cause {
        Cause::Told => (StopMode::Stop, vec![], None),
        Cause::Ordered(order) => (order.mode, vec![order], None),
        Cause::HostEnded(ending) => (StopMode::Stop, vec![], Some(RunError::HostEnded(ending))),
    };
    let left = program.stop(mode, replies).await;
    error.map_or(Ok(()), Err).and(left.map_err(RunError::from))
}

impl Outside {
    async fn open(
        config: &Config,
        runtime_dir: &Path,
        (host, agent): (&Host, &Address<Agent>),
    ) -> Result<Self, RunError> {
        let identities = TaskIdentities::of_owner(host.owner_mark());
        let topology = tasks::topology(&config.host);
        let environment = TaskEnvironment::new(environment_options(config), identities)
            .await
            .map_err(RunError::Environment)?;
        let directory = config.data_dir.join(LOGMON_DIRECTORY);
        let logs = Logs::start(LogsOptions { directory, program: log_program() }).await?;
        match bind(config, runtime_dir) {
            Ok(socket) => {
                let events = EventLog::begin(host, agent);
                Ok(Self { topology, environment, logs, socket, events })
            }
            Err(error) => {
                logs.stop().await;
                Err(error.into())
            }
        }
    }

    /// Undoes the preparation: the host does not start after all.
    async fn close(self) {
        self.socket.remove().await;
        self.logs.stop().await;
    }
}

impl Program {
    async fn start(config: Config) -> Result<Self, RunError> {
        let mut signals = Signals::listen().map_err(RunError::Signals)?;
        let (keeper, started_at) = (keeper(&config)?, Clock::system().now());
        let runtime_dir = config.runtime_dir.clone().unwrap_or_else(default_runtime_dir);
        let binder = Binder::this_program().kept_by(&keeper);
        let secrets = Arc::new(ConfiguredSecrets::of(&config.data_dir, &config.volumes));
        let builder = builder(&config, &runtime_dir, secrets.clone()).binder(binder.clone());
        let agent = Address::vacant("agent", IN_FLIGHT_MAX);
        let tasks = Address::vacant("tasks", IN_FLIGHT_MAX);
        let home = ProcessHome { binder, log_dir: config.data_dir.join("logs") };
        let (mut opened, is_open) = (None, Notify::new());
        let started = builder.start_with(async |host: &Host| {
            is_open.notify_one();
            let outside = opened.insert(Outside::open(&config, &runtime_dir, (host, &agent)).await?);
            let surroundings =
                (Arc::clone(&outside.topology), outside.environment.clone(), outside.logs.clone());
            let agent = agent::part(&agent, agent_options(&config), home, claims::of_allocations(&config));
            let tasks = tasks::part(&tasks, config.clone(), surroundings);
            Ok::<_, RunError>(vec![agent.into(), tasks.into()])
        });
        let host = match signals.unless_told_before(&is_open, started).await.map_err(RunError::ToldEarly)? {
            Ok(host) => host,
            Err(error) => {
                if let Some(outside) = opened {
                    outside.close().await;
                }
                return Err(error);
            }
        };
        let Outside { topology, environment, logs, socket, events } =
            opened.expect("a host that runs has its parts");
        let (volumes, departed) = resume(&config, &host, &agent, (runtime_dir, environment.clone())).await;
        tracing::info!(
            pid = std::process::id(), run = host.run_number().get(), data_dir = %config.data_dir.display(), "the host runs"
        );
        let (shutdown, orders) = mpsc::channel(ORDERS_MAX);
        let (stopping, stop_progress) = watch::channel(None);
        let (collector, usage) = collect_usage(&host, &tasks);
        let sources = Sources {
            host: host.clone(),
            agent,
            tasks,
            volumes,
            secrets: claims::keep_keys(secrets),
            volume_users: claims::volume_users(&config),
            controllers: claims::controllers(&config),
            departed,
            topology,
            control_groups: environment.control_groups(),
            logs: logs.view(),
            usage,
            limits: config.failover.instances().limits,
            inventory_options: inventory_options(&config),
            started_at,
            stopping: stop_progress,
            shutdown,
        };
        let server = socket.serve(sources, events);
        Ok(Self { host, logs, usage: collector, server, signals, keeper, orders, stopping })
    }

    async fn until_told(&mut self) -> Cause {
        tokio::select! {
            name = self.signals.next() => {
                tracing::info!(signal = name, "stopping in order");
                Cause::Told
            }
            Some(order) = self.orders.recv() => {
                tracing::info!("stopping in order, as requested through the admin socket");
                Cause::Ordered(order)
            }
            ending = self.host.ended() => Cause::HostEnded(ending),
        }
    }

    /// Stops everything: the host with its tasks, then the admin socket; and reports how. Further stop requests meanwhile change nothing.
    /// It is an error if something is left.
    async fn stop(self, mode: StopMode, mut replies: Vec<ShutdownOrder>) -> Result<(), Left> {
        let Self { host, logs, usage, server, mut signals, keeper, mut orders, stopping: progress } = self;
        usage.iter().for_each(UsageCollector::stop);
        let began = Stopping { since: Clock::system().now(), mode, ended: vec![] };
        let noted = host.clone();
        actix_rt::spawn(async move { began.follow(&noted, &progress).await });
        let mut telling = interval_at(Instant::now() + TELL_PAUSE, TELL_PAUSE);
        let stopping = async {
            let report = match mode {
                StopMode::Stop => host.stop().await,
                StopMode::Detach => host.detach().await,
            };
            // If tasks are left, so is the log writer, which reads their pipes.
            logs.stop().await;
            report
        };
        let mut stopping = std::pin::pin!(stopping);
        let stopped = loop {
            tokio::select! {
                stopped = &mut stopping => break stopped,
                name = signals.next() => tracing::info!(signal = name, "already stopping"),
                Some(order) = orders.recv() => replies.push(order),
                _ = telling.tick() => tell_awaited(&host).await,
            }
        };
        let report = admin::stopped(&stopped);
        for order in replies {
            // The requester may have disconnected; the stop does not depend on it.
            let _ = order.reply.send(stopped.clone());
        }
        server.stop().await;
        keeper.release();
        if let Err(error) = print_last(show::report(&report, Palette::of_stdout())) {
            tracing::warn!(error = %error, "the report of the shutdown cannot be printed");
        }
        Left::check(&report)
    }
}

/// The log writer: this program. It outlives the host, except a demo or test that marked the host itself.
fn log_program() -> LogProgram {
    match Keeper::own_host_mark() {
        Some((variable, value)) => LogProgram::this_program().env(variable, value),
        None => LogProgram::this_program(),
    }
}

fn environment_options(config: &Config) -> TaskEnvironmentOptions {
    TaskEnvironmentOptions {
        data_dir: config.data_dir.clone(),
        alloc_dir: config.host.alloc_dir.clone(),
        control_groups: config.host.control_groups,
        machine_users: rustix::process::geteuid().is_root().then(|| MACHINE_USERS.into()),
    }
}

/// Handles what earlier runs have left: processes and directories of allocations and tasks that are no longer configured, and claims.
/// Returns the allocations that left it.
async fn resume(
    config: &Config,
    host: &Host,
    agent: &Address<Agent>,
    (runtime_dir, environment): (PathBuf, TaskEnvironment),
) -> (Claimer, Vec<AllocationId>) {
    let volumes = Claimer::new(host.volumes().clone(), &config.volumes);
    departed::sweep_tasks(config, host, environment);
    departed::clear_idle(config, &runtime_dir).await;
    let departed = claims::departed(config, &runtime_dir).await;
    departed::sweep(config, host, volumes.clone(), runtime_dir);
    claims::confirm(host, agent, config, &departed);
    claims::attend(&volumes, host.volumes(), config);
    (volumes, departed)
}

/// Collects the resource usage of tasks, unless all of them have ended.
fn collect_usage(
    host: &Host,
    tasks: &Address<Tasks>,
) -> (Option<UsageCollector>, watch::Receiver<UsageView>) {
    let (tell, usage) = watch::channel(UsageView::new());
    (UsageCollector::start(tasks, host.leases(), tell).ok(), usage)
}

fn bind(config: &Config, runtime_dir: &Path) -> Result<AdminSocket, SocketError> {
    let socket = match &config.admin_socket {
        Some(socket) => socket.clone(),
        None => socket_path(&config.data_dir, runtime_dir)?,
    };
    AdminSocket::bind(&socket, &config.data_dir)
}

/// The first inventory waits for the allocations that the configuration starts.
fn inventory_options(config: &Config) -> InventoryOptions {
    let started = config.allocations.iter().filter(|allocation| allocation.start);
    let expected = started
        .flat_map(|allocation| departed::plugins(allocation).map(|plugin| (plugin, allocation.name.clone())));
    InventoryOptions { expected: expected.collect(), ..InventoryOptions::default() }
}

/// Starts the keeper of process outputs.
fn keeper(config: &Config) -> Result<Keeper, RunError> {
    let outputs = std::path::absolute(&config.data_dir).map_err(RunError::Keeper)?.join("processes");
    Keeper::start_with_outputs(&outputs).map_err(RunError::Keeper)
}

fn agent_options(config: &Config) -> AgentOptions {
    let Config { allocations, restart, .. } = config;
    AgentOptions { allocations: allocations.clone(), restart: *restart, environment: usual_environment() }
}
